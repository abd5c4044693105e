"""`gpuperf report` and `gpuperf dump` on files built with protoc-generated code."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent))

import trace_builder

pytest.importorskip("gpuperf._analysis")

from gpuperf import report
from gpuperf.cli import main
from gpuperf.report import kernel_names, text, units

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden"
DEVICE_OFFSET = 1_796_000_000_000_000_000  # device clock - host clock in these traces


@pytest.fixture(scope="module")
def pb() -> SimpleNamespace:
    return trace_builder.schema()


def file_header(pb: SimpleNamespace, **fields: Any) -> Any:
    header = pb.metadata.FileHeader(
        format_version=1, trace_uuid=bytes(range(16)), producer="gpuperf 0.1.0", start={"monotonic_ns": 1_000_000}
    )
    header.process.pid = 4711
    header.process.host = "node1"
    header.process.command_line.extend(["python", "train.py"])
    header.MergeFrom(pb.metadata.FileHeader(**fields))
    return header


def body(pb: SimpleNamespace, *, rank: int = 0) -> Any:
    """Two kernels and a copy on one GPU, three steps, a wait, what gpuperf cost; from 1 ms to 11 ms."""
    events = pb.events
    out = pb.trace.ChunkBody()
    for iid, value in enumerate(
        [
            b"_Z3addPf",
            b"_ZN2at6native4gemmIfLi4EEEvPT_i",
            b"cudaLaunchKernel",
            b"cudaStreamSynchronize",
            b"main",
            b"cudaMemcpyAsync",
        ],
        1,
    ):
        out.strings.add(iid=iid, value=value)
    out.threads.add(iid=1, tid=77, name_iid=5)
    out.streams.add(iid=1, device=0, context=1, stream=7)
    out.kernels.add(iid=1, name_iid=1, grid_x=1, grid_y=1, grid_z=1, block_x=32, block_y=1, block_z=1)
    out.kernels.add(iid=2, name_iid=2, grid_x=8, grid_y=1, grid_z=1, block_x=256, block_y=1, block_z=1)
    out.call_sites.add(iid=1, domain=1, cbid=211, name_iid=3, kind=events.CALL_KIND_LAUNCH, function_name_iid=1)
    out.call_sites.add(iid=2, domain=1, cbid=131, name_iid=4, kind=events.CALL_KIND_SYNCHRONIZE)
    out.call_sites.add(iid=3, domain=1, cbid=41, name_iid=6, kind=events.CALL_KIND_COPY)
    out.kernel_batches.add(
        stream_iid=1,
        base_device_ns=DEVICE_OFFSET + 2_000_000,
        gap_ns=[0, 500_000],
        duration_ns=[1_000_000, 2_000_000],
        kernel_iid=[1, 2],
        correlation_delta=[11, 1],
    )
    out.copy_batches.add(
        stream_iid=1,
        base_device_ns=DEVICE_OFFSET + 7_000_000,
        gap_ns=[0],
        duration_ns=[1_000_000],
        bytes=[24_000_000],
        correlation_delta=[14],
        copy_kind=[1],
        source_kind=[2],
        destination_kind=[3],
    )
    out.call_batches.add(
        thread_iid=1,
        base_host_ns=1_500_000,
        gap_ns=[0, 1000, 1000, 1000],
        duration_ns=[5000, 5000, 3_000_000, 4000],
        call_site_iid=[1, 1, 2, 3],
        correlation_delta=[11, 1, 1, 1],
    )
    for index in range(3):
        out.steps.add(host_ns=2_000_000 + index * 4_000_000, index=index, thread_iid=1, samples=32)
    out.clock_pairs.add(host_ns=1_000_000, device_ns=DEVICE_OFFSET + 1_000_000, width_ns=120)
    out.run_info.rank = rank
    out.run_info.world_size = 2
    out.run_info.devices.add(device=0, name="NVIDIA H200")
    out.self_cost.callbacks = 8
    out.self_cost.callback_ns = 640
    out.self_cost.callback_samples = 1
    out.self_cost.collector_cpu_ns = 50_000
    return out


def write(folder: Path, data: bytes, name: str = "run.gpuperf") -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def whole(pb: SimpleNamespace, **fields: Any) -> bytes:
    encoded = trace_builder.chunk(body(pb, **fields), 0, checkpoint=True, first=1_000_000, last=11_000_000)
    return trace_builder.file(file_header(pb), [encoded])


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


# ------------------------------------------------------------------------------------------------------------- report


def test_the_first_line_says_how_idle_and_how_complete(pb, tmp_path, capsys):
    code, out, err = run(capsys, "report", write(tmp_path, whole(pb)))
    assert (code, err) == (0, "")
    # Busy: 2-3, 3.5-5.5 and 7-8 ms of 1-11 ms.
    assert out.splitlines()[0] == "GPU 0 had nothing to run 60.0 % of 10.0 ms; nothing lost."
    for part in ("at::native::gemm<float, 4>", "cudaStreamSynchronize", "24.0 GB/s", "NVIDIA H200", "8,000"):
        assert part in out
    assert "\x1b" not in out  # no colours off a terminal


def test_json_has_exact_integers_and_null_for_what_is_not_known(pb, tmp_path, capsys):
    code, out, _ = run(capsys, "report", "--json", write(tmp_path, whole(pb)))
    assert code == 0
    document = json.loads(out)
    assert document["schema"] == 1
    (trace,) = document["traces"]
    (device,) = trace["devices"]
    assert (device["busy_ns"], device["idle_ns"], device["longest_idle_ns"]) == (4_000_000, 6_000_000, 3_000_000)
    assert (device["steps_captured_ns"], device["steps_busy_ns"]) == (8_000_000, 4_000_000)
    assert [kernel["name"] for kernel in trace["kernels"]] == [
        "void at::native::gemm<float, 4>(float*, int)",
        "add(float*)",
    ]
    assert trace["kernels"][0]["p99_ns"] == 2_000_000
    assert trace["copies"][0] == {
        "direction": "h2d",
        "source": "pinned",
        "destination": "device",
        "operations": 1,
        "copies": 1,
        "bytes": 24_000_000,
        "total_ns": 1_000_000,
        "whole_ns": 1_000_000,
        "bytes_per_second": 24_000_000_000,
        "link_bytes_per_second": None,
    }
    assert trace["waits"] == [
        {
            "function": "cudaStreamSynchronize",
            "reason": "synchronize",
            "count": 1,
            "total_ns": 3_000_000,
            "max_ns": 3_000_000,
        }
    ]
    assert trace["steps"]["durations"]["p50_ns"] == 4_000_000
    assert trace["steps"]["samples_per_second"] == 8000
    assert trace["steps"]["tokens"] is None
    assert trace["process"]["local_rank"] is None
    assert trace["completeness"]["launches"]["kernels"] == {"records": 2, "joined": 2}
    assert trace["completeness"]["complete"] is True


def test_several_files_have_a_row_for_each_rank_first(pb, tmp_path, capsys):
    paths = [write(tmp_path, whole(pb, rank=rank), f"r{rank}.gpuperf") for rank in (1, 0)]
    code, out, _ = run(capsys, "report", *paths)
    lines = out.split("\n")
    assert code == 0
    at = {rank: next(i for i, line in enumerate(lines) if f"r{rank}.gpuperf" in line) for rank in (0, 1)}
    assert at[1] == at[0] + 1
    assert out.count("GPU 0 had nothing to run") == 2
    assert at[0] < out[: out.index("GPU 0 had nothing to run")].count("\n")


def test_parts_are_read_with_their_first_file(pb, tmp_path, capsys):
    first = write(tmp_path, whole(pb))
    encoded = trace_builder.chunk(body(pb), 0, checkpoint=True, first=11_000_000, last=12_000_000)
    second = write(tmp_path, trace_builder.file(file_header(pb, part=1), [encoded]), "run.gpuperf.0001")
    assert report.select([first, second, first]) == [first]
    assert report.select([second]) == [second]
    code, out, _ = run(capsys, "report", "--json", first, second)
    (trace,) = json.loads(out)["traces"]
    assert (code, trace["trace"]["parts"], trace["devices"][0]["kernels"]) == (0, 2, 4)


def test_damage_is_shown_with_what_can_be_shown(pb, tmp_path, capsys):
    code, out, _ = run(capsys, "report", write(tmp_path, whole(pb)[:-20]))
    assert code == 4
    assert "the file was not closed" in out
    assert "damage: " in out
    assert "cudaStreamSynchronize" in out


def test_nothing_is_known_of_what_cannot_be_read(pb, tmp_path, capsys):
    data = whole(pb)
    broken = data[:200] + bytes(byte ^ 0xFF for byte in data[200:])
    code, out, _ = run(capsys, "report", write(tmp_path, broken))
    assert code == 4
    assert "No GPU work in what can be read of the trace" in out.splitlines()[0]
    assert "the trace is damaged" in out.splitlines()[0]
    assert "nothing lost" not in out


def test_launches_whose_kernels_are_missing_are_told(pb, tmp_path, capsys):
    chunk = body(pb)
    del chunk.kernel_batches[:]
    encoded = trace_builder.chunk(chunk, 0, checkpoint=True, first=1_000_000, last=11_000_000)
    code, out, _ = run(capsys, "report", write(tmp_path, trace_builder.file(file_header(pb), [encoded])))
    assert code == 0
    assert "the kernels of 2 launches are not in the trace" in out.splitlines()[0]
    assert "nothing lost" not in out


def test_a_part_that_is_missing_is_told(pb, tmp_path, capsys):
    encoded = trace_builder.chunk(body(pb), 0, checkpoint=True, first=1_000_000, last=11_000_000)
    path = write(tmp_path, trace_builder.file(file_header(pb), [encoded], continues=True))
    code, out, _ = run(capsys, "report", path)
    assert code == 4
    assert "the trace is damaged" in out.splitlines()[0]
    assert "run.gpuperf.0001" in out
    _, out, _ = run(capsys, "dump", path)
    (line,) = (line for line in out.splitlines() if line.startswith("damage "))
    assert line.endswith(f' file="{path}.0001"')


def test_where_the_longest_idle_time_lies(pb, tmp_path, capsys):
    _, out, _ = run(capsys, "report", write(tmp_path, whole(pb)))
    # Idle: 1-2, 3-3.5, 5.5-7 and 8-11 ms; steps end at 2, 6 and 10 ms, and 9.5 is not behind 10.
    where = "from 7.00 ms in, after the end of step 1"
    assert f"GPU 0: longest idle time 3.00 ms, {where}; idle 50.0 % of the 8.00 ms between steps" in out


@pytest.mark.parametrize(
    ("ends", "where"),
    [
        ([], ""),
        ([9_000_000, 10_000_000], ""),  # begins before the end of step 0, and its middle is behind no other
        ([2_000_000, 12_000_000], ", between the ends of steps 0 and 1"),
        ([2_000_000, 9_000_000, 12_000_000], ", between the ends of steps 0 and 2"),
        ([2_000_000, 8_000_000], ", after the last step"),
        ([11_000_000, 12_000_000], ", before the first step was over"),
        ([9_000_000, 11_000_000], ", before the end of step 1"),
    ],
)
def test_between_which_steps_the_longest_idle_time_lies(pb, tmp_path, capsys, ends, where):
    chunk = body(pb)
    del chunk.steps[:]
    for index, end in enumerate(ends):
        chunk.steps.add(host_ns=end, index=index)
    encoded = trace_builder.chunk(chunk, 0, checkpoint=True, first=1_000_000, last=11_000_000)
    _, out, _ = run(capsys, "report", write(tmp_path, trace_builder.file(file_header(pb), [encoded])))
    (line,) = (line for line in out.splitlines() if "longest idle time" in line)
    assert line.split(";")[0] == f"  GPU 0: longest idle time 3.00 ms, from 7.00 ms in{where}"  # 8 to 11 ms


def test_own_cost_that_was_not_measured_is_not_zero(pb, tmp_path, capsys):
    path = write(tmp_path, whole(pb))  # tells nothing of the flush thread
    _, out, _ = run(capsys, "report", path)
    assert "50.0 µs collector CPU, – flush CPU" in out
    cost = report.summary(path)["self_cost"]
    assert (cost["collector_cpu_ns"], cost["flush_cpu_ns"]) == (50_000, None)


def test_ranges_are_carried_to_the_gpu(pb, tmp_path, capsys):
    chunk = body(pb)
    chunk.strings.add(iid=20, value=b"forward")
    chunk.strings.add(iid=21, value=b"NCCL")
    # Launches enter at 1.500, 1.506 and 1.512 ms, the copy at 4.513; thread 77.
    chunk.annotations.add(begin_host_ns=1_400_000, duration_ns=110_000, name_iid=20, thread_iid=1)
    row = chunk.annotations.add(begin_host_ns=1_506_000, duration_ns=4_000_000, name_iid=20, thread_iid=1, source=1)
    row.nvtx.domain_iid = 21
    chunk.open_annotations.add(begin_host_ns=1_600_000, name_iid=20, thread_iid=1, source=2)
    encoded = trace_builder.chunk(chunk, 0, checkpoint=True, first=1_000_000, last=11_000_000)
    path = write(tmp_path, trace_builder.file(file_header(pb), [encoded]))
    _, out, _ = run(capsys, "report", "--json", path)
    (trace,) = json.loads(out)["traces"]
    figures = {row["source"]: row for row in trace["ranges"]}
    keys = ("count", "total_ns", "open", "launches", "operations", "gpu_ns", "gpu_idle_ns")
    # Kernels at 2-3 and 3.5-5.5 ms, the copy at 7-8.
    assert [figures["gpuperf"][key] for key in keys] == [1, 110_000, 0, 2, 2, 3_000_000, 500_000]
    assert [figures["nvtx"][key] for key in keys] == [1, 4_000_000, 0, 2, 2, 3_000_000, 1_500_000]
    assert [figures["nvtx_start_end"][key] for key in keys] == [0, 0, 1, 1, 1, 1_000_000, 0]
    assert trace["ranges_complete"] is True
    _, out, _ = run(capsys, "report", path)
    assert "forward @ NCCL" in out
    assert "1 range did not end" in out


@pytest.mark.parametrize("shape", ["nested", "overlapping"])
def test_more_ranges_than_are_carried_to_the_gpu_are_told(pb, tmp_path, capsys, shape):
    chunk = body(pb)
    for at in range(70):
        begin, end = 1_400_000 + at, 1_600_000 + (-at if shape == "nested" else at)
        chunk.annotations.add(begin_host_ns=begin, duration_ns=end - begin, name_iid=5, thread_iid=1)
    encoded = trace_builder.chunk(chunk, 0, checkpoint=True, first=1_000_000, last=11_000_000)
    path = write(tmp_path, trace_builder.file(file_header(pb), [encoded]))
    _, out, _ = run(capsys, "report", "--json", path)
    (trace,) = json.loads(out)["traces"]
    assert trace["ranges_complete"] is False
    assert trace["ranges"][0]["count"] == 70
    assert trace["ranges"][0]["launches"] == 2


def test_a_killed_process_leaves_a_file_that_was_not_closed(pb, tmp_path, capsys):
    encoded = trace_builder.chunk(body(pb), 0, checkpoint=True, first=1_000_000, last=11_000_000)
    path = write(tmp_path, trace_builder.file(file_header(pb), [encoded], closed=False))
    code, out, _ = run(capsys, "report", path)
    assert code == 4
    assert out.splitlines()[0].endswith("; the end of the trace is missing.")


@pytest.mark.parametrize(("closed", "says"), [(True, "was not over when the session ended"), (False, "did not return")])
def test_a_call_that_an_orderly_end_cut_is_no_hang(pb, tmp_path, capsys, closed, says):
    chunk = body(pb)
    chunk.open_calls.add(thread_iid=1, call_site_iid=1, correlation=99, enter_host_ns=10_000_000)
    encoded = trace_builder.chunk(chunk, 0, checkpoint=True, first=1_000_000, last=11_000_000)
    _, out, _ = run(capsys, "report", write(tmp_path, trace_builder.file(file_header(pb), [encoded], closed=closed)))
    assert f"begun 9.00 ms in, {says}" in " ".join(out.split())


@pytest.mark.parametrize("verb", ["report", "dump"])
@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a gpuperf trace: it is empty"),
        (b"#!/bin/sh\necho no\n", "not a gpuperf trace"),
        (b"\x7a\x08GPUPERF1\x0a\x50", "cut off inside its header"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_trace_is_one_line_and_exit_code_3(tmp_path, capsys, verb, data, says):
    path = str(tmp_path / "x") if data is None else write(tmp_path, data, "x")
    code, out, err = run(capsys, verb, path)
    assert (code, out) == (3, "")
    assert says in err
    assert err.count("\n") == 1
    assert path in err


def test_a_path_may_be_any_bytes(pb, tmp_path):
    def gpuperf(*arguments: bytes | str) -> tuple[int, str]:
        command = [sys.executable, "-m", "gpuperf", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    path = os.fsencode(tmp_path) + b"/\xff\xfe"
    code, said = gpuperf("report", path)
    assert code == 3
    assert said.endswith("\\udcff\\udcfe: cannot be read: No such file or directory\n")
    Path(os.fsdecode(path)).write_bytes(whole(pb))
    for arguments in (["report", path], ["report", path, path], ["report", "--json", path], ["dump", path]):
        assert gpuperf(*arguments) == (0, "")


@pytest.mark.parametrize("verb", ["report", "dump"])
def test_a_newer_format_is_refused(pb, tmp_path, capsys, verb):
    path = write(tmp_path, trace_builder.file(file_header(pb, format_version=2, producer="gpuperf 9.9"), []))
    code, _, err = run(capsys, verb, path)
    assert code == 3
    assert "made by a newer gpuperf (gpuperf 9.9" in err


def test_one_bad_file_of_several_does_not_hide_the_others(pb, tmp_path, capsys):
    code, out, err = run(capsys, "report", write(tmp_path, b"x", "bad"), write(tmp_path, whole(pb)))
    assert code == 3
    assert "GPU 0 had nothing to run" in out
    assert err.count("\n") == 1


def test_losses_and_outages_are_told(pb, tmp_path, capsys):
    chunk = body(pb)
    chunk.losses.add(reason=1, kind=4, count=1234, first_host_ns=2_000_000, last_host_ns=3_000_000)
    chunk.outages.add(reason=2, begin_host_ns=9_000_000, end_host_ns=10_000_000, detail="torch.profiler")
    encoded = trace_builder.chunk(chunk, 0, checkpoint=True, first=1_000_000, last=11_000_000)
    code, out, _ = run(capsys, "report", write(tmp_path, trace_builder.file(file_header(pb), [encoded])))
    assert code == 0
    assert "1,234 call records dropped, a thread's ring was full (1.00 ms in to 2.00 ms in)" in out.splitlines()[0]
    assert "1.00 ms not captured (yielded)" in out
    assert "of 9.00 ms" in out.splitlines()[0]


def test_buffers_are_no_records(pb, tmp_path, capsys):
    """How many records went with a buffer is not known: neither a number of records, nor none."""
    chunk = body(pb)
    chunk.losses.add(reason=2, kind=6, count=3, first_host_ns=2_000_000, last_host_ns=3_000_000)
    encoded = trace_builder.chunk(chunk, 0, checkpoint=True, first=1_000_000, last=11_000_000)
    path = write(tmp_path, trace_builder.file(file_header(pb), [encoded]))
    _, out, _ = run(capsys, "report", path)
    assert "3 activity buffers refused, the pool was empty" in out.splitlines()[0]
    assert "no record lost" not in out
    assert "nothing lost" not in out
    _, out, _ = run(capsys, "report", path, write(tmp_path, whole(pb), "other"))
    assert "≥ 0" in out
    facts = report.summary(path)["completeness"]
    assert (facts["lost"], facts["complete"]) == (0, False)


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 200])
def test_narrow_terminals_keep_every_line_within_their_width(pb, tmp_path, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, _ = run(capsys, "report", write(tmp_path, whole(pb)))
    assert code == 0
    assert max(map(len, out.splitlines())) <= columns


@pytest.mark.parametrize("columns", [60, 80, 110])
def test_a_terminal_shows_numbers_whole(pb, tmp_path, columns):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system=None, width=columns)
    text.show_report(console, [report.summary(write(tmp_path, whole(pb)))], top=10)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= columns
    assert any(line.startswith("66.7 %  2.00 ms") for line in lines)
    assert all("…" not in line.split("name")[0] for line in lines if line.startswith("share"))


def test_names_are_no_markup(pb, tmp_path, capsys):
    chunk = body(pb)
    chunk.strings.add(iid=9, value=b"[bold]:smile:\xff\x1b[31m")
    chunk.annotations.add(begin_host_ns=1_000_000, duration_ns=5, name_iid=9, thread_iid=1)
    encoded = trace_builder.chunk(chunk, 0, first=1_000_000, last=11_000_000)
    _, out, _ = run(capsys, "report", write(tmp_path, trace_builder.file(file_header(pb), [encoded])))
    assert "[bold]:smile:�" in out
    assert "\x1b" not in out


def test_a_closed_pipe_is_no_traceback(pb, tmp_path):
    path = write(tmp_path, whole(pb))
    command = f"'{sys.executable}' -m gpuperf dump '{path}' | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("file part=0")
    assert done.stderr == ""


# --------------------------------------------------------------------------------------------------------------- dump


def test_dump_chunks_shows_frames_only(pb, tmp_path, capsys):
    code, out, _ = run(capsys, "dump", "--chunks", write(tmp_path, whole(pb)))
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["file", "chunk", "end"]


def test_the_golden_trace_reads_as_ever(capsys):
    code, out, _ = run(capsys, "dump", str(GOLDEN / "format1.gpuperf"))
    assert code == 0
    assert out == (GOLDEN / "format1.dump").read_text()


def test_the_golden_trace_reports_as_ever(capsys):
    code, out, _ = run(capsys, "report", "--json", str(GOLDEN / "format1.gpuperf"))
    document = json.loads(out)
    for trace in document["traces"]:
        trace["trace"]["path"] = Path(trace["trace"]["path"]).name
        del trace["trace"]["bytes"]
    assert code == 0
    assert document == json.loads((GOLDEN / "format1.report.json").read_text())


def parse(line: str) -> tuple[str, dict[str, str]]:
    kind, *pairs = line.split(" ")
    return kind, dict(pair.split("=", 1) for pair in pairs)


NS = st.integers(0, 2**61)
U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
ROW = st.tuples(NS, st.integers(0, 2**40), U64, U32, U64)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(rows=st.lists(ROW, max_size=20))
def test_random_rows_come_back_from_the_dump(pb, tmp_path, rows):
    chunk = pb.trace.ChunkBody()
    chunk.streams.add(iid=3, device=1, context=2, stream=9)
    kernels = chunk.kernel_batches.add(stream_iid=3, base_device_ns=12345, base_correlation=2**64 - 1)
    memsets = chunk.memset_batches.add(stream_iid=3, base_device_ns=12345, base_correlation=2**64 - 1)
    end, correlation = 12345, 2**64 - 1
    for begin, duration, row_correlation, graph, node in rows:
        delta = (row_correlation - correlation + 2**63) % 2**64 - 2**63
        for batch in (kernels, memsets):
            batch.gap_ns.append(begin - end)
            batch.duration_ns.append(duration)
            batch.correlation_delta.append(delta)
            batch.graph_id.append(graph)
            batch.graph_node_id.append(node)
        kernels.kernel_iid.append(0)
        memsets.bytes.append(node)
        end, correlation = begin + duration, row_correlation
    path = write(tmp_path, trace_builder.file(file_header(pb), [trace_builder.chunk(chunk, 0)]))
    lines: list[str] = []
    assert report.dump(path, lines.append)
    parsed = [parse(line) for line in "".join(lines).splitlines()[4:]]
    for kind in ("kernel", "memset"):
        found = [fields for name, fields in parsed if name == kind]
        assert [
            (
                int(fields["begin_ns"]),
                int(fields["duration_ns"]),
                int(fields["correlation"]),
                int(fields.get("graph_id", 0)),
            )
            for fields in found
        ] == [row[:4] for row in rows]
    assert [int(fields["bytes"]) for name, fields in parsed if name == "memset"] == [row[4] for row in rows]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(data=st.data())
def test_a_mangled_file_never_raises_anything_but_trace_error(pb, tmp_path, data):
    raw = bytearray(whole(pb))
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = write(tmp_path, bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    said = ""
    try:
        report.summary(path)
        report.dump(path, lambda text: None)
    except report.TraceError as error:
        said = str(error)
    assert "\n" not in said


# -------------------------------------------------------------------------------------------------------------- parts


def test_a_progress_callback_hears_of_bytes_and_may_raise(pb, tmp_path):
    path = write(tmp_path, whole(pb))
    seen: list[int] = []
    report.summary(path, seen.append)
    assert seen
    assert seen[-1] <= os.path.getsize(path)

    class StopError(Exception):
        pass

    def stop(_: int) -> None:
        raise StopError

    with pytest.raises(StopError):
        report.summary(path, stop)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"), (0, "0 ns"), (999, "999 ns"), (1000, "1.00 µs"), (9_999, "10.0 µs"), (99_960, "100 µs"),
        (999_600, "1.00 ms"), (1_234_567, "1.23 ms"), (12_300_000_000, "12.3 s"), (4_321_000_000_000, "4,321 s"),
    ],
)  # fmt: skip
def test_durations(value, shown):
    assert units.duration(value) == shown


def test_other_units():
    assert units.size(1_234_567) == "1.23 MB"
    assert units.bandwidth(24_600_000_000) == "24.6 GB/s"
    assert units.share(1, 3) == "33.3 %"
    assert units.share(1, 100_000) == "<0.1 %"
    assert units.share(99_999, 100_000) == ">99.9 %"
    assert units.share(5, 5) == "100.0 %"
    assert units.share(0, 5) == "0.0 %"
    assert units.share(None, 5) == units.share(1, 0) == "–"
    assert units.rate(32, 4_000_000) == "8,000"


def test_short_kernel_names():
    assert kernel_names.short("void at::native::(anonymous namespace)::f<int, (T)1>(int (*)(int))") == (
        "at::native::f<int, (T)1>"
    )
    assert kernel_names.short("triton_poi_fused_0") == "triton_poi_fused_0"
    assert kernel_names.short(None) == "(name lost)"
    assert kernel_names.short("(odd)") == "(odd)"
