"""Item 5: forked DataLoader workers, and a torch.profiler session in the middle of a run."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import support


@pytest.mark.item(5)
def test_dataloader_and_torch_profiler(tmp_path: Path, figures: dict[str, Any]) -> None:
    """The job ends well; torch.profiler has as many events as without gpuperf; the children stay silent."""
    folders = {way: tmp_path / way for way in ("alone", "run", "import")}
    commands = {}
    for way, folder in folders.items():
        folder.mkdir()
        commands[way] = support.job("loader", "--out", folder)
    commands["run"] = support.traced(folders["run"] / "trace.gpuperf", commands["run"])
    commands["import"] += ["--trace", str(folders["import"] / "trace.gpuperf")]
    with ThreadPoolExecutor() as pool:
        finished = dict(zip(commands, pool.map(support.run, commands.values()), strict=True))
    told = {}
    for way, folder in folders.items():
        support.succeed(finished[way])
        told[way] = json.loads((folder / "session.json").read_text())
        figures[f"{way}: torch.profiler's kernels"] = sum(told[way]["kernels"].values())
        figures[f"{way}: its events by category"] = told[way]["categories"]
    assert figures["alone: torch.profiler's kernels"] > 0
    for way in ("run", "import"):
        assert told[way]["kernels"] == told["alone"]["kernels"]
        assert told[way]["copies"] == told["alone"]["copies"]
        assert told[way]["copy_bytes"] == told["alone"]["copy_bytes"]
        assert told[way]["launches"] == told["alone"]["launches"]
        assert told[way]["categories"].get("cuda_runtime") == told["alone"]["categories"].get("cuda_runtime")
        assert [path.name for path in folders[way].glob("*.gpuperf*")] == ["trace.gpuperf"]
        trace = support.whole(folders[way] / "trace.gpuperf")
        figures[f"{way}: kernels recorded before the session"] = len(trace.kernels["name"])
        assert len(trace.kernels["name"]) > 0
        assert support.YIELDED in [outage["reason"] for outage in trace.outages]
        assert "torch.profiler" in finished[way].stderr
        assert len(set(trace.calls["tid"].tolist())) >= 1
