"""Traces as tables: `gpuperf.Trace`. Needs no GPU; loaded when it is first used."""

from __future__ import annotations

from gpuperf.tables.table import Table, Texts
from gpuperf.tables.trace import Damage, Trace

__all__ = ["Damage", "Table", "Texts", "Trace"]
