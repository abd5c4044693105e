"""From what training processes answer to figures: `overhead`, `tail`, `memory`, `real_trace`, without a GPU."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import overhead
import pytest
import run
from built import Unavailable
from figures import Row
from paired import Block, palindromes

COST = {"none": 1.0, "baseline": 1.10, "gpuperf": 1.122, "profiler-cuda": 1.4, "profiler-cpu-cuda": 1.8}
COST |= {"node": 2.5, "graph": 1.3}
MEMORY = {"none": (5, 0), "baseline": (60, 50), "gpuperf": (70, 52)}  # growth of host and GPU, MB


def training(command: str, workload: str, modes: str, *_: Any, **__: Any) -> dict[str, Any]:
    if command == "interleaved":
        order = palindromes(modes.split(","), 25)
        blocks = [{"mode": mode, "seconds": [0.010 * COST[mode]] * 100, "issue": [0.008] * 100} for mode in order]
        return {"workload": workload, "blocks": blocks, "gpuperf": {"kernels": 1000, "bytes": 12_000, "lost": 0}}
    host, gpu = MEMORY[modes]
    before = {"host": 10**9, "gpu": 2 * 10**9, "nvidia_smi": None}
    highest = {"host": 10**9 + host * 10**6, "gpu": 2 * 10**9 + gpu * 10**6, "nvidia_smi": None}
    answer = {"mode": modes, "before": before, "highest": highest, "pool_bytes": 25 * 10**6}
    return answer | {"kernels": 100, "calls": 200, "lost": 0, "file_bytes": 1250, "callback_ns": 20_000}


def take_turns(modes: Any, make: Any, units: int, *_: Any) -> list[Block]:
    return [Block(mode, [0.010 * COST[mode]] * 30) for mode in palindromes(modes, units)]


@pytest.fixture(autouse=True)
def no_gpu_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    overhead.sessions.cache_clear()
    monkeypatch.setattr(overhead, "require_gpu", lambda: None)
    monkeypatch.setattr(overhead, "find_built", Path)
    monkeypatch.setattr(overhead, "training", training)
    monkeypatch.setattr(overhead, "take_turns", take_turns)


def by_name(rows: list[Row]) -> dict[str, Row]:
    named = {row.name: row for row in rows}
    assert len(named) == len(rows)
    return named


def test_overhead() -> None:
    rows = by_name(overhead.overhead(["stress", "gpt2"], 10, 30, 4, 100))
    stress = rows["overhead.stress.vs_baseline"]
    assert stress.value == pytest.approx(1.02)
    assert (stress.bar, stress.aim, stress.ok) == (1.03, 1.01, True)
    assert rows["overhead.stress.vs_none"].value == pytest.approx(1.122)
    assert rows["overhead.stress.vs_none"].bar is None
    assert rows["overhead.stress.issue.none"].value == pytest.approx(8.0)
    assert not rows["overhead.gpt2.vs_baseline"].ok
    assert rows["overhead.gpt2.vs_none.upper95"].bar == 1.012
    assert rows["overhead.gpt2.baseline_vs_none"].value == pytest.approx(1.1)
    assert rows["overhead.stress.torch_profiler_cuda_vs_none"].value == pytest.approx(1.4)
    assert rows["overhead.gpt2.torch_profiler_cpu_cuda_vs_none"].value == pytest.approx(1.8)
    assert rows["overhead.gpt2.ratios"].value == 50
    assert rows["overhead.gpt2.ratios"].ok
    assert rows["overhead.gpt2.step.none"].value == pytest.approx(10)


def test_tail() -> None:
    rows = by_name(overhead.tail(100))
    assert rows["tail.gpt2.p999_ratio"].value == pytest.approx(1.122)
    assert rows["tail.gpt2.steps_each"].value == 5000
    assert rows["tail.gpt2.vs_none"].value == pytest.approx(1.122)
    assert rows["tail.gpt2.steps_each"].ok


def test_graphs() -> None:
    rows = by_name(overhead.graphs(8))
    assert rows["graphs.replay.none"].value == pytest.approx(10_000)
    assert rows["graphs.node_vs_none"].value == pytest.approx(2.5)
    assert rows["graphs.graph_vs_none.upper95"].value == pytest.approx(1.3)


def test_memory_and_real_trace() -> None:
    rows = by_name(overhead.memory() + overhead.real_trace())
    assert rows["memory.host"].value == pytest.approx(70 - (60 - 25))
    assert rows["memory.host"].ok
    assert rows["memory.gpu"].value == pytest.approx(52)
    assert "memory.gpu.nvidia_smi" not in rows
    assert rows["trace_size.gpu.bytes_per_kernel"].value == pytest.approx(12.5)
    assert rows["callback.gpu.estimated_mean"].value == pytest.approx(100)


def start(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["run.py", *arguments])
    return run.main()


def test_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures.json"
    assert start(monkeypatch, "memory", "tail", "--json", str(out)) == 0
    assert {"memory.host", "tail.gpt2.p999_ratio"} <= {row["name"] for row in json.loads(out.read_text())}
    assert "memory.gpu" in capsys.readouterr().out
    assert start(monkeypatch, "overhead", "--workload", "gpt2") == 1  # a bar is missed
    assert "MISSED" in capsys.readouterr().out


def test_what_cannot_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing(*_: Any) -> list[Row]:
        raise Unavailable("PyTorch sees no GPU")

    for name in ("memory", "graphs", "overhead", "real_trace"):
        monkeypatch.setattr(overhead, name, missing)
    for name in ("native", "import_time", "reader", "trace_size"):
        monkeypatch.setattr(run, name, missing)
    assert start(monkeypatch, "memory") == 6
    assert "memory: not run: PyTorch sees no GPU" in capsys.readouterr().out
    assert start(monkeypatch) == 0
    assert "tail" not in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        start(monkeypatch, "nonsense")
    assert stop.value.code == 2


def test_one_that_fails_does_not_cost_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> list[Row]:
        raise RuntimeError("broken")

    monkeypatch.setattr(overhead, "memory", broken)
    assert start(monkeypatch, "memory", "tail") == 1
    told = capsys.readouterr().out
    assert "memory: failed: broken" in told
    assert "tail.gpt2.p999_ratio" in told
