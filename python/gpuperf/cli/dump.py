"""`gpuperf dump`: every record of a trace as text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpuperf.report import dump

if TYPE_CHECKING:
    import argparse

HELP = "print every record of a trace as text, one a line"
DESCRIPTION = """\
Prints every record of a trace as text, one a line, in the order of the file (docs/dump.md).

exit codes: 0, 3 (the file cannot be read or is no trace), 4 (the trace is damaged or was not closed; what is there is
printed)"""

_EXIT_DAMAGED = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FILE, --chunks."""
    parser.add_argument("file", metavar="FILE", help="a trace (its parts are read with it)")
    parser.add_argument("--chunks", action="store_true", help="only files, chunks and damages, not records")


def run(args: argparse.Namespace) -> int:
    """Prints the records."""
    return 0 if dump(args.file, sys.stdout.write, chunks_only=args.chunks) else _EXIT_DAMAGED
