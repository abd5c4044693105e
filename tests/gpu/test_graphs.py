"""Item 9: CUDA graphs, node by node and as a whole, over several sessions of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import support
import trace_decode

NODES, REPLAYS = 60, 500

JOB = """
import sys, torch, gpuperf
x = torch.randn(256, 256, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        y = (x @ x).relu()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x
    for _ in range(30):
        y = (y @ x).relu()
torch.cuda.synchronize()
for path, level in zip(sys.argv[1:], ("node", "graph", "node")):
    assert gpuperf.start(path, graphs=level)
    for _ in range(500):
        graph.replay()
    torch.cuda.synchronize()
    gpuperf.stop()
"""


@pytest.mark.item(9)
def test_node_and_graph_level(tmp_path: Path, figures: dict[str, Any]) -> None:
    """Every node of every replay as a kernel, or every replay as one opaque interval, with a stop/start between."""
    paths = [tmp_path / f"{name}.gpuperf" for name in ("first", "whole", "last")]
    support.succeed(support.run([support.sys.executable, "-c", JOB, *paths]))
    first, whole, last = (support.whole(path) for path in paths)
    for name, trace in (("first", first), ("last", last)):
        graph_launches = trace.calls["name"] == "cudaGraphLaunch"
        launches = trace.calls["correlation"][graph_launches]
        inside = trace.kernels["graph_id"] != 0
        figures[f"{name}: graph launches, kernels inside"] = [len(launches), int(inside.sum())]
        joined = np.isin(trace.kernels["correlation"][inside], launches)
        figures[f"{name}: kernels joined to their graph's launch"] = int(joined.sum())
        assert len(launches) == REPLAYS
        assert inside.sum() == NODES * REPLAYS
    assert figures["first: kernels joined to their graph's launch"] == NODES * REPLAYS
    launches = whole.calls["correlation"][whole.calls["name"] == "cudaGraphLaunch"]
    opaque = whole.opaque_intervals
    figures["whole: graph launches, opaque intervals, kernels"] = [
        len(launches),
        len(opaque),
        trace_decode.rows(whole.kernels),
    ]
    assert len(opaque) == REPLAYS
    assert set(launches.tolist()) == {row["correlation"] for row in opaque}
    assert all(row["end_device_ns"] > row["begin_device_ns"] for row in opaque)
