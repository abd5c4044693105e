"""What `gpuperf report` and `gpuperf dump` show of trace files. Needs no GPU; never loaded by `import gpuperf`."""

from __future__ import annotations

from gpuperf.errors import TraceError
from gpuperf.report.traces import Summary, dump, select, summary

__all__ = ["Summary", "TraceError", "dump", "select", "summary"]
