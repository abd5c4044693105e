#!/usr/bin/env python3
"""Measures gpuperf and prints one table: python benchmarks/run.py [NAME…] [--json FILE].

Without a GPU: trace_size, ring, collector, reader, callback, import_time. With one also: overhead, graphs, tail,
memory, real_trace.
Without names all that this machine can run is run, `tail` (8 minutes) excepted. What the figures mean and how they are
taken: benchmarks/README.md. Exit code: 0 every bar is reached, 1 one is missed or a benchmark failed, 2 usage, 6 a
benchmark that was asked for by name cannot run here.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import overhead
from built import Unavailable, find_built
from figures import Row, as_json, row, table
from replayed import replay, trace_size

IMPORTS = 21
READER_LOOPS = 3  # some chunks: one a second


def native(name: str, *arguments: str) -> list[Row]:
    """Runs a C++ benchmark. Each line of its stdout: {"name", "value"[, "unit", "better", "bar", "aim"]}."""
    command = [str(find_built(name)), *arguments, "--json"]
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300)
    if finished.returncode != 0:
        raise RuntimeError(f"{name} ended with {finished.returncode}")
    rows = []
    for line in filter(None, map(str.strip, finished.stdout.splitlines())):
        told = json.loads(line)
        rows.append(
            row(
                told["name"],
                told["value"],
                told.get("unit", ""),
                told.get("better", "lower"),
                bar=told.get("bar"),
                aim=told.get("aim"),
            )
        )
    return rows


def reader() -> list[Row]:
    """Kernels with their launches from a trace into Arrow: a recorded run, replayed, then repeated behind itself."""
    find_built("reader_bench")  # before the seconds that the replay takes
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.gpuperf"
        replay(READER_LOOPS, trace)
        return native("reader_bench", str(trace))


def import_time() -> list[Row]:
    """`import gpuperf` in a fresh interpreter, the median of several."""
    code = "import time; t = time.perf_counter(); import gpuperf; gpuperf.stats; print(time.perf_counter() - t)"
    seconds = []
    for _ in range(IMPORTS + 1):
        finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        if finished.returncode != 0:
            raise Unavailable("gpuperf is not installed in this Python (pip install .)")
        seconds.append(float(finished.stdout))
    return [row("import_time", statistics.median(seconds[1:]) * 1e3)]


def main() -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run (default: all but tail)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--workload", action="append", choices=("stress", "gpt2"), help="of overhead (default: both)")
    parser.add_argument(
        "--units", type=int, default=12, help="overhead, graphs: units of A B C C B A (default: %(default)s)"
    )
    parser.add_argument("--steps", type=int, default=30, help="overhead: steps per block (default: %(default)s)")
    parser.add_argument("--profiler-units", type=int, default=4, help="units for torch.profiler (default: %(default)s)")
    parser.add_argument("--time-limit", type=float, default=500, help="seconds per measurement (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="overhead, tail: write every step's time there too")
    options = parser.parse_args()

    def overhead_rows() -> list[Row]:
        workloads = options.workload or ["stress", "gpt2"]
        return overhead.overhead(
            workloads, options.units, options.steps, options.profiler_units, options.time_limit, options.keep
        )

    benchmarks: dict[str, Callable[[], list[Row]]] = {
        "trace_size": trace_size,
        "ring": lambda: native("ring_bench"),
        "collector": lambda: native("collector_bench"),
        "reader": reader,
        "callback": lambda: native("callback_bench"),
        "import_time": import_time,
        "memory": overhead.memory,
        "real_trace": overhead.real_trace,
        "overhead": overhead_rows,
        "graphs": lambda: overhead.graphs(options.units),
        "tail": lambda: overhead.tail(options.time_limit, options.keep),
    }
    unknown = [name for name in options.names if name not in benchmarks]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(benchmarks)}")

    rows: list[Row] = []
    failed: list[str] = []
    missing: list[str] = []
    for name in options.names or [name for name in benchmarks if name != "tail"]:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            rows += benchmarks[name]()
        except Unavailable as reason:
            missing.append(f"{name}: not run: {reason}")
        except Exception as error:  # one that fails must not cost the others
            traceback.print_exc()
            failed.append(f"{name}: failed: {error}")
        if options.json:
            options.json.write_text(json.dumps(as_json(rows), indent=1) + "\n")
    print(table(rows))
    print(*missing, *failed, sep="\n")
    if failed or not all(r.ok for r in rows):
        return 1
    return 6 if options.names and missing else 0


if __name__ == "__main__":
    sys.exit(main())
