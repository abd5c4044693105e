"""Replays a CUDA graph of 200 kernels in one mode, on demand; run.py starts one process for each mode.

    python benchmarks/graph_replay.py none|node|graph
        prints "ready"; for each number of replays that comes in as a line on stdin it prints the seconds of each, a
        device synchronize after every one, as a line of JSON

The session begins before the graph is instantiated and lasts as long as the process: a graph that is recorded as a
whole wants both (docs/limits.md).
"""

from __future__ import annotations

import gc
import json
import sys
import time

import torch
from training import trace_folder

NODES = 200
WARM_UP = 50


def main() -> None:
    """Entry point."""
    mode = sys.argv[1]
    answer, sys.stdout = sys.stdout, sys.stderr
    gc.disable()
    with trace_folder() as folder:
        if mode != "none":
            import gpuperf

            if not gpuperf.start(folder / "graphs.gpuperf", graphs=mode, quiet=True):
                raise SystemExit("gpuperf could not start")
        x = torch.zeros(1024, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(NODES):
                x.add_(1)

        def replay(times: int) -> list[float]:
            seconds = []
            for _ in range(times):
                begin = time.perf_counter_ns()
                graph.replay()
                torch.cuda.synchronize()
                seconds.append((time.perf_counter_ns() - begin) / 1e9)
            return seconds

        replay(WARM_UP)
        print("ready", file=answer, flush=True)
        for line in sys.stdin:
            print(json.dumps(replay(int(line))), file=answer, flush=True)
        if mode != "none":
            gpuperf.stop()
            stats = gpuperf.stats()
            if (stats.kernels >= NODES * WARM_UP) != (mode == "node"):
                raise SystemExit(f"the mode {mode} recorded {stats.kernels} kernels")


if __name__ == "__main__":
    main()
