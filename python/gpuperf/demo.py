"""A small PyTorch training to try gpuperf on: `gpuperf run -- python -m gpuperf.demo`."""

from __future__ import annotations

import argparse
import sys

import gpuperf


def main(argv: list[str] | None = None) -> int:
    """Trains a small classifier on random numbers; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m gpuperf.demo", description=__doc__)
    parser.add_argument("--steps", type=int, default=200, help="training steps (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=256, help="samples a step (default: %(default)s)")
    options = parser.parse_args(argv)
    try:
        import torch
    except ImportError:
        print("gpuperf.demo: needs PyTorch (pip install torch)", file=sys.stderr)
        return 6
    if not torch.cuda.is_available():
        print("gpuperf.demo: PyTorch sees no GPU", file=sys.stderr)
        return 6

    torch.manual_seed(0)
    layers: list[torch.nn.Module] = []
    for _ in range(6):
        layers += [torch.nn.Linear(1024, 1024), torch.nn.LayerNorm(1024), torch.nn.GELU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    images = torch.randn(16 * options.batch, 1024).pin_memory()
    labels = torch.randint(10, (16 * options.batch,)).pin_memory()

    loss = 0.0
    for step in range(options.steps):
        start = step % 16 * options.batch
        batch = slice(start, start + options.batch)
        output = model(images[batch].cuda(non_blocking=True))
        error = torch.nn.functional.cross_entropy(output, labels[batch].cuda(non_blocking=True))
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        loss = error.item()
        gpuperf.step(samples=options.batch)
        if step == options.steps // 2:
            with gpuperf.annotate("checkpoint"):
                state = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
                print(f"step {step}: loss {loss:.3f}, {sum(t.numel() for t in state.values()):,} values saved")
    print(f"step {options.steps}: loss {loss:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
