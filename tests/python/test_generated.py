"""Committed files that a tool makes are what the tool makes now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_field_numbers_are_those_of_the_schema() -> None:
    """csrc/trace/trace_fields.h holds the field numbers that the runtime writes with."""
    tool = ROOT / "tools" / "gen_trace_fields.py"
    checked = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
