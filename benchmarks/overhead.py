"""What capture costs: `overhead`, `tail`, `graphs`, `memory` and the size of a real trace. Needs a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from built import Unavailable, find_built
from figures import Row, row
from paired import Block, Ratio, compare, palindromes, quantile

TRAINING = Path(__file__).with_name("training.py")
REPLAY = Path(__file__).with_name("graph_replay.py")
GRAPH_REPLAYS = 300
MEGABYTE = 1e6
FEWEST_RATIOS = 20
TAIL_STEPS = 5000
TAIL_BLOCK = 100  # short: a slow spell of the machine's host, some seconds long, must meet both modes alike


@cache
def require_gpu() -> None:
    """Raises Unavailable where no training can be measured."""
    code = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 9)"
    try:
        status = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120).returncode
    except subprocess.TimeoutExpired:
        raise Unavailable("PyTorch did not answer within 120 s whether there is a GPU") from None
    if status == 9:
        raise Unavailable("PyTorch sees no GPU")
    if status != 0:
        raise Unavailable("PyTorch is not installed in this Python")


def training(*arguments: str | float, timeout: float, keep: Path | None = None) -> dict[str, Any]:
    """Runs training.py and returns what it says; `keep` also gets it as it is, every step's time."""
    command = [sys.executable, str(TRAINING), *map(str, arguments)]
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=timeout)
    if finished.returncode != 0:
        raise RuntimeError(f"{' '.join(command[1:])} ended with {finished.returncode}")
    if keep is not None:
        keep.write_text(finished.stdout)
    answer: dict[str, Any] = json.loads(finished.stdout)
    return answer


def blocks_of(answer: dict[str, Any]) -> list[Block]:
    """The blocks of an answer of training.py."""
    return [Block(block["mode"], block["seconds"]) for block in answer["blocks"]]


def rows_of(name: str, ratio: Ratio) -> list[Row]:
    """A ratio with the two ends of its interval."""
    return [
        row(name, ratio.value, "ratio"),
        row(f"{name}.lower95", ratio.low, "ratio"),
        row(f"{name}.upper95", ratio.high, "ratio"),
    ]


