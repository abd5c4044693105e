"""Items 4 and 6: whatever ends the process, the trace is whole up to the last second."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import support
import trace_decode

KILLS = 20
AT_ONCE = 4
SECOND = 1_000_000_000


def progress(path: Path) -> tuple[int, int, npt.NDArray[np.uint64]]:
    """(launches, pid, stamps) of endless_loop's progress file."""
    words = np.memmap(path, dtype=np.uint64, mode="r")
    return int(words[0]), int(words[1]), words[2:]


def wait_for(path: Path, process: subprocess.Popen[bytes], errors: Path, timeout: float = 90) -> int:
    """Waits until the loop launches; returns its pid."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if path.exists() and path.stat().st_size > 16 and (pid := progress(path)[1]):
            return pid
        assert process.poll() is None, f"the loop ended with {process.returncode}\n{errors.read_text()[-2000:]}"
        time.sleep(0.02)
    raise AssertionError("the loop did not begin to launch")


def kill_one(number: int, programs: Path, folder: Path) -> dict[str, Any]:
    """Starts a loop, kills it at a random time, holds its trace against its progress file."""
    trace_file, progress_file = folder / f"{number}.gpuperf", folder / f"{number}.progress"
    seconds = random.Random(number).uniform(0.3, 4.0)
    command = support.traced(trace_file, [programs / "endless_loop", progress_file])
    with (folder / f"{number}.err").open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=support.environment())
        pid = 0
        try:
            pid = wait_for(progress_file, process, folder / f"{number}.err")
            time.sleep(seconds)
        finally:
            if pid:
                os.kill(pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait(timeout=30)
    launched, _, stamps = progress(progress_file)
    trace = trace_decode.read(trace_file) if trace_file.exists() else None  # None: killed before a chunk was due
    result = {"number": number, "seconds": seconds} | support.hold_loop(trace, launched, stamps)
    if trace is not None:
        report = support.run([*support.gpuperf_command(), "report", str(trace_file)])
        if report.returncode not in (0, 4):
            result["wrong"].append(f"gpuperf report ends with {report.returncode}: {report.stderr[-200:]}")
        trace_file.unlink()
    progress_file.unlink()
    return result


@pytest.mark.item(4)
def test_kill_9(programs: Path, tmp_path: Path, figures: dict[str, Any]) -> None:
    """20 × kill -9 at random times: every file opens, nothing committed is lost, at most 1 s is missing."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda number: kill_one(number, programs, tmp_path), range(KILLS)))
    figures["kills"] = len(results)
    figures["seconds until the kill"] = [round(r["seconds"], 2) for r in results]
    figures["launches made"] = sum(r["launches"] for r in results)
    figures["launches and kernels in the files"] = [sum(r[what] for r in results) for what in ("calls", "kernels")]
    figures["most missing, calls, s"] = round(max(r["missing calls, s"] for r in results), 3)
    figures["most missing, kernels, s"] = round(max(r["missing kernels, s"] for r in results), 3)
    figures["files with a torn tail"] = sum(r["tail bytes"] > 0 for r in results)
    assert not [(r["number"], r["wrong"]) for r in results if r["wrong"]]
    assert figures["most missing, calls, s"] <= 1.0
    assert figures["most missing, kernels, s"] <= 1.0


