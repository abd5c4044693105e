#!/usr/bin/env python3
"""Writes docs/verification.md from the results of a GPU machine.

    tools/write_verification.py [--out docs/verification.md] TESTS.json [BENCH.json …]

TESTS.json is what the GPU suite writes (pytest tests/gpu --gpu-json), each BENCH.json what benchmarks/run.py --json
writes. The page says what was run where and when, and what came out; it is not edited by hand.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ITEMS = {
    1: "Against torch.profiler on the same seeded steps",
    2: "Both ways in: `gpuperf run` and `import gpuperf`",
    3: "C++ CUDA programs without Python, against their own account",
    4: "`kill -9` at random times",
    5: "Forked DataLoader workers and a torch.profiler session in mid-run",
    6: "`os._exit`, SIGTERM, and metadata against nvidia-smi",
    8: "NVTX",
    9: "CUDA graphs",
    10: "Contexts, streams, memory",
}
OUTCOMES = {"passed": "passed", "failed": "**FAILED**", "skipped": "skipped"}


def text_of(value: Any) -> str:
    """One figure as text."""
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".")
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(text_of, value)) or "none"
    if isinstance(value, dict):
        return "; ".join(f"{key} {text_of(item)}" for key, item in value.items()) or "none"
    return str(value)


def cell(value: Any) -> str:
    """Text that is safe inside a Markdown table."""
    return text_of(value).replace("|", "\\|").replace("\n", " ")


def tests_section(tests: list[dict[str, Any]]) -> list[str]:
    """The suite's results, item by item."""
    lines: list[str] = []
    for number, title in ITEMS.items():
        lines += [f"## {number}. {title}", ""]
        mine = [test for test in tests if test["item"] == number]
        if not mine:
            lines += ["Not run.", ""]
        for test in mine:
            name = test["id"].rsplit("::", 1)[-1]
            lines += [
                f"**{OUTCOMES[test['outcome']]}** `{name}` ({test['seconds']} s): {test['title']}".replace(
                    "****", "**"
                ),
                "",
            ]
            if test["outcome"] != "passed" and test["reason"]:
                lines += [f"> {' '.join(test['reason'].split())[:600]}", ""]
            if test["figures"]:
                lines += ["| figure | value |", "|---|---|"]
                lines += [f"| {cell(key)} | {cell(value)} |" for key, value in test["figures"].items()]
                lines += [""]
    return lines


def read_figures(path: Path, tree: str) -> list[dict[str, Any]]:
    """Figures with the tree they were taken on: BENCH.tree beside BENCH.json names it, else it is the tests'."""
    beside = path.with_suffix(".tree")
    taken_on = beside.read_text().strip() if beside.exists() else tree
    return [row | {"tree": taken_on} for row in json.loads(path.read_text())]


def bench_section(rows: list[dict[str, Any]], tree: str) -> list[str]:
    """The benchmark table; figures of another tree than the tests' say so."""
    lines = ["## 7. Speed and memory", ""]
    if not rows:
        return [*lines, "Not run.", ""]
    lines += ["How they are taken: [benchmarks/README.md](../benchmarks/README.md).", ""]
    lines += ["| figure | value | unit | must | aim | |", "|---|---:|---|---|---|---|"]
    for row in rows:
        sign = "≥" if row["better"] == "higher" else "≤"
        bar, aim = (f"{sign} {text_of(row[key])}" if row[key] is not None else "" for key in ("bar", "aim"))
        verdict = "" if row["bar"] is None else "reached" if row["ok"] else "**MISSED**"
        name = row["name"] if row["tree"] == tree else f"{row['name']} (tree `{row['tree']}`)"
        lines.append(f"| {name} | {text_of(row['value'])} | {row['unit']} | {bar} | {aim} | {verdict} |")
    return [*lines, ""]


def page(results: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """The whole page."""
    tests, machine = results["tests"], results["machine"]
    counts = {outcome: sum(test["outcome"] == outcome for test in tests) for outcome in OUTCOMES}
    bars = [row for row in rows if row["bar"] is not None]
    cards = sorted(set(machine["cards"])) or ["unknown"]
    lines = [
        "# Verification on a real GPU",
        "",
        "Written by `tools/write_verification.py` (`make gpu-test`); not edited by hand.",
        "",
        "| | |",
        "|---|---|",
        f"| tree | `{results['tree']}` |",
        f"| date | {results['date']} |",
        f"| card | {len(machine['cards'])} × {', '.join(cards)} |",
        f"| driver | {machine['driver']} |",
        *(f"| {key} | {machine[key]} |" for key in ("cuda", "torch", "python", "gpuperf", "cores") if key in machine),
        f"| command | `{results['command']}` |",
        f"| tests | {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped |",
        f"| figures with a bar | {sum(row['ok'] for row in bars)} of {len(bars)} reached |",
        "",
        *tests_section(tests),
        *bench_section(rows, results["tree"]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parents[1]
    parser.add_argument("--out", type=Path, default=root / "docs" / "verification.md")
    parser.add_argument("tests", type=Path, metavar="TESTS.json")
    parser.add_argument("benches", type=Path, nargs="*", metavar="BENCH.json")
    options = parser.parse_args(arguments)
    try:
        results = json.loads(options.tests.read_text())
        # A later file replaces figures of the same name.
        rows = {row["name"]: row for path in options.benches for row in read_figures(path, results["tree"])}
    except (OSError, ValueError) as error:
        print(f"write_verification: {error}", file=sys.stderr)
        return 3
    options.out.write_text(page(results, list(rows.values())))
    print(f"wrote {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
