"""Regions of a report against a recomputation from all rows, to the nanosecond (reference_report.py)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parent))

import trace_builder
from random_traces import HOST, SECOND, RandomTrace
from reference_report import ReferenceReport, figures, length
from reference_tables import Intervals, Reference, Row, nvtx_ranges

pytest.importorskip("gpuperf._analysis")

from gpuperf import RegionError, regions, report
from gpuperf.cli import main

SEEDS = st.integers(0, 2**32)


@pytest.fixture(scope="module", autouse=True)
def schema() -> None:
    trace_builder.schema()


def write(folder: Path, parts: list[bytes]) -> Path:
    for old in folder.glob("run.gpuperf*"):
        old.unlink()
    for at, part in enumerate(parts):
        (folder / (f"run.gpuperf.{at:04}" if at else "run.gpuperf")).write_bytes(part)
    return folder / "run.gpuperf"


def draw_region(data: st.DataObject, trace: Reference) -> tuple[regions.Region, Intervals]:
    begin, end = trace.span
    numbers = [step["index"] for step in trace.steps]
    names = sorted({row["name"] for row in trace.annotations if row["name"]})
    told: dict[str, Any] = {}
    region: Intervals = [trace.span]
    if numbers and numbers == list(range(len(numbers))) and data.draw(st.booleans()):
        first = data.draw(st.integers(0, len(numbers) - 1))
        last = data.draw(st.integers(first + 1, len(numbers)))
        told["steps"] = f"{first}:{last}"
        region = trace.steps_region(first, last)
    elif names and data.draw(st.booleans()):
        told["annotation"] = data.draw(st.sampled_from(names))
        region = trace.annotation_region(told["annotation"])
    elif (ranges := nvtx_ranges(trace)) and data.draw(st.booleans()):
        told["nvtx"], *meant = data.draw(st.sampled_from(ranges))
        region = trace.nvtx_region(*meant)
    if not told or data.draw(st.booleans()):
        work = [*trace.kernels, *trace.copies, *trace.memsets]
        edges = [row[key] for row in work for key in ("begin_host_ns", "end_host_ns")]
        times = st.integers(begin, end) | st.sampled_from([begin, end, *edges])
        told["time"] = tuple(sorted([data.draw(times), data.draw(times)]))
        other = trace.time_region(*told["time"])
        region = [(max(a, c), min(b, d)) for a, b in region for c, d in other if max(a, c) < min(b, d)]
    return regions.region(**told), region


def keyed(rows: list[Row], *keys: str) -> dict[Any, Row]:
    """Rows by what they are of, which no two of them share."""
    out = {}
    for row in rows:
        key = tuple(row[key] for key in keys)
        assert key not in out
        out[key[0] if len(key) == 1 else key] = {name: value for name, value in row.items() if name not in keys}
    return out


def some(rows: dict[Any, Row], like: dict[Any, Row]) -> dict[Any, Row]:
    """Only the figures that the recomputation has."""
    return {key: {name: row[name] for name in like.get(key, row)} for key, row in rows.items()}


def check(summary: Row, expected: ReferenceReport) -> None:
    assert keyed(summary["kernels"], "name") == expected.kernel_table()
    assert keyed(summary["copies"], "direction", "source", "destination") == expected.copy_table()
    sizes = keyed(summary["copy_sizes"], "direction", "least_bytes")
    assert some(sizes, expected.size_table()) == expected.size_table()
    assert keyed(summary["memsets"], "memory") == expected.memset_table()
    assert keyed(summary["calls"], "function", "kind") == expected.call_table()
    assert keyed(summary["waits"], "function", "reason") == expected.wait_table()
    assert keyed(summary["annotations"], "name") == expected.annotation_table()
    assert keyed(summary["ranges"], "source", "domain", "domain_lost", "name") == expected.range_table()
    streams = keyed(summary["streams"], "device", "context", "stream")
    assert some(streams, expected.stream_table()) == expected.stream_table()
    devices = keyed(summary["devices"], "device")
    assert some(devices, expected.device_table()) == expected.device_table()
    assert summary["completeness"]["launches"] == expected.joins()
    assert summary["completeness"]["launches_without_kernel"] == expected.launches_without_kernel()
    ends, times = expected.steps()
    assert summary["steps"]["count"] == ends
    assert summary["steps"]["durations"] == figures(times)
    assert summary["span"]["captured_ns"] == length(expected.captured)
    assert summary["span"]["outage_ns"] == expected.outage_ns


@settings(suppress_health_check=list(HealthCheck), max_examples=120, deadline=None)
@given(seed=SEEDS, data=st.data())
def test_every_figure_of_a_region(tmp_path, seed, data):
    made = RandomTrace(seed)
    trace = Reference(*made.parts)
    path = write(tmp_path, made.parts)
    asked, region = draw_region(data, trace)
    if not region:
        with pytest.raises(RegionError, match="the region holds no time"):
            report.summary(path, region=asked)
        return
    summary = report.summary(path, region=asked)
    check(summary, ReferenceReport(trace, region))
    assert summary["region"]["ns"] == length(region)
    assert summary["region"]["intervals"] == len(region)
    assert (summary["region"]["begin_host_ns"], summary["region"]["end_host_ns"]) == (region[0][0], region[-1][1])
    for told in ("begin_host_ns", "end_host_ns"):  # the session's, whatever the region
        assert summary["span"][told] == trace.span[told == "end_host_ns"]


@settings(suppress_health_check=list(HealthCheck), max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_every_figure_of_the_whole_trace(tmp_path, seed):
    made = RandomTrace(seed)
    summary = report.summary(write(tmp_path, made.parts))
    check(summary, ReferenceReport(Reference(*made.parts), None))
    assert summary["region"] is None


@settings(suppress_health_check=list(HealthCheck), max_examples=40, deadline=None)
@given(seed=SEEDS, data=st.data())
def test_regions_side_by_side_make_the_whole(tmp_path, seed, data):
    """Times add up, whatever is cut in two; counts are more only by what is cut."""
    made = RandomTrace(seed)
    trace = Reference(*made.parts)
    path = write(tmp_path, made.parts)
    begin, end = trace.span
    middle = data.draw(st.integers(begin + 1, end - 1))
    parts = [report.summary(path, region=regions.region(time=told)) for told in ((begin, middle), (middle, end))]
    whole = report.summary(path, region=regions.region(time=(begin, end)))
    for key in ("busy_ns", "idle_ns", "kernel_ns", "copy_ns", "memset_ns"):
        for at, device in enumerate(whole["devices"]):
            assert device[key] == sum(part["devices"][at][key] for part in parts)
    assert whole["span"]["captured_ns"] == sum(part["span"]["captured_ns"] for part in parts)
    kernels = sum(kernel["count"] for part in parts for kernel in part["kernels"])
    assert kernels >= sum(kernel["count"] for kernel in whole["kernels"])


# ------------------------------------------------------------------------------------------------------- command line


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A kernel of 4 ms on either side of 2 s, a copy of 64 KiB behind a PCIe 5.0 × 16 link, five steps of a second."""
    pb = trace_builder.schema()
    body = pb.trace.ChunkBody()
    for iid, value in enumerate([b"gemm", b"save", b"NCCL", b"a@b"], 1):
        body.strings.add(iid=iid, value=value)
    body.streams.add(iid=1, device=0, context=1, stream=7, priority=-1)
    body.kernels.add(iid=1, name_iid=1)
    body.kernel_batches.add(stream_iid=1, base_device_ns=HOST + 2 * SECOND - 1_000_000, gap_ns=[0],
                            duration_ns=[4_000_000], kernel_iid=[1], correlation_delta=[1])  # fmt: skip
    body.copy_batches.add(stream_iid=1, base_device_ns=HOST + 3 * SECOND, gap_ns=[0, 0], duration_ns=[2000, 5],
                          bytes=[1 << 16, 8], correlation_delta=[1, 1], copy_kind=[1, 8], source_kind=[2, 3],
                          destination_kind=[3, 3])  # fmt: skip
    body.clock_pairs.add(host_ns=HOST, device_ns=HOST)
    for index in range(5):
        body.steps.add(host_ns=HOST + (index + 1) * SECOND, index=index)
    body.annotations.add(begin_host_ns=HOST, duration_ns=SECOND, name_iid=2)
    body.annotations.add(begin_host_ns=HOST + 3 * SECOND, duration_ns=SECOND, name_iid=2)
    for at, (domain, source) in enumerate([(0, 1), (3, 2), (4, 1), (99, 1)]):
        body.annotations.add(begin_host_ns=HOST + at * SECOND, duration_ns=(at + 1) * 1000, name_iid=4, source=source,
                             nvtx={"domain_iid": domain})  # fmt: skip
    body.run_info.devices.add(device=0, pcie_generation=1, pcie_generation_max=5, pcie_width=16)
    header = pb.metadata.FileHeader(format_version=1, start={"monotonic_ns": HOST})
    chunk = trace_builder.chunk(body, 0, checkpoint=True, first=HOST, last=HOST + 6 * SECOND)
    return str(write(tmp_path, [trace_builder.file(header, [chunk])]))


