"""What the recorder records: python workloads.py stress|mixed|gpt2 [--steps N] [--warmup N]; needs a GPU."""

import argparse
import pathlib
import sys
import threading

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))


def run_steps(name: str, steps: int, warmup: int) -> None:
    """A reference training step of benchmarks/torch_steps.py, the device synchronized after every step."""
    import torch_steps

    step = getattr(torch_steps, name)()
    for _ in range(warmup + steps):
        step()
        torch.cuda.synchronize()


def copies(rounds: int) -> None:
    """Copies of every direction and kind of host memory, memsets."""
    device = torch.empty(1 << 20, device="cuda")
    other = torch.empty_like(device)
    pageable = torch.ones(1 << 20)
    pinned = torch.ones(1 << 20, pin_memory=True)
    for size in [1, 1000, 1 << 14, 1 << 20] * rounds:
        device[:size].copy_(pageable[:size])
        device[:size].copy_(pinned[:size], non_blocking=True)
        other[:size].copy_(device[:size])
        pageable[:size].copy_(other[:size])
        pinned[:size].copy_(other[:size], non_blocking=True)
        other.zero_()
        torch.cuda.synchronize()
    square = torch.ones(512, 512)[:, :256].cuda()[:, :100].cpu()
    assert square.sum().item() == 512 * 100


def two_streams(rounds: int) -> None:
    """Kernels on two streams, held together by events; stream and event synchronizes."""
    first, second = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
    x = torch.randn(256, 256, device="cuda")
    torch.cuda.synchronize()
    for _ in range(rounds):
        ready, done = torch.cuda.Event(), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(first):
            y = x @ x
            ready.record()
        with torch.cuda.stream(second):
            second.wait_event(ready)
            z = (y + x).relu()
            done.record()
        done.synchronize()
        first.synchronize()
        del y, z
    torch.cuda.synchronize()


def graph(replays: int) -> None:
    """A captured graph: kernels, a memset and a copy as nodes; replayed."""
    x = torch.randn(128, 128, device="cuda")
    out = torch.empty_like(x)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        out.copy_((x @ x).relu())
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = x
        for _ in range(10):
            y = (y @ x).tanh()
        out.zero_()
        out.copy_(y)
    for _ in range(replays):
        captured.replay()
    torch.cuda.synchronize()


def two_threads(rounds: int) -> None:
    """Two threads, each with its own stream, launching at once."""

    def work(seed: int) -> None:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = torch.full((64, 64), float(seed), device="cuda")
            for i in range(rounds):
                x = (x * 0.5 + 1).sin()
                if i % 16 == 0:
                    stream.synchronize()
        stream.synchronize()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def mixed() -> None:
    """A little of everything that a training job does with CUDA."""
    copies(3)
    two_streams(40)
    graph(20)
    two_threads(150)
    torch.cuda.empty_cache()
    torch.cuda.synchronize()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=["stress", "mixed", "gpt2"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    args = parser.parse_args()
    if args.workload == "mixed":
        mixed()
    else:
        run_steps(args.workload, args.steps, args.warmup)


if __name__ == "__main__":
    main()
