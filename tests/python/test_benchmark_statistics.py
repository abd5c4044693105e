"""The statistics behind every overhead figure, and the rows that they end in."""

from __future__ import annotations

import random
import statistics

import pytest
from figures import FIGURES, as_json, reaches, row, table
from hypothesis import given, settings
from hypothesis import strategies as st
from paired import Block, bootstrap_interval, compare, paired_ratios, palindromes, quantile

STEPS = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=20)


def test_order_of_two_modes_is_abba() -> None:
    assert "".join(palindromes("AB", 2)) == "ABBAABBAA"
    assert "".join(palindromes("ABC", 1)) == "ABCCBAA"


def test_ratio_is_to_the_mean_of_both_neighbours() -> None:
    blocks = [Block("a", [1, 9, 2]), Block("b", [6.0]), Block("a", [4.0])]
    assert paired_ratios(blocks, "b", "a") == [6 / 3]


def test_neighbours_are_the_nearest_of_the_other_mode() -> None:
    blocks = [Block(mode, [value]) for mode, value in zip("ABCCBA", (10, 20, 30, 33, 22, 14), strict=True)]
    assert paired_ratios(blocks, "C", "B") == [30 / 21, 33 / 21]
    assert paired_ratios(blocks, "C", "A") == [30 / 12, 33 / 12]


def test_a_block_without_both_neighbours_is_left_out() -> None:
    blocks = [Block("b", [1]), Block("a", [1]), Block("b", [3]), Block("a", [2]), Block("b", [5])]
    assert paired_ratios(blocks, "b", "a") == [2.0]
    with pytest.raises(ValueError, match="no block of 'c'"):
        compare(blocks, "c", "a")


@pytest.mark.parametrize("drift", [0.0, 0.01, -0.01])
def test_linear_drift_cancels(drift: float) -> None:
    blocks = []
    for at, mode in enumerate(palindromes(["none", "baseline", "gpuperf"], 10)):
        cost = {"none": 1.0, "baseline": 1.10, "gpuperf": 1.12}[mode]
        blocks.append(Block(mode, [cost * (1 + drift * at)] * 31))
    assert compare(blocks, "gpuperf", "none").blocks == 20
    assert compare(blocks, "gpuperf", "none").value == pytest.approx(1.12, rel=1e-3)
    assert compare(blocks, "gpuperf", "baseline").value == pytest.approx(1.12 / 1.10, rel=2e-3)


def test_outliers_do_not_move_the_ratio() -> None:
    draw = random.Random(1)
    blocks = []
    for mode in palindromes("AB", 15):
        steps = [(1.05 if mode == "B" else 1.0) * draw.gauss(1, 0.002) for _ in range(30)]
        steps[draw.randrange(30)] *= 50
        blocks.append(Block(mode, steps))
    ratio = compare(blocks, "B", "A")
    assert ratio.low <= 1.05 <= ratio.high
    assert ratio.high - ratio.low < 0.004


def test_bootstrap_is_repeatable_and_covers() -> None:
    draw = random.Random(7)
    covered = 0
    for trial in range(60):
        values = [draw.gauss(0, 1) for _ in range(25)]
        interval = bootstrap_interval(values, statistics.fmean, resamples=400, seed=trial)
        assert interval == bootstrap_interval(values, statistics.fmean, resamples=400, seed=trial)
        covered += interval[0] <= 0 <= interval[1]
    assert covered >= 50


@settings(deadline=None)
@given(STEPS)
def test_bootstrap_lies_within_the_values(values: list[float]) -> None:
    low, high = bootstrap_interval(values, statistics.median, resamples=50)
    assert min(values) <= low <= high <= max(values)


@settings(deadline=None)
@given(STEPS, st.floats(0, 1))
def test_quantile(values: list[float], q: float) -> None:
    assert min(values) <= quantile(values, q) <= max(values)
    assert quantile(values, 0) == min(values)
    assert quantile(values, 1) == max(values)
    assert quantile(values, 0.5) == pytest.approx(statistics.median(values))


def test_rows() -> None:
    assert not row("overhead.stress.vs_baseline", 1.0301).ok
    assert row("overhead.stress.vs_baseline", 1.03).ok
    assert row("collector.kernels_per_second", 2e6).ok
    assert not row("collector.kernels_per_second", 1.99e6).ok
    assert not reaches(float("nan"), "lower", None)
    made = row("something.else", 3, "ms", bar=2)
    assert as_json([made]) == [
        {"name": "something.else", "value": 3, "unit": "ms", "better": "lower", "bar": 2, "aim": None, "ok": False}
    ]
    lines = table([made, row("import_time", 12.5)]).splitlines()
    assert lines[1].split() == ["something.else", "3", "ms", "≤", "2", "MISSED"]
    assert lines[2].split() == ["import_time", "12.5", "ms", "≤", "50", "ok"]
    assert all(figure.better in ("lower", "higher") for figure in FIGURES.values())