@pytest.mark.parametrize(
    ("arguments", "kernel_ns", "seconds"),
    [
        (["--time", "0s:2s"], 1_000_000, 2),
        (["--time", "2s:"], 3_000_000, 4),
        (["--time=-4s:-3s"], 3_000_000, 1),
        (["--time", "1999us:2001000us"], 2_000_000 - 1_000_000 + 1_000_000, None),
        (["--steps", "1"], 1_000_000, 1),
        (["--steps", "2:4"], 3_000_000, 2),
        (["--steps=-4:"], 4_000_000, 4),
        (["--steps", ":2"], 1_000_000, 2),
        (["--steps", "1:3", "--time", "2001ms:2002ms"], 1_000_000, 0.001),
        (["--annotation", "save"], None, 2),
        (["--annotation", "a@b"], 3000, 10e-6),
        (["--nvtx", r"a\@b"], 3000, 10e-6),
        (["--nvtx", "a@b@"], None, 1e-6),
        (["--nvtx", "a@b@NCCL"], None, 2e-6),
        (["--nvtx", r"a@b@a\@b"], 3000, 3e-6),
    ],
)
def test_regions_of_the_command_line(path, capsys, arguments, kernel_ns, seconds):
    assert main(["report", "--json", path, *arguments]) == 0
    (trace,) = json.loads(capsys.readouterr().out)["traces"]
    assert [kernel["total_ns"] for kernel in trace["kernels"]] == ([] if kernel_ns is None else [kernel_ns])
    if seconds is not None:
        assert trace["region"]["ns"] == seconds * SECOND
    assert main(["report", path, *arguments]) == 0
    assert capsys.readouterr().out.startswith("Only ")


