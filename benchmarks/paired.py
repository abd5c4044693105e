"""Statistics of interleaved measurements: paired ratios with a bootstrap interval."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    """Steps of one mode, measured one after the other."""

    mode: str
    seconds: Sequence[float]

    @property
    def median(self) -> float:
        """The median step."""
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Ratio:
    """A ratio of two modes: the median over blocks and its 95 % bootstrap interval."""

    value: float
    low: float
    high: float
    blocks: int


def palindromes(modes: Sequence[str], units: int) -> Iterator[str]:
    """The order of blocks: A B B A A B B A …, A B C C B A … : drift hits every mode alike.

    One block of the first mode follows at the end, so that every block of another mode has one of it on both sides.
    """
    for _ in range(units):
        yield from modes
        yield from reversed(modes)
    yield modes[0]


def paired_ratios(blocks: Sequence[Block], mode: str, reference: str) -> list[float]:
    """For every block of `mode`: its median step ÷ the mean of the medians of its two neighbours of mode `reference`.

    A neighbour is the nearest block of the reference before and after. A block that lacks one of the two is left out.
    """
    ratios = []
    for at, block in enumerate(blocks):
        if block.mode != mode:
            continue
        before = next((b for b in reversed(blocks[:at]) if b.mode == reference), None)
        after = next((b for b in blocks[at + 1 :] if b.mode == reference), None)
        if before is not None and after is not None:
            ratios.append(block.median / ((before.median + after.median) / 2))
    return ratios


def compare(blocks: Sequence[Block], mode: str, reference: str, seed: int = 0) -> Ratio:
    """The median paired ratio of two modes with its interval."""
    ratios = paired_ratios(blocks, mode, reference)
    if not ratios:
        raise ValueError(f"no block of {mode!r} lies between two of {reference!r}")
    low, high = bootstrap_interval(ratios, statistics.median, seed=seed)
    return Ratio(statistics.median(ratios), low, high, len(ratios))


def bootstrap_interval(
    values: Sequence[float],
    statistic: Callable[[Sequence[float]], float],
    confidence: float = 0.95,
    resamples: int = 4000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile bootstrap interval of a statistic; the same values and seed give the same interval."""
    draw = random.Random(seed)
    estimates = sorted(statistic(draw.choices(values, k=len(values))) for _ in range(resamples))
    tail = (1 - confidence) / 2
    return quantile(estimates, tail), quantile(estimates, 1 - tail)


def quantile(values: Sequence[float], q: float) -> float:
    """The q-quantile (0 … 1), linear between the two nearest values."""
    if not values:
        raise ValueError("a quantile of no values")
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
