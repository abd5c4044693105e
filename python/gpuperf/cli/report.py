"""`gpuperf report`: how idle the GPUs were and what they did, from trace files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpuperf import regions
from gpuperf.errors import RegionError, TraceError
from gpuperf.report import select, statements, summary

if TYPE_CHECKING:
    import argparse

    from gpuperf.report import Summary

HELP = "show what a trace says: idle time, steps, kernels, copies, host waits"
DESCRIPTION = """\
Shows what traces say: how complete they are, how long the GPUs were idle, steps, kernels, copies, host waits, and what
gpuperf itself cost. With several files (one a rank) a row for each comes first. Parts of a trace (.0001, …) are read
with its first file.

--steps, --annotation, --nvtx and --time restrict every table to a part of the run; several of them to what lies in
all. Work that reaches over an edge is cut there (docs/report.md).

exit codes: 0, 2 (a region that a trace does not have), 3 (a file cannot be read or is no trace), 4 (a trace is damaged
or was not closed: what is there is shown)"""

_SCHEMA = 1
_PROGRESS_BYTES = 64 << 20
_EXIT_DAMAGED = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FILE…, --json, -n, --full-names, and the region."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a trace")
    parser.add_argument("--json", action="store_true", help="print everything as JSON (docs/report.md)")
    parser.add_argument("-n", "--top", type=_rows, default=10, help="rows of the longest tables, 0: all (default: 10)")
    parser.add_argument("--full-names", action="store_true", help="kernel names with their return types and parameters")
    region = parser.add_argument_group("region")
    region.add_argument(
        "--steps", metavar="A:B", help="steps A to B-1 as in a Python slice, or one (--steps=-10: the last ten)"
    )
    region.add_argument("--annotation", metavar="NAME", help="while an annotation of this name was open")
    region.add_argument(
        "--nvtx",
        metavar="NAME[@DOMAIN]",
        help="while an NVTX range of this name was open (NAME@: of the default domain)",
    )
    region.add_argument(
        "--time", metavar="A:B", help="from A to B after the start (1.5s:2s, :100ms; --time=-2s: the last two)"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the report of what can be read; the exit code tells the worst that was met."""
    code = 0
    traces = []
    region = regions.region(args.steps, args.annotation, args.time, args.nvtx)
    for path in select(args.files):
        trace, failed = _read(path, region)
        code = code or failed
        if trace is not None:
            traces.append(trace)
    if code == 0 and any(map(statements.is_damaged, traces)):
        code = _EXIT_DAMAGED
    if args.json:
        json.dump({"schema": _SCHEMA, "traces": traces}, sys.stdout, indent=2, ensure_ascii=False)
        print()
    elif traces:
        from gpuperf.report import text

        text.show_report(text.console(), traces, top=args.top, full_names=args.full_names)
    return code


def _rows(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def _read(path: str, region: regions.Region) -> tuple[Summary | None, int]:
    """The summary of one trace, or an exit code and a line on stderr."""
    try:
        return _summary(path, region), 0
    except (TraceError, RegionError) as error:
        print(f"gpuperf: {error}", file=sys.stderr)
        return None, error.exit_code


def _summary(path: str, region: regions.Region) -> Summary:
    """With a progress bar for a big trace."""
    try:
        total = sum(part.stat().st_size for part in [Path(path), *Path(path).parent.glob(Path(path).name + ".????")])
    except OSError:
        total = 0
    if total < _PROGRESS_BYTES or not sys.stderr.isatty():
        return summary(path, region=region)
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(Path(path).name, total=total)
        return summary(path, lambda done: progress.update(task, completed=done), region)