def test_a_region_is_told_first(path, capsys):
    main(["report", path, "--annotation", "save", "--time", "0s:3500ms"])
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "Only annotation save and time: 1.50 s, 0 ns in to 3.50 s in, in 2 intervals."
    assert out[1] == "GPU 0 had nothing to run >99.9 % of 1.50 s; nothing lost."


def test_a_region_without_steps_does_not_ask_for_them(path, capsys):
    main(["report", path, "--time", "1500ms:1600ms"])
    assert "No step ends in this part of the run." in capsys.readouterr().out


def test_copies_have_sizes_and_a_share_of_their_link(path, capsys):
    main(["report", path])
    out = capsys.readouterr().out
    (line,) = [line.split() for line in out.splitlines() if line.startswith("h2d") and "KiB" in line]
    # 65,536 bytes in 2 µs, of 16 lanes of 3.94 GB/s.
    assert line == ["h2d", "64", "KiB", "–", "256", "KiB", "1", "65.5", "kB", "2.00", "µs", "32.8", "GB/s", "52.0", "%"]
    (line,) = [line.split() for line in out.splitlines() if line.startswith("d2d") and "1 KiB" in line]
    assert line == ["d2d", "<", "1", "KiB", "1", "8", "B", "5", "ns", "1.60", "GB/s"]  # crosses no link to the host
    (line,) = [line.split() for line in out.splitlines() if line.split()[:4] == ["0", "1", "7", "-1"]]
    assert line[4:6] == ["4.00", "ms"]


@pytest.mark.parametrize(
    "told", [{}, {"pcie_generation": 5}, {"pcie_width": 16}, {"pcie_generation": 99, "pcie_width": 16}]
)
def test_an_unknown_link_is_unknown(tmp_path, capsys, told):
    pb = trace_builder.schema()
    body = pb.trace.ChunkBody()
    body.streams.add(iid=1)
    body.copy_batches.add(stream_iid=1, gap_ns=[1], duration_ns=[2], bytes=[3], copy_kind=[2])
    body.run_info.devices.add(device=0, **told)
    header = pb.metadata.FileHeader(format_version=1)
    path = write(tmp_path, [trace_builder.file(header, [trace_builder.chunk(body, 0)])])
    (copies,) = report.summary(path)["copies"]
    assert copies["link_bytes_per_second"] is None
    main(["report", str(path)])
    assert "unknown" in [line.split()[-1] for line in capsys.readouterr().out.splitlines() if line.startswith("d2h")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "1:2:3"], "steps are A:B"),
        (["--time", "5"], "times are A:B"),
        (["--steps", "9:"], "the region holds no time of the trace"),
        (["--nvtx", "save"], 'the trace has no NVTX range "save"'),
        (["--nvtx", "a@b@b"], 'the trace has no NVTX range "a@b" in a domain "b"'),
        (["--nvtx", "save@"], 'the trace has no NVTX range "save" in the default domain'),
        (["--nvtx", ""], "an NVTX range is NAME or NAME@DOMAIN"),
        (["--annotation", "nothing"], 'the trace has no annotation "nothing"'),
    ],
)
def test_a_region_that_is_not_there(path, capsys, arguments, message):
    assert main(["report", path, *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("gpuperf: ")
    assert message in err
    assert err.count("\n") == 1
