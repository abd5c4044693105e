"""The comparisons of the GPU suite, on traces made by hand: they pass on equal, and fail on every single difference."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trace_decode

sys.path.append(str(Path(__file__).resolve().parents[1] / "gpu"))
import support

TID = 4711
MADE: list[dict[str, Any]] = [
    {"api": "cudaLaunchKernel", "symbol": "_Z1av", "stream": 77, "grid": 5, "device_work": "kernel"},
    {"api": "cudaMemcpyAsync", "stream": 77, "bytes": 640, "destination": 1000, "source": 2000, "device_work": "copy"},
    {"api": "cudaEventRecord", "stream": 78, "event": 99},
    {"api": "cudaMemsetAsync", "stream": 78, "bytes": 64, "destination": 1000, "device_work": "memset"},
    {"api": "cudaMemcpyAsync", "stream": 78, "bytes": 64, "device_work": "copy", "result": 1},
    {"api": "cudaMallocAsync", "stream": 78, "bytes": 512, "destination": 5000},
]


def account() -> dict[int, list[dict[str, Any]]]:
    plain = {"tid": TID, "symbol": "", "stream": 0, "bytes": 0, "destination": 0, "source": 0, "event": 0, "result": 0}
    return {TID: [plain | {"grid": 0, "device_work": ""} | call for call in MADE]}


def table(**columns: list[Any]) -> trace_decode.Table:
    strings = ("name", "function")
    return {k: np.array(v, dtype=object if k in strings else np.int64) for k, v in columns.items()}


def recorded() -> trace_decode.Trace:
    trace = trace_decode.Trace(header={}, clean=True)
    # Out of order, as a file may hold them, and with a call of another thread and one that the program does not log.
    trace.calls = table(
        name=["cudaMemcpyAsync", "cudaLaunchKernel_v7000", "cudaEventRecord", "cudaMemsetAsync_ptsz", "cudaMemcpyAsync",
              "cudaLaunchKernel", "cudaMalloc", "cudaMallocAsync"],
        tid=[TID] * 5 + [1, TID, TID],
        enter=[20, 10, 30, 40, 50, 5, 6, 60],
        correlation=[2, 1, 3, 4, 5, 6, 7, 8],
        kind=[4, 1, 7, 5, 4, 1, 9, 9],
        function=["", "_Z1av", "", "", "", "_Z1bv", "", ""],
        has_stream=[1, 1, 1, 1, 1, 1, 0, 1],
        stream_handle=[77, 77, 78, 78, 78, 0, 0, 78],
        result_code=[0, 0, 0, 0, 1, 0, 0, 0],
        copy_bytes=[640, 0, 0, 64, 64, 0, 0, 0],
        copy_destination=[1000, 0, 0, 1000, 0, 0, 0, 0],
        copy_source=[2000, 0, 0, 0, 0, 0, 0, 0],
        event_handle=[0, 0, 99, 0, 0, 0, 0, 0],
        has_memory=[0, 0, 0, 0, 0, 0, 1, 1],
        memory_bytes=[0, 0, 0, 0, 0, 0, 9, 512],
        memory_address=[0, 0, 0, 0, 0, 0, 9, 5000],
    )  # fmt: skip
    trace.kernels = table(name=["_Z1av"], correlation=[1], grid_x=[5])
    trace.copies = table(bytes=[600, 40], correlation=[2, 2])
    trace.memsets = table(bytes=[64], correlation=[4])
    return trace


def test_equal() -> None:
    assert support.hold_calls(recorded(), account()) == []
    assert support.hold_device_work(recorded(), account()) == []


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        (1, "function", "_Z1cv"),
        (1, "stream_handle", 78),
        (0, "copy_bytes", 641),
        (0, "copy_bytes", 0),
        (0, "copy_destination", 1),
        (0, "copy_source", 1),
        (2, "event_handle", 98),
        (4, "result_code", 0),
        (2, "enter", 15),
        (3, "tid", 1),
        (5, "tid", TID),
        (7, "memory_bytes", 511),
        (7, "memory_address", 5001),
    ],
)
def test_any_difference_of_a_call_is_found(row: int, column: str, value: Any) -> None:
    trace = recorded()
    trace.calls[column][row] = value
    assert support.hold_calls(trace, account()) != []


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [
        ("kernels", "name", "_Z1bv"),
        ("kernels", "grid_x", 6),
        ("kernels", "correlation", 8),
        ("copies", "bytes", 601),
        ("copies", "correlation", 4),
        ("memsets", "bytes", 0),
    ],
)
def test_any_difference_of_a_device_record_is_found(name: str, column: str, value: Any) -> None:
    trace = recorded()
    getattr(trace, name)[column][0] = value
    assert support.hold_device_work(trace, account()) != []


def test_a_record_too_many_is_found() -> None:
    trace = recorded()
    trace.kernels = table(name=["_Z1av", "_Z1av"], correlation=[1, 88], grid_x=[5, 5])
    assert support.hold_device_work(trace, account()) == ["2 kernel records in the trace, 1 belong to the calls made"]


def loop(calls: int, kernels: int) -> trace_decode.Trace:
    trace = trace_decode.Trace(header={})
    trace.calls = table(enter=list(range(calls)), correlation=list(range(100, 100 + calls)), kind=[1] * calls)
    trace.kernels = table(
        start=list(range(kernels)),
        correlation=list(range(100, 100 + kernels)),
        grid_x=[1 + i % support.LOOP_PERIOD for i in range(kernels)],
    )
    return trace


def stamps(launches: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.arange(launches, dtype=np.uint64) * 1_000_000


def test_a_killed_loop() -> None:
    result = support.hold_loop(loop(2900, 2800), 3000, stamps(3000))
    assert result["wrong"] == []
    assert result["missing calls, s"] == pytest.approx(0.099)
    assert result["missing kernels, s"] == pytest.approx(0.199)
    nothing = support.hold_loop(None, 3000, stamps(3000))
    assert nothing["missing kernels, s"] == pytest.approx(2.999)
    whole = support.hold_loop(loop(3000, 3000), 3000, stamps(3000))
    assert (whole["missing calls, s"], whole["missing kernels, s"]) == (0, 0)


def drop(column_of: str) -> Callable[[trace_decode.Trace], None]:
    def change(trace: trace_decode.Trace) -> None:
        broken = getattr(trace, column_of)
        setattr(trace, column_of, {name: np.delete(column, 50) for name, column in broken.items()})

    return change


def lose(trace: trace_decode.Trace) -> None:
    trace.losses.append({"reason": 1, "count": 1})


@pytest.mark.parametrize(("change", "launches"), [(drop("calls"), 3000), (drop("kernels"), 3000), (lose, 3000)])
def test_a_hole_in_a_killed_loop_is_found(change: Callable[[trace_decode.Trace], None], launches: int) -> None:
    trace = loop(2900, 2800)
    change(trace)
    assert support.hold_loop(trace, launches, stamps(launches))["wrong"] != []


def test_more_than_was_launched_is_found() -> None:
    assert support.hold_loop(loop(2900, 2800), 2850, stamps(3000))["wrong"] != []


def test_names() -> None:
    assert support.base_name("cudaLaunchKernel_ptsz") == "cudaLaunchKernel"
    assert support.base_name("cuMemcpyHtoD_v2") == "cuMemcpyHtoD"
    assert support.base_name("cuMemcpyHtoDAsync_v2_ptsz") == "cuMemcpyHtoDAsync"
    assert support.base_name("cuMemsetD2D8") == "cuMemsetD2D8"
    assert support.demangle("_Z4gemmPf") == "gemm(float*)"
    assert support.demangle("plain") == "plain"


def test_what_the_results_say_of_a_run() -> None:
    told = support.command_line(["tests/gpu", "-m", "gpu or not gpu", "--gpu-json", "/somewhere/x.json", "-q"])
    assert told == "python -m pytest tests/gpu -m 'gpu or not gpu' -q"
    assert support.shortened(f"{support.ROOT}/tests/x.py\n\nfailed") == "tests/x.py\nfailed"
    assert support.shortened("\n".join(map(str, range(30)))) == "0\n1\n2\n3\n…\n24\n25\n26\n27\n28\n29"
