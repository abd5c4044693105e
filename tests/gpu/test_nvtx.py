"""Item 8: NVTX of PyTorch and of other libraries in one job, exact."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import support

SAY = 200

JOB = """
import ctypes, json, sys
import torch
tool, one, two = map(ctypes.CDLL, sys.argv[1:4])
one.client_start.restype = ctypes.c_uint64
two.client_end.argtypes = [ctypes.c_uint64]
x = torch.ones(1024, device="cuda", requires_grad=True)
for i in range(200):
    torch.cuda.nvtx.range_push(f"step {i % 10}")
    with torch.cuda.nvtx.range("inner"):
        (x * 2).sum().backward()
    torch.cuda.nvtx.mark("mark")
    torch.cuda.nvtx.range_pop()
    one.client_push(None, b"one")
    two.client_push(b"library", b"two")
    two.client_pop(b"library")
    one.client_pop(None)
    two.client_end(one.client_start(b"across"))
torch.cuda.synchronize()
plain = tool.tool_pops()
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).cuda()
with torch.autograd.profiler.emit_nvtx():
    for _ in range(5):
        model(torch.ones(8, 64, device="cuda")).sum().backward()
torch.cuda.synchronize()
print(json.dumps({"plain": plain, "emit_nvtx": tool.tool_pops() - plain}))
"""


@pytest.mark.item(8)
def test_ranges_and_marks_are_exact(programs: Path, tmp_path: Path, figures: dict[str, Any]) -> None:
    """torch.cuda.nvtx, emit_nvtx and two libraries with an NVTX of their own; another tool behind us counts along."""
    path = tmp_path / "nvtx.gpuperf"
    libraries = [programs / f"libnvtx_{name}.so" for name in ("tool", "client", "client_2")]
    script = tmp_path / "nvtx_job.py"
    script.write_text(JOB)
    command = support.traced(path, [support.sys.executable, script, *libraries])
    finished = support.succeed(support.run(command, NVTX_INJECTION64_PATH=str(libraries[0])))
    told = json.loads(finished.stdout)
    trace = support.whole(path)
    names = Counter(row["name"] for row in trace.annotations)
    assert {names[f"step {i}"] for i in range(10)} == {SAY // 10}
    assert [names[name] for name in ("inner", "one", "two", "across")] == [SAY] * 4
    assert Counter(row["name"] for row in trace.marks)["mark"] == SAY
    # The other tool counts the pops of the default domain: torch's and the first library's.
    assert told["plain"] == 3 * SAY
    ours = sum(row["source"] == 1 and not (row["nvtx"] or {}).get("domain_iid") for row in trace.annotations)
    figures["ranges of torch.cuda.nvtx and two libraries"] = 5 * SAY
    figures["ranges of emit_nvtx, gpuperf's and the other tool's count"] = [ours - 3 * SAY, told["emit_nvtx"]]
    assert ours == told["plain"] + told["emit_nvtx"]
    assert told["emit_nvtx"] > 50
    assert not trace.lost()
