"""The figures that gpuperf is held to: names, units, bars and aims in one table, and the rows that a run makes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """What a figure must reach. `bar` None: reported only."""

    unit: str
    better: str  # "lower" or "higher"
    bar: float | None = None
    aim: float | None = None


# Names are stable: scripts compare them over time.
FIGURES: dict[str, Figure] = {
    "overhead.stress.vs_baseline": Figure("ratio", "lower", 1.03, 1.01),
    "overhead.stress.vs_none": Figure("ratio", "lower", None, 1.15),
    "overhead.gpt2.vs_baseline": Figure("ratio", "lower", 1.004, 1.002),
    "overhead.gpt2.vs_none.upper95": Figure("ratio", "lower", 1.012, 1.008),
    "tail.gpt2.p999_ratio": Figure("ratio", "lower", 1.2),
    "callback.p50": Figure("ns", "lower", 100),
    "callback.p999": Figure("ns", "lower", 1000),
    "ring.push.p50": Figure("ns", "lower", 15),
    "ring.push.p999": Figure("ns", "lower", 500),
    "trace_size.bytes_per_kernel": Figure("B", "lower", 16, 13),
    "trace_size.gpu.bytes_per_kernel": Figure("B", "lower", 16, 13),
    "collector.kernels_per_second": Figure("1/s", "higher", 2e6, 5e6),
    "reader.kernels_per_second": Figure("1/s", "higher", 3e6, 5e6),
    "memory.host": Figure("MB", "lower", 48),
    "memory.gpu": Figure("MB", "lower", 64),
    "import_time": Figure("ms", "lower", 50),
}


@dataclass(frozen=True)
class Row:
    """One measured figure."""

    name: str
    value: float
    unit: str
    better: str
    bar: float | None
    aim: float | None
    ok: bool


def row(name: str, value: float, unit: str = "", better: str = "lower", **limits: float | None) -> Row:
    """Makes the row of a figure. A name that FIGURES holds has its unit, bar and aim from there."""
    figure = FIGURES.get(name) or Figure(unit, better, limits.get("bar"), limits.get("aim"))
    return Row(
        name, value, figure.unit, figure.better, figure.bar, figure.aim, reaches(value, figure.better, figure.bar)
    )


def reaches(value: float, better: str, bar: float | None) -> bool:
    """Is the value on the right side of the bar? Not a number never is."""
    if math.isnan(value):
        return False
    if bar is None:
        return True
    return value >= bar if better == "higher" else value <= bar


def as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows as `--json` writes them."""
    return [asdict(r) for r in rows]


def table(rows: Iterable[Row]) -> str:
    """The rows as one text table."""
    head = ("figure", "value", "unit", "bar", "aim", "")
    lines = [head]
    for r in rows:
        sign = "≥" if r.better == "higher" else "≤"
        bar, aim = (f"{sign} {_number(limit)}" if limit is not None else "" for limit in (r.bar, r.aim))
        verdict = "" if r.bar is None else "ok" if r.ok else "MISSED"
        lines.append((r.name, _number(r.value), r.unit, bar, aim, verdict))
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    out = []
    for line in lines:
        name, value, *rest = (
            cell.rjust(w) if i == 1 else cell.ljust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        out.append("  ".join((name, value, *rest)).rstrip())
    return "\n".join(out)


def _number(value: float) -> str:
    if value >= 1e5:
        return f"{value:,.0f}"
    return f"{value:.4f}".rstrip("0").rstrip(".") if value == value else "nan"
