"""Item 3: C++ CUDA programs without Python, equal to their own account of every call, per thread and in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import support
import trace_decode


@pytest.mark.item(3)
@pytest.mark.parametrize("program", ["launch_threads", "copies", "driver_calls"])
@pytest.mark.parametrize("way", ["run", "injection"])
def test_equal_to_its_own_account(
    program: str, way: str, programs: Path, tmp_path: Path, figures: dict[str, Any]
) -> None:
    """Every call, operand, result and device record of a program that keeps its own log."""
    path, log_file = tmp_path / "trace.gpuperf", tmp_path / "log"
    command = [str(programs / program), str(log_file)]
    if way == "run":
        finished = support.run(support.traced(path, command))
    else:
        finished = support.run(command, CUDA_INJECTION64_PATH=support.library(), GPUPERF_OUTPUT=str(path))
    support.succeed(finished)
    assert finished.stdout == ""
    trace = support.whole(path)
    log = support.read_log(log_file)
    figures["program"] = f"{program}, by {way}"
    figures["threads"] = len(log)
    figures["calls in the program's log"] = sum(map(len, log.values()))
    figures["kernels, copies, memory sets"] = [
        trace_decode.rows(table) for table in (trace.kernels, trace.copies, trace.memsets)
    ]
    wrong = support.hold_calls(trace, log)
    figures["calls that differ"] = len(wrong)
    assert not wrong, "\n".join(wrong)
    wrong = support.hold_device_work(trace, log)
    figures["device records that differ"] = len(wrong)
    assert not wrong, "\n".join(wrong[:20])
    if program == "launch_threads":
        assert len(log) == 8
