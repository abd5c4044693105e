"""The PyTorch jobs of the GPU tests; each is an ordinary script that may be run with or without gpuperf."""

from __future__ import annotations

import argparse
import gc
import json
import os
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))

Step = Callable[[], None]


def copies() -> Step:
    """Copies in all directions, from pageable and pinned memory, and memory sets."""
    import torch

    torch.manual_seed(0)
    pinned = torch.randn(300_000).pin_memory()
    pageable = torch.randn(200_001)
    device = torch.empty(300_000, device="cuda")

    def step() -> None:
        device.copy_(pinned, non_blocking=True)
        device[:200_001].copy_(pageable)
        pinned.copy_(device, non_blocking=True)
        other = torch.empty_like(device)
        other.copy_(device)
        other.zero_()
        (other + device).sum().item()

    return step


def graph() -> Step:
    """A CUDA graph of 60 kernels, replayed, and one kernel beside it."""
    import torch

    torch.manual_seed(0)
    x = torch.randn(256, 256, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            y = (x @ x).relu()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = x
        for _ in range(30):
            y = (y @ x).relu()

    def step() -> None:
        captured.replay()
        x.add_(1e-6)

    return step


def workload(name: str) -> Step:
    """A training step, or one of the two above."""
    if name in ("copies", "graph"):
        return {"copies": copies, "graph": graph}[name]()
    import torch_steps

    step: Step = getattr(torch_steps, name)()
    return step


def summary(path: Path) -> dict[str, Any]:
    """What a torch.profiler trace holds: kernels by name with their time, copied and set bytes, events by category."""
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("ph") == "X"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    return {
        "kernels": Counter(e["name"] for e in kernels),
        "kernel_ns": round(sum(e["dur"] for e in kernels) * 1000),
        "copies": Counter(e["name"].split(" (")[0] for e in events if e.get("cat") == "gpu_memcpy"),
        "copy_bytes": sum(int(e["args"]["bytes"]) for e in events if e.get("cat") == "gpu_memcpy"),
        "memset_bytes": sum(int(e["args"]["bytes"]) for e in events if e.get("cat") == "gpu_memset"),
        "categories": Counter(e.get("cat", "") for e in events),
        "launches": sum(e["name"] == "cudaLaunchKernel" for e in events if e.get("cat") == "cuda_runtime"),
    }


def windows(options: argparse.Namespace) -> None:
    """Records equal windows of steps, several in one process, with gpuperf or with torch.profiler."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    step = workload(options.workload)
    for _ in range(10):
        step()
    gc.disable()
    for window in range(options.windows):
        path = options.out / f"{options.workload}-{window}"
        torch.cuda.synchronize()
        if options.mode == "gpuperf":
            import gpuperf

            assert gpuperf.start(path.with_suffix(".gpuperf"))
            for _ in range(options.steps):
                step()
                gpuperf.step()
            torch.cuda.synchronize()
            gpuperf.stop()
        else:
            with profile(activities=[ProfilerActivity.CUDA], acc_events=False) as profiler:
                for _ in range(options.steps):
                    step()
                torch.cuda.synchronize()
            profiler.export_chrome_trace(str(path.with_suffix(".chrome")))
            path.with_suffix(".json").write_text(json.dumps(summary(path.with_suffix(".chrome"))))
            path.with_suffix(".chrome").unlink()


def script(options: argparse.Namespace) -> None:
    """A whole script from import to exit, with NVTX; with --trace it starts gpuperf itself, first of all."""
    if options.trace:
        import gpuperf

        assert gpuperf.start(options.trace)
    import torch

    for name in ("stress", "copies", "graph"):
        step = workload(name)
        for _ in range(options.steps):
            with torch.cuda.nvtx.range(name):
                step()
        torch.cuda.nvtx.mark("next")
        torch.cuda.synchronize()
        print(name, options.steps)
    sys.exit(options.code)


def loader(options: argparse.Namespace) -> None:
    """A training with four forked DataLoader workers and a torch.profiler session in its middle."""
    if options.trace:
        import gpuperf

        assert gpuperf.start(options.trace)
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    data = TensorDataset(torch.randn(60 * 32, 128), torch.randint(10, (60 * 32,)))
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
    batches = iter(DataLoader(data, batch_size=32, num_workers=4, multiprocessing_context="fork"))

    def steps(count: int) -> None:
        for _ in range(count):
            x, y = next(batches)
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.cuda.synchronize()

    steps(20)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], acc_events=False) as profiler:
        steps(20)
    steps(20)
    chrome = options.out / "session.chrome"
    profiler.export_chrome_trace(str(chrome))
    (options.out / "session.json").write_text(json.dumps(summary(chrome)))
    assert next(batches, None) is None


def dying(options: argparse.Namespace) -> None:
    """Trains until it is killed, or until os._exit after some seconds; writes when each step had ended."""
    if options.trace:
        import gpuperf

        assert gpuperf.start(options.trace)
    import torch

    step = workload("stress")
    torch.cuda.synchronize()
    with (options.out / "stamps").open("wb", buffering=0) as stamps:
        begin = time.monotonic()
        while options.seconds == 0 or time.monotonic() < begin + options.seconds:
            step()
            torch.cuda.synchronize()
            stamps.write(struct.pack("<Q", time.monotonic_ns()))
        os._exit(7)


def sessions(options: argparse.Namespace) -> None:
    """Two sessions to files, one to nowhere, in one process."""
    import gpuperf
    import torch

    step = workload("stress")
    for _ in range(10):
        step()
    told: list[dict[str, Any]] = []
    for output in (options.out / "first.gpuperf", options.out / "second.gpuperf", None):
        torch.cuda.synchronize()
        assert gpuperf.start(output)
        with gpuperf.annotate("measured"):
            for _ in range(options.steps):
                step()
                gpuperf.step(samples=64, tokens=640)
            gpuperf.counter("loss", 0.25)
            gpuperf.mark("end")
        torch.cuda.synchronize()
        gpuperf.stop()
        told.append({**gpuperf.stats()._asdict(), "state": gpuperf.state})
    (options.out / "stats.json").write_text(json.dumps(told))


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=("windows", "script", "loader", "dying", "sessions"))
    parser.add_argument("--out", type=Path, default=Path.cwd())
    parser.add_argument("--workload", default="stress")
    parser.add_argument("--mode", choices=("gpuperf", "profiler"), default="gpuperf")
    parser.add_argument("--windows", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--code", type=int, default=0)
    parser.add_argument("--trace", type=Path)
    options = parser.parse_args()
    globals()[options.job](options)


if __name__ == "__main__":
    main()
