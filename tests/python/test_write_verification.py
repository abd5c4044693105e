"""docs/verification.md: what the generator makes of results, failures included."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "write_verification.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_verification", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def results(*tests: dict[str, Any]) -> dict[str, Any]:
    return {
        "tree": "abc123",
        "date": "2026-01-02 03:04 UTC",
        "command": "python -m pytest tests/gpu",
        "machine": {"cards": ["NVIDIA H200"], "driver": "580.1", "torch": "2.11.0", "python": "3.12.3"},
        "tests": list(tests),
    }


def one_test(outcome: str, **more: Any) -> dict[str, Any]:
    plain = {"id": "tests/gpu/test_x.py::test_kill[a]", "item": 4, "title": "Every file opens.", "outcome": outcome}
    return plain | {"seconds": 1.5, "figures": {}, "reason": ""} | more


def test_page(tool: ModuleType, tmp_path: Path) -> None:
    tests, first, second = tmp_path / "tests.json", tmp_path / "a.json", tmp_path / "b.json"
    failed = one_test("failed", reason="assert 3 ==\n 4", figures={"most | missing, s": 1.25, "kills": 2000})
    tests.write_text(json.dumps(results(one_test("passed"), failed, one_test("skipped", item=6))))
    row = {"name": "ring.push.p50", "value": 14.0, "unit": "ns", "better": "lower", "bar": 15, "aim": None, "ok": True}
    first.write_text(json.dumps([row | {"value": 16.0, "ok": False}]))
    second.write_text(json.dumps([row, row | {"name": "b", "value": 3, "better": "higher", "bar": 5, "ok": False}]))
    out = tmp_path / "page.md"
    assert tool.main(["--out", str(out), str(tests), str(first), str(second)]) == 0
    page = out.read_text()
    for expected in (
        "| tree | `abc123` |",
        "| card | 1 × NVIDIA H200 |",
        "| tests | 1 passed, 1 failed, 1 skipped |",
        "| figures with a bar | 1 of 2 reached |",
        "**FAILED** `test_kill[a]` (1.5 s): Every file opens.",
        "> assert 3 == 4",
        "| most \\| missing, s | 1.25 |",
        "| kills | 2,000 |",
        "| ring.push.p50 | 14 | ns | ≤ 15 |  | reached |",
        "| b | 3 | ns | ≥ 5 |  | **MISSED** |",
    ):
        assert expected in page
    assert "16" not in page
    assert page.count("Not run.") == 7  # items 1, 2, 3, 5, 8 and 9
    second.with_suffix(".tree").write_text("def456\n")
    assert tool.main(["--out", str(out), str(tests), str(first), str(second)]) == 0
    assert "| ring.push.p50 (tree `def456`) | 14 |" in out.read_text()


def test_nothing_to_read(tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--out", str(tmp_path / "x"), str(tmp_path / "missing.json")]) == 3
    assert "missing.json" in capsys.readouterr().err
