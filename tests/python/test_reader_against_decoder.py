"""The C++ reader against tests/trace_decode.py, which shares nothing with it.

On the golden trace, and on captures of a real GPU that the real library has recorded through the stand-in CUDA
libraries (where a build with them is here).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("gpuperf._analysis")

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import trace_decode  # noqa: E402
from gpuperf import Trace, report  # noqa: E402

BUILD = Path(os.environ.get("GPUPERF_TEST_BUILD", ROOT / "build" / "release"))
CAPTURES = sorted((ROOT / "tests" / "data" / "captures").glob("*.gpcap*"))


@pytest.fixture(params=["golden", *(capture.name for capture in CAPTURES)])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "golden":
        return ROOT / "tests" / "data" / "golden" / "format1.gpuperf"
    replay, library = BUILD / "fakes" / "gpuperf-replay", BUILD / "lib" / "libgpuperf.so"
    if not replay.exists() or not library.exists():
        pytest.skip(f"needs {replay} and {library}")
    trace = tmp_path / "run.gpuperf"
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("GPUPERF_", "CUDA_"))}
    environment = keep | {
        "LD_LIBRARY_PATH": str(BUILD / "fakes"),
        "CUDA_INJECTION64_PATH": str(library),
        "GPUPERF_OUTPUT": str(trace),
        "ASAN_OPTIONS": "detect_leaks=0",
    }
    capture = ROOT / "tests" / "data" / "captures" / request.param
    command = [replay, capture, "--json", tmp_path / "replay.json", "--speed", "1", "--steps"]
    subprocess.run(command, check=True, capture_output=True, timeout=240, env=environment)
    return trace


def dumped(path: Path) -> dict[str, list[dict[str, str]]]:
    """The lines of `gpuperf dump` by kind."""
    lines: list[str] = []
    report.dump(path, lines.append)
    rows: dict[str, list[dict[str, str]]] = {}
    for line in "".join(lines).splitlines():
        kind, *pairs = re.findall(r'(?:[^ "]|"(?:\\.|[^"\\])*")+', line)
        rows.setdefault(kind, []).append(dict(pair.split("=", 1) for pair in pairs))
    return rows


def union(intervals: list[tuple[int, int]]) -> int:
    total, end = 0, 0
    for begin, until in sorted(intervals):
        total += max(until - max(begin, end), 0)
        end = max(end, until)
    return total


def quoted(name: str) -> str:
    raw = name.encode("utf-8", "surrogateescape")
    return '"' + "".join(
        ("\\" if chr(c) in '"\\' else "") + chr(c) if 0x20 <= c < 0x7F else f"\\x{c:02x}" for c in raw
    ) + '"'  # fmt: skip


def test_rows_are_equal(path: Path) -> None:
    decoded = trace_decode.read(path)
    rows = dumped(path)
    tables: list[tuple[str, dict[str, Any], str, str, str]] = [
        ("kernel", decoded.kernels, "begin_ns", "start", "end"),
        ("copy", decoded.copies, "begin_ns", "start", "end"),
        ("memset", decoded.memsets, "begin_ns", "start", "end"),
        ("call", decoded.calls, "enter_ns", "enter", "exit"),
    ]
    for kind, table, key, begin, end in tables:
        found = rows.get(kind, [])
        assert len(found) == trace_decode.rows(table)
        if not found:
            continue
        assert [int(row[key]) for row in found] == table[begin].tolist()
        assert [int(row["duration_ns"]) for row in found] == (table[end] - table[begin]).tolist()
        assert [int(row["correlation"]) for row in found] == table["correlation"].tolist()
        if "name" in table:
            assert [row["name"] for row in found] == [quoted(name) for name in table["name"]]
        if "bytes" in table:
            assert [int(row["bytes"]) for row in found] == table["bytes"].tolist()
    assert len(rows.get("step", [])) == len(decoded.steps)
    assert len(rows.get("unfinished_call", [])) == len(decoded.open_calls)
    assert len(rows["chunk"]) == len(decoded.chunks)


def test_figures_are_equal(path: Path) -> None:
    decoded = trace_decode.read(path)
    summary = report.summary(path)
    assert sum(kernel["count"] for kernel in summary["kernels"]) == trace_decode.rows(decoded.kernels)
    assert sum(copies["bytes"] for copies in summary["copies"]) == sum(
        decoded.copies["bytes"].tolist() if decoded.copies else []
    )
    assert summary["steps"]["count"] == len(decoded.steps)
    # Refused buffers (2) are no records, and records without their call (6) are in the trace.
    missing = (count for reason, count in decoded.lost().items() if reason not in (2, 6))
    assert summary["completeness"]["lost"] == sum(missing)
    for device in summary["devices"]:
        intervals = []
        for table in (decoded.kernels, decoded.copies, decoded.memsets):
            if table:
                mine = table["device"] == device["device"]
                intervals += list(zip(table["start"][mine].tolist(), table["end"][mine].tolist(), strict=True))
        # The union on the device clock: both clocks run alike here. Before and after the session is cut off.
        busy = union(intervals)
        assert busy * 0.98 <= device["busy_ns"] <= busy * 1.0001 + 10
        assert device["busy_ns"] + device["opaque_ns"] + device["idle_ns"] == summary["span"]["captured_ns"]


def test_tables_are_equal(path: Path) -> None:
    decoded = trace_decode.read(path)
    trace = Trace(path)
    for name, key, begin, end in (
        ("kernels", "begin_device_ns", "start", "end"),
        ("copies", "begin_device_ns", "start", "end"),
        ("memsets", "begin_device_ns", "start", "end"),
        ("calls", "enter_host_ns", "enter", "exit"),
    ):
        table, expected = trace.table(name), getattr(decoded, name)
        count = trace_decode.rows(expected)
        unfinished = len(decoded.open_calls) if name == "calls" else 0
        assert len(table) == count + unfinished
        if not count:
            continue
        assert table[key][:count].tolist() == expected[begin].tolist()
        assert table["duration_ns"][:count].tolist() == (expected[end] - expected[begin]).tolist()
        assert table["correlation"][:count].tolist() == expected["correlation"].tolist()
        names = table["symbol" if name == "kernels" else "name"].decode()[:count] if "name" in expected else []
        assert [name or "" for name in names] == [
            name.encode("utf-8", "surrogateescape").decode(errors="replace") for name in expected.get("name", [])
        ]
    calls = {int(id_): at for at, id_ in reversed(list(enumerate(decoded.calls["correlation"].tolist())))}
    for kernel in trace.kernels:
        at = calls.get(kernel.correlation)
        if at is not None:
            assert kernel.call_enter_host_ns == decoded.calls["enter"][at]
            assert kernel.call_exit_host_ns == decoded.calls["exit"][at]
    assert trace.complete == (decoded.clean and not decoded.lost())
    assert [(step.index, step.end_host_ns) for step in trace.steps] == [
        (step.get("index", 0), step["host_ns"]) for step in decoded.steps
    ]


def test_a_second_of_a_real_trace_is_that_second(path: Path) -> None:
    trace = Trace(path)
    for first, last in (("0ms", "300ms"), ("100ms", "101ms"), ("-50ms", None)):
        part = trace.filter(time=(first, last))
        whole = trace.kernels
        begin = trace.begin_host_ns + int(first.removesuffix("ms")) * 10**6
        if first.startswith("-"):
            begin = trace.end_host_ns + int(first.removesuffix("ms")) * 10**6
        end = trace.end_host_ns if last is None else trace.begin_host_ns + int(last.removesuffix("ms")) * 10**6
        wanted = [row for row in whole if row.end_host_ns > begin and row.begin_host_ns < end]
        # Times on the host clock are rounded down, so a row at an edge may be on either side of it here.
        found = set(part.kernels)
        assert {row for row in wanted if row.end_host_ns > begin + 1 and row.begin_host_ns < end - 1} <= found
        assert found <= {row for row in whole if row.end_host_ns >= begin and row.begin_host_ns <= end}
