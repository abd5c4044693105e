"""Runs reference steps in this process and says how long each took. run.py starts it; it prints one JSON object.

    python benchmarks/training.py interleaved WORKLOAD MODE,MODE… [--units N] [--steps N] [--time-limit S]
        blocks of the modes in turn, A B C C B A: {"blocks": [{"mode", "seconds": […], "issue": […]}]}
    python benchmarks/training.py session WORKLOAD MODE [--steps N]
        one session of a mode: host and GPU memory before it and in it, what was recorded
    python benchmarks/training.py server WORKLOAD MODE
        blocks on demand: a number of steps per line on stdin, the seconds of each step per line on stdout. Two servers
        taking turns compare modes that cannot share a process (torch.profiler does not give the speed back).

The way to measure is torch_steps.py's: 15 warm-up steps, Python's GC off, a device synchronize after every step. After
a mode is switched some steps run unmeasured, in every mode alike: allocations at a session's begin are not its pace.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch_steps
from capture_modes import Baseline, Gpuperf, Mode, nothing
from paired import palindromes

WARM_UP = 15
SETTLE = 5


class Training:
    """A workload that is warm and ready to be timed."""

    def __init__(self, workload: str, device: str = "cuda") -> None:
        self._step: Callable[[], None] = getattr(torch_steps, workload)(device)
        self._synchronize: Callable[[], None] = torch.cuda.synchronize if device == "cuda" else lambda: None
        self.issue: list[float] = []  # of the last run, per step: seconds until all its work was issued
        self.run(WARM_UP)

    def run(self, steps: int) -> list[float]:
        """Runs steps; the seconds of each."""
        clock = time.perf_counter_ns
        seconds = []
        self.issue = []
        for _ in range(steps):
            begin = clock()
            self._step()
            issued = clock()
            self._synchronize()
            seconds.append((clock() - begin) / 1e9)
            self.issue.append((issued - begin) / 1e9)
        return seconds

    def block(self, mode: Mode, steps: int) -> list[float]:
        """Runs one measured block in a mode."""
        gc.collect()
        mode.start()
        try:
            self.run(SETTLE)
            return self.run(steps)
        finally:
            mode.stop()


def torch_profiler(*, cpu: bool) -> Mode:
    """A torch.profiler session."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CUDA] + ([ProfilerActivity.CPU] if cpu else [])
    session: list[profile] = []

    def start() -> None:
        session.append(profile(activities=activities, acc_events=False))
        session[0].start()

    def stop() -> None:
        session.pop().stop()

    return Mode("profiler-cpu-cuda" if cpu else "profiler-cuda", start, stop)


class Modes:
    """Makes modes by name, and keeps the two that count something."""

    def __init__(self, folder: Path) -> None:
        self.baseline: Baseline | None = None
        self.gpuperf = Gpuperf(folder)

    def make(self, name: str) -> Mode:
        """The mode of this name."""
        if name == "none":
            return nothing()
        if name == "baseline":
            self.baseline = Baseline()
            return self.baseline.mode()
        if name == "gpuperf":
            return self.gpuperf.mode()
        if name in ("profiler-cuda", "profiler-cpu-cuda"):
            return torch_profiler(cpu=name == "profiler-cpu-cuda")
        raise ValueError(f"no mode {name!r}")


@contextmanager
def trace_folder() -> Iterator[Path]:
    """A folder on disk for traces, not in memory: beside the build, where that can be written."""
    build = Path(__file__).resolve().parents[1] / "build"
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=build) as folder:
        yield Path(folder)


def interleaved(options: argparse.Namespace) -> dict[str, Any]:
    """Blocks of several modes in one process."""
    names = options.modes.split(",")
    deadline = time.monotonic() + options.time_limit
    blocks: list[dict[str, Any]] = []
    with trace_folder() as folder:
        makers = Modes(folder)
        training = Training(options.workload, options.device)
        modes = {name: makers.make(name) for name in names}
        unit = 2 * len(names)
        for at, name in enumerate(palindromes(names, options.units)):
            if at % unit == 0 and time.monotonic() > deadline:
                print(f"{options.workload}: time limit after {at} blocks", file=sys.stderr)
                if at:  # the closing block of the first mode
                    seconds = training.block(modes[names[0]], options.steps)
                    blocks.append({"mode": names[0], "seconds": seconds, "issue": training.issue})
                break
            seconds = training.block(modes[name], options.steps)
            blocks.append({"mode": name, "seconds": seconds, "issue": training.issue})
        gpuperf = makers.gpuperf
        counts = {"kernels": gpuperf.kernels, "bytes": gpuperf.bytes, "lost": gpuperf.lost}
    return {"workload": options.workload, "blocks": blocks, "gpuperf": counts}


def resident_bytes() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def gpu_bytes() -> int:
    """Memory in use on the GPU, by whomever."""
    free, total = torch.cuda.mem_get_info()
    return int(total) - int(free)


def nvidia_smi_bytes() -> int | None:
    """The same as nvidia-smi tells it."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    number = re.match(r"\s*(\d+)", told)
    return int(number.group(1)) << 20 if number else None


def session(options: argparse.Namespace) -> dict[str, Any]:
    """One session; memory of host and GPU just before it and at its highest."""
    with trace_folder() as folder:
        training = Training(options.workload, options.device)
        training.run(options.steps)  # the allocators of host and GPU reach their final size
        gc.collect()
        before = {"host": resident_bytes(), "gpu": gpu_bytes(), "nvidia_smi": nvidia_smi_bytes()}
        makers = Modes(folder)
        mode = makers.make(options.mode)
        highest: dict[str, Any] = {"host": 0, "gpu": 0, "nvidia_smi": 0}
        mode.start()
        for _ in range(10):
            training.run(-(-options.steps // 10))
            highest["host"] = max(highest["host"], resident_bytes())
            highest["gpu"] = max(highest["gpu"], gpu_bytes())
        highest["nvidia_smi"] = nvidia_smi_bytes()
        mode.stop()
        result = {"mode": options.mode, "before": before, "highest": highest}
        if makers.baseline is not None:
            result["pool_bytes"] = makers.baseline.pool_bytes()
        if options.mode == "gpuperf":
            import gpuperf

            stats = gpuperf.stats()
            result |= {"kernels": stats.kernels, "calls": stats.calls, "lost": stats.lost}
            result |= {"file_bytes": makers.gpuperf.bytes, "callback_ns": stats.callback_ns}
    return result


def serve(options: argparse.Namespace) -> None:
    """Blocks on demand."""
    with trace_folder() as folder:
        training = Training(options.workload, options.device)
        mode = Modes(folder).make(options.mode)
        print("ready", flush=True)
        for line in sys.stdin:
            print(json.dumps(training.block(mode, int(line))), flush=True)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("interleaved", "session", "server"):
        command = commands.add_parser(name)
        command.add_argument("workload", choices=("stress", "gpt2"))
        command.add_argument("modes" if name == "interleaved" else "mode")
        command.add_argument("--steps", type=int, default=30)
        command.add_argument("--units", type=int, default=10)
        command.add_argument("--time-limit", type=float, default=1e9)
        command.add_argument("--device", default="cuda", help="cpu: to rehearse without a GPU")
    options = parser.parse_args()
    gc.disable()
    # The answer goes to the real stdout; whatever libraries print there goes to stderr.
    answer, sys.stdout = sys.stdout, sys.stderr
    if options.command == "server":
        sys.stdout = answer
        serve(options)
        return
    result = interleaved(options) if options.command == "interleaved" else session(options)
    json.dump(result, answer)


if __name__ == "__main__":
    main()
