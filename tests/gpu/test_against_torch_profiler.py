"""Item 1: the same seeded steps, recorded by gpuperf in one process and by torch.profiler in another."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import support

WINDOWS = 3
COPY_NAMES = {1: "Memcpy HtoD", 2: "Memcpy DtoH", 8: "Memcpy DtoD", 9: "Memcpy HtoH", 10: "Memcpy PtoP"}


@pytest.mark.item(1)
@pytest.mark.parametrize(("workload", "steps"), [("stress", 20), ("gpt2", 10), ("copies", 20), ("graph", 20)])
def test_equal_to_torch_profiler(workload: str, steps: int, tmp_path: Path, figures: dict[str, Any]) -> None:
    """Kernels, kernel time and copied bytes equal torch.profiler's; every kernel has its launch."""
    arguments = ("--out", tmp_path, "--workload", workload, "--windows", WINDOWS, "--steps", steps)
    for mode in ("gpuperf", "profiler"):
        support.succeed(support.run(support.job("windows", "--mode", mode, *arguments)))
    figures["workload"] = f"{workload}, {steps} steps, {WINDOWS} windows"
    ours, theirs = [], []
    for window in range(WINDOWS):
        trace = support.whole(tmp_path / f"{workload}-{window}.gpuperf")
        told = json.loads((tmp_path / f"{workload}-{window}.json").read_text())
        kernels = Counter(map(support.demangle, trace.kernels["name"].tolist()))
        copies = Counter(COPY_NAMES[kind] for kind in trace.copies["copy_kind"].tolist()) if trace.copies else Counter()
        outside, joined = support.join_share(trace)
        ours.append(int((trace.kernels["end"] - trace.kernels["start"]).sum()))
        theirs.append(told["kernel_ns"])
        figures["kernels"] = kernels.total()
        figures["kernels of torch.profiler"] = sum(told["kernels"].values())
        figures["copied bytes"] = int(trace.copies["bytes"].sum()) if trace.copies else 0
        figures["copied bytes of torch.profiler"] = told["copy_bytes"]
        figures["kernels outside graphs"], figures["of these joined to their launch"] = outside, joined

        assert kernels.total() == sum(told["kernels"].values())
        assert kernels == Counter(told["kernels"])
        assert figures["copied bytes"] == told["copy_bytes"]
        assert copies == Counter(told["copies"])
        assert (int(trace.memsets["bytes"].sum()) if trace.memsets else 0) == told["memset_bytes"]
        assert len(trace.steps) == steps
        assert joined == outside > 0
    figures["kernel time ÷ torch.profiler's"] = statistics.median(ours) / statistics.median(theirs)
    assert abs(figures["kernel time ÷ torch.profiler's"] - 1) <= 0.02