class Server:
    """A process that runs blocks of a mode when told to."""

    def __init__(self, mode: str, script: Path, *arguments: str) -> None:
        self.mode = mode
        self._process = subprocess.Popen(
            [sys.executable, str(script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ready = False

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if error is None and self._process.returncode != 0:
            raise RuntimeError(f"the {self.mode} process ended with {self._process.returncode}")

    def block(self, steps: int) -> Block:
        """Runs one block."""
        assert self._process.stdin is not None
        if not self.ready and self._line() != "ready":
            raise RuntimeError(f"the {self.mode} process did not get ready")
        self.ready = True
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        return Block(self.mode, json.loads(self._line()))

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the {self.mode} process ended")
        return line.strip()


def take_turns(
    modes: Sequence[str], make: Callable[[str], Server], units: int, steps: int, time_limit: float
) -> list[Block]:
    """Blocks of modes that live in a process each, one process at a time."""
    deadline = time.monotonic() + time_limit
    blocks: list[Block] = []
    with ExitStack() as stack:
        servers = {mode: stack.enter_context(make(mode)) for mode in modes}
        for at, mode in enumerate(palindromes(modes, units)):
            if at % (2 * len(modes)) == 0 and at and time.monotonic() > deadline:
                blocks.append(servers[modes[0]].block(steps))
                break
            blocks.append(servers[mode].block(steps))
    return blocks


def overhead(
    workloads: Sequence[str], units: int, steps: int, profiler_units: int, time_limit: float, keep: Path | None = None
) -> list[Row]:
    """none, baseline and gpuperf in one process; torch.profiler against none in processes that take turns."""
    require_gpu()
    find_built("libgpuperf_baseline.so")
    rows: list[Row] = []
    for workload in workloads:
        answer = training(
            "interleaved", workload, "none,baseline,gpuperf", "--units", units, "--steps", steps, "--time-limit",
            time_limit, timeout=time_limit + 180, keep=keep and keep / f"overhead-{workload}.json",
        )  # fmt: skip
        blocks = blocks_of(answer)
        name = f"overhead.{workload}"
        to_baseline = compare(blocks, "gpuperf", "baseline")
        rows += rows_of(f"{name}.vs_baseline", to_baseline)
        rows += rows_of(f"{name}.vs_none", compare(blocks, "gpuperf", "none"))
        rows += rows_of(f"{name}.baseline_vs_none", compare(blocks, "baseline", "none"))
        for mode in ("none", "baseline", "gpuperf"):
            medians = [block.median for block in blocks if block.mode == mode]
            rows.append(row(f"{name}.step.{mode}", quantile(medians, 0.5) * 1e3, "ms"))
            issue = [second for block in answer["blocks"] if block["mode"] == mode for second in block["issue"]]
            rows.append(row(f"{name}.issue.{mode}", quantile(issue, 0.5) * 1e3, "ms"))
        rows.append(row(f"{name}.ratios", to_baseline.blocks, "ratios", better="higher", bar=FEWEST_RATIOS))
        rows.append(row(f"{name}.lost", answer["gpuperf"]["lost"], "records", bar=0))
        for mode in ("profiler-cuda", "profiler-cpu-cuda") if profiler_units else ():

            def server(mode: str, workload: str = workload) -> Server:
                return Server(mode, TRAINING, "server", workload, mode)

            taken = take_turns(("none", mode), server, profiler_units, steps, time_limit)
            rows += rows_of(f"{name}.torch_{mode.replace('-', '_')}_vs_none", compare(taken, mode, "none"))
    return rows


def tail(time_limit: float, keep: Path | None = None) -> list[Row]:
    """p99.9 of the gpt2 step with gpuperf and without CUPTI, ≥ 5,000 steps each, in blocks that alternate."""
    require_gpu()
    units = -(-TAIL_STEPS // (2 * TAIL_BLOCK))
    answer = training(
        "interleaved", "gpt2", "none,gpuperf", "--units", units, "--steps", TAIL_BLOCK, "--time-limit", time_limit,
        timeout=time_limit + 120, keep=keep and keep / "tail-gpt2.json",
    )  # fmt: skip
    blocks = blocks_of(answer)
    steps = {mode: [s for b in blocks if b.mode == mode for s in b.seconds] for mode in ("none", "gpuperf")}
    p999 = {mode: quantile(seconds, 0.999) for mode, seconds in steps.items()}
    fewest = min(len(seconds) for seconds in steps.values())
    return [
        row("tail.gpt2.p999_ratio", p999["gpuperf"] / p999["none"]),
        *(row(f"tail.gpt2.p999.{mode}", value * 1e3, "ms") for mode, value in p999.items()),
        *(row(f"tail.gpt2.p50.{mode}", quantile(seconds, 0.5) * 1e3, "ms") for mode, seconds in steps.items()),
        *rows_of("tail.gpt2.vs_none", compare(blocks, "gpuperf", "none")),
        row("tail.gpt2.steps_each", fewest, "steps", better="higher", bar=TAIL_STEPS),
    ]


def graphs(units: int) -> list[Row]:
    """A replay of a CUDA graph of 200 kernels, recorded node by node and as a whole, ÷ one without CUPTI."""
    require_gpu()
    modes = ("none", "node", "graph")
    taken = take_turns(modes, lambda mode: Server(mode, REPLAY, mode), units, GRAPH_REPLAYS, float("inf"))
    rows: list[Row] = []
    for mode in modes:
        medians = [block.median for block in taken if block.mode == mode]
        rows.append(row(f"graphs.replay.{mode}", quantile(medians, 0.5) * 1e6, "us"))
    for mode in modes[1:]:
        rows += rows_of(f"graphs.{mode}_vs_none", compare(taken, mode, "none"))
    return rows


@cache
def sessions() -> dict[str, dict[str, Any]]:
    """One session of 100 stress steps per mode, in a process each."""
    require_gpu()
    find_built("libgpuperf_baseline.so")
    modes = ("none", "baseline", "gpuperf")
    return {mode: training("session", "stress", mode, "--steps", 100, timeout=180) for mode in modes}


def memory() -> list[Row]:
    """Host memory that is ours, and GPU memory that CUPTI takes."""
    answers = sessions()

    def growth(mode: str, what: str) -> float:
        before, highest = answers[mode]["before"][what], answers[mode]["highest"][what]
        return float("nan") if before is None or highest is None else float(highest - before)

    cupti_host = growth("baseline", "host") - answers["baseline"]["pool_bytes"]
    rows = [
        # What the process grew by, less what it grows by for CUPTI itself (the baseline without its buffers).
        row("memory.host", (growth("gpuperf", "host") - cupti_host) / MEGABYTE),
        row("memory.host.process_growth", growth("gpuperf", "host") / MEGABYTE, "MB"),
        row("memory.host.cupti", cupti_host / MEGABYTE, "MB"),
        row("memory.host.untraced_growth", growth("none", "host") / MEGABYTE, "MB"),
        row("memory.gpu", growth("gpuperf", "gpu") / MEGABYTE),
        row("memory.gpu.baseline", growth("baseline", "gpu") / MEGABYTE, "MB"),
    ]
    smi = growth("gpuperf", "nvidia_smi")
    return rows + ([row("memory.gpu.nvidia_smi", smi / MEGABYTE, "MB")] if smi == smi else [])


def real_trace() -> list[Row]:
    """File size per kernel of 100 real stress steps, and the callback cost that gpuperf itself estimates."""
    answer = sessions()["gpuperf"]
    return [
        row("trace_size.gpu.bytes_per_kernel", answer["file_bytes"] / answer["kernels"]),
        row("trace_size.gpu.kernels", answer["kernels"], "kernels", better="higher"),
        row("callback.gpu.estimated_mean", answer["callback_ns"] / max(answer["calls"], 1), "ns"),
    ]
