"""Item 9: CUDA graphs, node by node and as a whole, over several sessions of one process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import support
import trace_decode

NODES, REPLAYS = 200, 5000
FULL_LEVEL, GRAPH_LEVEL = 1, 3

# What a process does, letter by letter: C captures a graph, N and G begin a session node by node and as a whole, R
# replays all graphs so far, the last first, E launches outside graphs, P is a torch.profiler session of one replay, X
# ends a session.
JOB = """
import sys, torch, gpuperf
nodes, replays, steps, *paths = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
x = torch.zeros(1024, device="cuda")
x.add_(1)
torch.cuda.synchronize()
graphs = []
for step in steps:
    if step == "C":
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1]):
            for _ in range(nodes):
                x.add_(1)
    elif step in "NG":
        assert gpuperf.start(paths.pop(0), graphs="node" if step == "N" else "graph")
    elif step == "R":
        for _ in range(replays):
            for graph in reversed(graphs):
                graph.replay()
        torch.cuda.synchronize()
    elif step == "E":
        for _ in range(100):
            x.add_(1)
        torch.cuda.synchronize()
    elif step == "P":
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as prof:
            graphs[-1].replay()
            torch.cuda.synchronize()
        print(sum(event.device_type.name == "CUDA" for event in prof.events()))
    elif step == "X":
        gpuperf.stop()
assert not paths
"""


def sessions(tmp_path: Path, steps: str, replays: int = 50) -> tuple[list[trace_decode.Trace], str, str]:
    """The traces of the sessions, in order; stdout and stderr."""
    paths = [tmp_path / f"{steps}-{at}.gpuperf" for at in range(steps.count("N") + steps.count("G"))]
    done = support.run([sys.executable, "-c", JOB, str(NODES), str(replays), steps, *map(str, paths)])
    support.succeed(done)
    return [support.whole(path) for path in paths], done.stdout, done.stderr


def graph_launches(trace: trace_decode.Trace) -> list[int]:
    """Correlation ids of the launches of graphs."""
    ids: list[int] = trace.calls["correlation"][trace.calls["name"] == "cudaGraphLaunch"].tolist()
    return ids


def nodes(trace: trace_decode.Trace) -> tuple[int, int]:
    """Kernels inside graphs; those of them that are joined to a graph launch."""
    inside = trace.kernels["graph_id"] != 0
    joined = np.isin(trace.kernels["correlation"][inside], graph_launches(trace))
    return int(inside.sum()), int(joined.sum())


@pytest.mark.item(9)
def test_every_node_of_every_replay(tmp_path: Path, figures: dict[str, Any]) -> None:
    """200 nodes × 10,000 replays with a stop and a start in the middle: counts exact, each with its launch."""
    traces, _, _ = sessions(tmp_path, "CNRXNRX", REPLAYS)
    for name, trace in zip(("first session", "second session"), traces, strict=True):
        inside, joined = nodes(trace)
        figures[f"{name}: graph launches, kernels inside, joined"] = [len(graph_launches(trace)), inside, joined]
    for trace in traces:
        assert len(graph_launches(trace)) == REPLAYS
        assert nodes(trace) == (NODES * REPLAYS, NODES * REPLAYS)


@pytest.mark.item(9)
def test_as_a_whole(tmp_path: Path, figures: dict[str, Any]) -> None:
    """One opaque interval for each launch, kernels outside as ever; the graphs live on, in torch.profiler, too."""
    (trace,), told, said = sessions(tmp_path, "GCREXRPR")
    launches, opaque = graph_launches(trace), trace.opaque_intervals
    outside = trace_decode.rows(trace.kernels)
    figures["graph launches, opaque intervals, kernels outside"] = [len(launches), len(opaque), outside]
    figures["torch.profiler's GPU events of one replay afterwards"] = int(told)
    assert set(launches) == {row["correlation"] for row in opaque}
    assert len(opaque) == len(launches) == 50
    assert all(row["end_device_ns"] > row["begin_device_ns"] for row in opaque)
    assert outside >= 100
    assert [row["level"] for row in trace.level_changes] == [GRAPH_LEVEL]
    assert "CUPTI stays attached" in said
    assert int(told) >= NODES


@pytest.mark.item(9)
@pytest.mark.parametrize("steps", ["CGRX", "NCRXGRX", "GCRXGRX", "CNRXCGRX"])
def test_graphs_of_before_the_session_end_the_level_and_not_the_job(
    steps: str, tmp_path: Path, figures: dict[str, Any]
) -> None:
    """CUDA crashes if such a graph is launched while graphs are recorded as a whole: none is."""
    traces, _, said = sessions(tmp_path, steps)
    last = traces[-1]
    graphs = steps.count("C")
    figures[f"{steps}: graph launches, kernels inside, joined"] = [len(graph_launches(last)), *nodes(last)]
    assert len(graph_launches(last)) == 50 * graphs
    assert nodes(last)[0] == 50 * NODES * graphs
    assert not last.opaque_intervals
    assert [row["level"] for row in last.level_changes] == [GRAPH_LEVEL, FULL_LEVEL]
    assert said.count("CUDA graph from before this session") == 1
    assert len(traces) == 1 or nodes(traces[0])[0] + len(traces[0].opaque_intervals) > 0


@pytest.mark.item(9)
def test_a_graph_of_before_among_those_of_the_session(tmp_path: Path, figures: dict[str, Any]) -> None:
    """Each launch is either one interval or all of its kernels, never both and never neither."""
    (trace,), _, _ = sessions(tmp_path, "CGCRXR")
    opaque = {row["correlation"] for row in trace.opaque_intervals}
    ids, counts = np.unique(trace.kernels["correlation"][trace.kernels["graph_id"] != 0], return_counts=True)
    figures["launches as a whole, node by node"] = [len(opaque), len(ids)]
    assert len(opaque) + len(ids) == 100
    assert not opaque & set(ids.tolist())
    assert set(counts.tolist()) == {NODES}
