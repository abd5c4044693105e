"""The GPU suite: skipped without a GPU; every result and figure goes into one JSON file, as soon as it is there.

`make gpu-test` runs it. tools/write_verification.py makes docs/verification.md of the JSON file (--gpu-json, default
build/gpu-tests.json).
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import support

RESULTS = pytest.StashKey["Results"]()
FIGURES = pytest.StashKey[dict[str, Any]]()


class Results:
    """Writes the results file anew after every test: what was measured is kept, whatever happens next."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content: dict[str, Any] = {
            "tree": support.tree_hash(),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "command": support.command_line(sys.argv[1:]),
            "machine": support.machine(),
            "tests": [],
        }

    def add(self, result: dict[str, Any]) -> None:
        self._content["tests"].append(result)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self._content, indent=1, default=str) + "\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    default = support.ROOT / "build" / "gpu-tests.json"
    parser.addoption("--gpu-json", type=Path, default=default, help="results and figures of the GPU suite")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "item(number): which item of docs/verification.md the test belongs to")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    ours = [item for item in items if here in item.path.parents]
    reason = support.why_no_gpu() if ours else None
    for item in ours:
        item.add_marker(pytest.mark.gpu)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
    if ours and not reason:
        config.stash[RESULTS] = Results(config.getoption("--gpu-json"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    decided = report.when == "call" or (report.when == "setup" and not report.passed)
    results = item.config.stash.get(RESULTS, None)
    if decided and results is not None:
        marker = item.get_closest_marker("item")
        reason = str(call.excinfo.value) if call.excinfo is not None else ""
        results.add(
            {
                "id": item.nodeid,
                "item": marker.args[0] if marker else 0,
                "title": (item.function.__doc__ or item.name).strip().splitlines()[0],
                "outcome": report.outcome,
                "seconds": round(report.duration, 2),
                "figures": item.stash.get(FIGURES, {}),
                "reason": support.shortened(reason),
            }
        )
    return report


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What a test measured; goes into the results file, also when the test fails after it."""
    measured: dict[str, Any] = request.node.stash.setdefault(FIGURES, {})
    return measured


@pytest.fixture(scope="session")
def programs() -> Path:
    """Folder of the built CUDA programs."""
    given = os.environ.get("GPU_TEST_PROGRAMS")
    out = Path(given) if given else support.ROOT / "build" / "gpu-programs"
    command = ["make", "-j4", "-C", str(support.PROGRAMS), f"OUT={out.resolve()}"]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if built.returncode != 0:
        pytest.fail(f"the test programs cannot be built:\n{built.stdout[-2000:]}{built.stderr[-2000:]}")
    return out
