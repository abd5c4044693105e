"""Every libcupti from CUDA 12.0 to 13.5: loaded, probed, its records read, with the library and headers of its wheel.

A C++ program laid out by that version's headers writes records (tests/cupti/make_records.cc); gpuperf's own loading,
CUPTI's own record walk and gpuperf's own collector and writer read them (tests/cupti/cupti_check.cc). From 13.2 on that
walk wants a driver (13.2's crashes without): there the records are walked by the headers' sizes, and the libraries are
tested with a GPU (tests/gpu/test_programs.py).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import cuda_wheels
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import trace_decode  # noqa: E402

KINDS = {"KERNEL": 10, "MEMCPY": 1, "PEER_MEMCPY": 22, "MEMSET": 2, "GRAPH": 51}
STRUCTS = {
    "KERNEL": "Kernel",
    "MEMCPY": "Memcpy",
    "PEER_MEMCPY": "MemcpyPtoP",
    "MEMSET": "Memset",
    "GRAPH": "GraphTrace",
}
LAST_WITHOUT_DRIVER = (13, 1)
NO_LAUNCH = 6
# Each has something that the one before lacks: record sizes, the kind of graphs, the way to say no.
USUAL = ("12.0", "12.3", "12.8", "13.0", "13.1", "13.5")
EVERY = [
    version if version in USUAL else pytest.param(version, marks=pytest.mark.long) for version in cuda_wheels.VERSIONS
]


def build() -> Path:
    """The folder that the program is built in."""
    named = os.environ.get("GPUPERF_TEST_BUILD")
    return Path(named).resolve() if named else ROOT / "build" / "release"


def newest(text: str, struct: str) -> str:
    """The newest struct of a kind of record: CUpti_ActivityKernel9, 10 … (one without a number is the oldest)."""
    numbers = [
        int(number or 1) for number in re.findall(rf"}} (?:PACKED_ALIGNMENT )?CUpti_Activity{struct}(\d*);", text)
    ]
    last = max(numbers)
    return f"CUpti_Activity{struct}{last if last > 1 else ''}"


def make_records(version: str, folder: Path) -> tuple[bytes, list[int]]:
    """One record of each kind as this version lays them out, and their sizes."""
    include = cuda_wheels.headers(version)
    text = next(path / "cupti_activity.h" for path in include if (path / "cupti_activity.h").exists()).read_text()
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++") or "c++"
    program = folder / "make_records"
    command = [
        compiler, "-std=c++20", "-o", str(program), str(ROOT / "tests" / "cupti" / "make_records.cc"),
        f"-I{ROOT / 'tests' / 'cupti' / 'stubs'}", *(f"-isystem{path}" for path in include),
        *(f"-D{name}={newest(text, struct)}" for name, struct in STRUCTS.items()),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    made = subprocess.run([str(program)], check=True, capture_output=True, timeout=60)
    return made.stdout, list(map(int, made.stderr.split()))


def read(version: str, folder: Path) -> tuple[dict[str, Any], list[int], trace_decode.Trace]:
    """What the program says of the library, the sizes by the headers, and the trace of the records."""
    check = build() / "tests" / "cpp" / "gpuperf-cupti-check"
    if not check.exists():
        pytest.skip(f"{check} is not built (make test builds it)")
    raw, sizes = make_records(version, folder)
    (folder / "records").write_bytes(raw)
    trace = folder / "trace.gpuperf"
    by_sizes = "sizes:" + ",".join(f"{kind}={size}" for kind, size in zip(KINDS.values(), sizes, strict=True))
    walks = tuple(map(int, version.split("."))) <= LAST_WITHOUT_DRIVER
    library = str(cuda_wheels.libcupti(version)) if walks else by_sizes
    command = [str(check), library, str(folder / "records"), str(trace)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told, sizes, trace_decode.read(trace)


def only_row(table: trace_decode.Table) -> dict[str, Any]:
    """The one row of a table."""
    assert trace_decode.rows(table) == 1
    return {key: column.tolist()[0] for key, column in table.items()}


@pytest.mark.parametrize("version", EVERY)
def test_records_of_every_version_are_read(version: str, tmp_path: Path) -> None:
    told, sizes, trace = read(version, tmp_path)
    major, minor = map(int, version.split("."))
    assert dict(zip(map(str, KINDS.values()), sizes, strict=True)) == told["sizes"]
    assert trace.lost() == {NO_LAUNCH: len(KINDS)}  # there are no calls in this trace

    def expect(row: dict[str, Any], base: int, **fields: Any) -> None:
        common = {
            "start": 1_000_000 + base, "end": 2_000_000 + 2 * base, "device": 1, "context": 2, "stream": 3,
            "correlation": base + 4, "graph_id": base + 5, "graph_node_id": (base << 32) + 6,
        }  # fmt: skip
        wrong = {key: (row.get(key), value) for key, value in (common | fields).items() if row.get(key) != value}
        assert not wrong, f"(found, expected): {wrong}"

    has_priority, has_device_launched, has_count = (
        (major, minor) >= (13, 1), (major, minor) >= (13, 0), (major, minor) >= (12, 8)
    )  # fmt: skip
    kernel = only_row(trace.kernels)
    expect(
        kernel, 100, grid_x=11, grid_y=12, grid_z=13, block_x=14, block_y=15, block_z=16, registers_per_thread=17,
        static_shared_bytes=18, dynamic_shared_bytes=19, executed_shared_bytes=20, local_bytes_per_thread=21,
        local_bytes_total=22 << 32, queued_ns=23, submitted_ns=24, cluster_x=25, cluster_y=26, cluster_z=27,
        cluster_scheduling_policy=1, max_potential_cluster_size=28, max_active_clusters=29,
        shared_carveout_percent=30, launch_type=1, device_launched=int(has_device_launched),
        priority=-5 if has_priority else 0,
    )  # fmt: skip
    assert trace_decode.rows(trace.copies) == 2
    rows = [{key: column.tolist()[at] for key, column in trace.copies.items()} for at in range(2)]
    copy, peer = sorted(rows, key=lambda row: int(row["start"]))
    expect(
        copy,
        200,
        copy_kind=1,
        source_kind=2,
        destination_kind=3,
        flags=1,
        bytes=31 << 32,
        copy_count=32 if has_count else 1,
    )
    expect(
        peer, 300, copy_kind=10, bytes=33, source_device=34, source_context=35, destination_device=36,
        destination_context=37,
    )  # fmt: skip
    expect(only_row(trace.memsets), 400, value=38, bytes=39, memory_kind=5, flags=1)
    (graph,) = trace.opaque_intervals
    assert (graph["begin_device_ns"], graph["end_device_ns"]) == (1_000_500, 2_001_000)
    assert (graph["correlation"], graph["graph_id"]) == (504, 505)


def test_a_library_that_is_none_says_why(tmp_path: Path) -> None:
    check = build() / "tests" / "cpp" / "gpuperf-cupti-check"
    if not check.exists():
        pytest.skip(f"{check} is not built (make test builds it)")
    wrong = tmp_path / "libcupti.so.99"
    wrong.write_text("no library")
    for path, reason in ((wrong, "libcupti.so.99"), (tmp_path / "nowhere.so", "nowhere.so")):
        done = subprocess.run([str(check), str(path), "x", "y"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert reason in done.stderr
        assert done.stderr.count("\n") == 1
