"""Item 2: all ways in record the same, in one process and in several; sessions start and stop."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import support


@pytest.mark.item(2)
def test_all_ways_record_the_same(tmp_path: Path, figures: dict[str, Any]) -> None:
    """Equal device-side, launch-side and NVTX counts, by name; the job's stdout and exit code are its own."""
    script = support.job("script", "--steps", 15, "--code", 3)
    ways = ("run", "import", "preload", "nothing")
    files = {way: tmp_path / f"{way}.gpuperf" for way in ways}
    starts = {
        "run": lambda: support.run(support.traced(files["run"], script)),
        "import": lambda: support.run([*script, "--trace", str(files["import"])]),
        "preload": lambda: support.run(script, LD_PRELOAD=support.library(), GPUPERF_OUTPUT=str(files["preload"])),
        "nothing": lambda: support.run(script),
    }
    with ThreadPoolExecutor() as pool:
        finished = dict(zip(ways, pool.map(lambda way: starts[way](), ways), strict=True))
    assert finished["nothing"].stdout.count("\n") == 3
    for way, done in finished.items():
        assert done.returncode == 3, f"{way}: {done.stderr[-2000:]}"
        assert done.stdout == finished["nothing"].stdout
    assert not files.pop("nothing").exists()
    counted = []
    for way, path in files.items():
        trace = support.whole(path)
        copies = Counter(zip(trace.copies["copy_kind"].tolist(), trace.copies["bytes"].tolist(), strict=True))
        memsets = Counter(trace.memsets["bytes"].tolist())
        nvtx = Counter(row["name"] for row in trace.annotations) + Counter(row["name"] for row in trace.marks)
        counted.append((Counter(trace.kernels["name"].tolist()), copies, memsets, support.by_name(trace.calls), nvtx))
        figures[f"{way}: kernels, copies, memory sets, calls, NVTX"] = [part.total() for part in counted[-1]]
        outside, joined = support.join_share(trace)
        assert joined == outside > 0
        assert nvtx == {"stress": 15, "copies": 15, "graph": 15, "next": 3}
    assert counted[0] == counted[1] == counted[2]


@pytest.mark.item(2)
def test_two_processes_on_one_gpu(tmp_path: Path, figures: dict[str, Any]) -> None:
    """A launcher with two CUDA processes: a file for each, named by rank and process, none for the launcher."""
    launcher = (
        "import os, subprocess, sys\n"
        "ranks = [{'RANK': rank, 'LOCAL_RANK': rank, 'WORLD_SIZE': '2'} for rank in '01']\n"
        "jobs = [subprocess.Popen(sys.argv[1:], env=os.environ | rank) for rank in ranks]\n"
        "print(*(job.pid for job in jobs))\n"
        "sys.exit(max(job.wait() for job in jobs))\n"
    )
    job = [support.sys.executable, "-c", launcher, *support.job("script", "--steps", 10)]
    done = support.succeed(support.run(support.traced(tmp_path / "two-r%r-%p.gpuperf", job)))
    pids = next(line for line in done.stdout.splitlines() if line.replace(" ", "").isdigit()).split()
    files = [tmp_path / f"two-r{rank}-{pid}.gpuperf" for rank, pid in enumerate(pids)]
    assert sorted(tmp_path.glob("*.gpuperf*")) == sorted(files)
    counted = []
    for rank, path in enumerate(files):
        trace = support.whole(path)
        assert trace.run_info is not None
        assert (trace.run_info["rank"], trace.run_info["world_size"]) == (rank, 2)
        outside, joined = support.join_share(trace)
        assert joined == outside > 0
        counted.append((Counter(trace.kernels["name"].tolist()), support.by_name(trace.calls)))
        figures[f"rank {rank}: kernels, calls"] = [part.total() for part in counted[-1]]
    assert counted[0] == counted[1]


@pytest.mark.item(2)
def test_sessions_in_one_process(tmp_path: Path, figures: dict[str, Any]) -> None:
    """Two sessions to files and one without, in one process: each holds its own steps and nothing else."""
    steps = 12
    finished = support.succeed(support.run(support.job("sessions", "--out", tmp_path, "--steps", steps)))
    told = json.loads((tmp_path / "stats.json").read_text())
    assert finished.stdout == ""
    names = []
    for name, stats in zip(("first", "second"), told, strict=False):
        trace = support.whole(tmp_path / f"{name}.gpuperf")
        assert [step["index"] for step in trace.steps] == list(range(steps))
        assert {(step["samples"], step["tokens"]) for step in trace.steps} == {(64, 640)}
        assert [a["name"] for a in trace.annotations] == ["measured"]
        assert [m["name"] for m in trace.marks] == ["end"]
        assert [(c["name"], c["value"]) for c in trace.counters] == [("loss", 0.25)]
        assert len(trace.kernels["name"]) == stats["kernels"]
        assert len(trace.calls["name"]) == stats["calls"]
        names.append(Counter(trace.kernels["name"].tolist()))
    assert names[0] == names[1]
    assert told[2]["kernels"] == told[0]["kernels"]
    assert told[2]["written_bytes"] == 0
    assert [stats["state"] for stats in told] == ["stopped"] * 3
    assert sorted(path.name for path in tmp_path.glob("*.gpuperf*")) == ["first.gpuperf", "second.gpuperf"]
    figures["kernels of each session"] = [stats["kernels"] for stats in told]
    figures["stop: ms to detach CUPTI"] = [round(stats["finalize_ns"] / 1e6, 2) for stats in told]


@pytest.mark.item(2)
def test_device_times_lie_after_their_launches(tmp_path: Path, figures: dict[str, Any]) -> None:
    """Carried to the host clock by the trace's clock pairs, no kernel starts before its launch."""
    path = tmp_path / "run.gpuperf"
    support.succeed(support.run(support.traced(path, support.job("script", "--steps", 10))))
    trace = support.whole(path)
    pairs = np.array([(pair["device_ns"], pair["host_ns"]) for pair in trace.clock_pairs], dtype=np.int64)
    assert len(pairs) >= 2
    device, host = pairs[np.argsort(pairs[:, 0])].T
    origin = device[0]
    starts = trace.kernels["start"]
    on_host = np.interp(
        (starts - origin).astype(float), (device - origin).astype(float), (host - host[0]).astype(float)
    )
    calls = dict(zip(trace.calls["correlation"].tolist(), trace.calls["enter"].tolist(), strict=True))
    entered = np.array([calls[c] for c in trace.kernels["correlation"].tolist()]) - host[0]
    inside = (starts >= device[0]) & (starts <= device[-1])
    delay = (on_host - entered)[inside]
    figures["kernels"] = int(inside.sum())
    figures["shortest launch to start, µs"] = round(float(delay.min()) / 1000, 2)
    figures["widest clock pair, ns"] = max(pair["width_ns"] for pair in trace.clock_pairs)
    assert inside.sum() > 0.9 * len(starts)
    assert delay.min() > -5000  # ns: how well CUPTI itself carries GPU times to the host clock
    assert np.median(delay) > 0