def end_one(end: str, way: str, folder: Path) -> dict[str, Any]:
    """A training that os._exit or SIGTERM ends in mid-run; what its trace holds of its steps."""
    out = folder / f"{end}-{way}"
    out.mkdir()
    trace_file = out / "trace.gpuperf"
    command = support.job("dying", "--out", out, "--seconds", 3.5 if end == "os._exit" else 0)
    command = support.traced(trace_file, command) if way == "run" else [*command, "--trace", str(trace_file)]
    with (out / "err").open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=support.environment())
        try:
            if end == "SIGTERM":
                deadline = time.monotonic() + 120
                while not (out / "stamps").exists() or (out / "stamps").stat().st_size == 0:
                    assert process.poll() is None, (out / "err").read_text()[-2000:]
                    assert time.monotonic() < deadline, "the job did not begin to train"
                    time.sleep(0.05)
                time.sleep(3.3)
                process.terminate()
            code = process.wait(timeout=150)
        finally:
            process.kill()
    assert (out / "stamps").exists(), f"exit code {code}\n{(out / 'err').read_text()[-2000:]}"
    stamps = np.frombuffer((out / "stamps").read_bytes(), dtype=np.uint64).astype(np.int64)
    trace = trace_decode.read(trace_file)
    launches = support.launches(trace)
    entered = trace.calls["enter"][launches]
    seen_until = max(chunk.header["last_host_ns"] for chunk in trace.chunks)
    # Steps (after the first ones) that ended more than a second before the process did.
    due = int((stamps <= stamps[-1] - SECOND).sum())
    per_step = np.histogram(entered, stamps[5:due])[0]
    of_due_steps = (entered > stamps[5]) & (entered < stamps[due - 1])
    correlations = trace.calls["correlation"][launches][of_due_steps]
    return {
        "name": f"{end}, {way}",
        "exit code": code,
        "steps": len(stamps),
        "missing, s": round(max(0, int(stamps[-1]) - seen_until) / SECOND, 3),
        "launches per step": sorted(set(per_step.tolist())),
        "launches without their kernel": int((~np.isin(correlations, trace.kernels["correlation"])).sum()),
        "losses": trace.lost(),
    }


@pytest.mark.item(6)
def test_ends_in_mid_run(tmp_path: Path, figures: dict[str, Any]) -> None:
    """os._exit and SIGTERM, both ways in: own exit code, whole up to the last second."""
    cases = [(end, way) for end in ("os._exit", "SIGTERM") for way in ("run", "import")]
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda case: end_one(case[0], case[1], tmp_path), cases))
    for result in results:
        figures[result["name"]] = {key: value for key, value in result.items() if key != "name"}
    for result in results:
        codes = (7,) if result["name"].startswith("os._exit") else (-signal.SIGTERM, 128 + signal.SIGTERM)
        assert result["exit code"] in codes
        assert result["missing, s"] <= 1.0
        assert len(result["launches per step"]) == 1, result
        assert result["launches per step"][0] > 500
        assert result["launches without their kernel"] == 0
        assert not result["losses"]


ZERO_TIMESTAMP = 4  # LossReason

STUCK = """
import sys, time, torch, gpuperf
x = torch.ones(1 << 20, device="cuda")
def work():
    for _ in range(100):
        x.add_(1)
work()
torch.cuda.synchronize()
assert gpuperf.start(sys.argv[1])
work()
torch.cuda._sleep(int(1.98e9 * 12))  # one kernel of some 12 s
began = time.perf_counter()
gpuperf.stop()
print(time.perf_counter() - began)
torch.cuda.synchronize()
assert gpuperf.start(sys.argv[2])
work()
gpuperf.stop()
"""


@pytest.mark.item(6)
def test_a_kernel_that_hangs_does_not_hold_up_the_stop(tmp_path: Path, figures: dict[str, Any]) -> None:
    """A kernel far longer than stop waits: stop comes back, it alone is lost and counted, the next session records."""
    first, second = tmp_path / "first.gpuperf", tmp_path / "second.gpuperf"
    done = support.run([sys.executable, "-c", STUCK, str(first), str(second)], GPUPERF_STOP_WAIT_MS="2000")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "the GPU was busy" in done.stderr
    figures["stop, s (limit 2 s)"] = round(float(done.stdout), 2)
    traces = [trace_decode.read(path) for path in (first, second)]
    kernels = [trace_decode.rows(trace.kernels) for trace in traces]
    figures["kernels before it, and in the next session"] = kernels
    figures["lost"] = [trace.lost() for trace in traces]
    assert float(done.stdout) < 7
    assert kernels == [100, 100]
    assert [trace.lost() for trace in traces] == [{ZERO_TIMESTAMP: 1}, {}]
    assert all(trace.clean for trace in traces)
