"""The oracle decoder against files that protoc wrote (`protoc --encode`): no line of code is shared."""

from __future__ import annotations

import shutil
import struct
import subprocess
from typing import Any

import numpy as np
import pytest
import trace_decode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PROTOC = shutil.which("protoc")
pytestmark = pytest.mark.skipif(PROTOC is None, reason="protoc is not installed")

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
GAP = st.integers(-(2**40), 2**40)


def text(message: dict[str, Any]) -> str:
    """Protobuf text format of nested dictionaries and lists."""
    lines = []
    for name, value in message.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                lines.append(f"{name} {{\n{text(item)}\n}}")
            elif isinstance(item, bytes):
                octal = "".join(f"\\{byte:03o}" for byte in item)
                lines.append(f'{name}: "{octal}"')
            elif isinstance(item, bool):
                lines.append(f"{name}: {str(item).lower()}")
            else:
                lines.append(f"{name}: {item}")
    return "\n".join(lines)


def encode(type_name: str, message: dict[str, Any]) -> bytes:
    root = trace_decode.PROTO_DIR.parents[2]
    command = ["protoc", f"-I{root}", f"--encode=gpuperf.trace.v1.{type_name}", "gpuperf/trace/v1/trace.proto"]
    return subprocess.run(command, input=text(message).encode(), capture_output=True, check=True).stdout


def delimited(tag: int, payload: bytes) -> bytes:
    return bytes([tag]) + trace_decode._encode_varint(len(payload)) + payload


def chunk(sequence: int, body: dict[str, Any], count: int, /, checkpoint: bool = False, **header: Any) -> bytes:
    raw = encode("ChunkBody", body)
    fields = {
        "sync_marker": trace_decode.SYNC_MARKER,
        "sequence": sequence,
        "body_crc32c": trace_decode.crc32c(raw),
        "body_size": len(raw),
        "first_host_ns": 1000 + sequence,
        "last_host_ns": 2000 + sequence,
        "event_count": count,
        "dictionary_checkpoint": checkpoint,
    }
    return delimited(0x12, delimited(0x0A, encode("ChunkHeader", fields | header)) + delimited(0x12, raw))


HEADER = delimited(0x0A, encode("FileHeader", {"format_version": 1, "process": {"pid": 42}})) if PROTOC else b""
START = trace_decode.MAGIC + HEADER

DICTIONARY: dict[str, Any] = {
    "strings": [
        {"iid": 1, "value": b"_Z4gemmPf"},
        {"iid": 2, "value": b"cudaLaunchKernel"},
        {"iid": 3, "value": b"\xff\x00odd"},
    ],
    "threads": [{"iid": 1, "tid": 4711}],
    "streams": [
        {"iid": 1, "device": 0, "context": 1, "stream": 7},
        {"iid": 2, "device": 1, "context": 2, "stream": 13},
    ],
    "kernels": [
        {"iid": 1, "name_iid": 1, "grid_x": 4, "grid_y": 1, "grid_z": 1, "block_x": 128},
        {"iid": 2, "name_iid": 3, "grid_x": 9, "block_x": 32, "device_launched": True},
    ],
    "call_sites": [
        {
            "iid": 1,
            "domain": 1,
            "cbid": 211,
            "name_iid": 2,
            "kind": 1,
            "function_name_iid": 1,
            "stream_handle": 2**64 - 1,
        },
        {"iid": 2, "domain": 1, "cbid": 41, "name_iid": 3, "kind": 4, "has_stream": True},
    ],
}


def small_file() -> bytes:
    """Two chunks, index and footer."""
    first = chunk(
        0,
        DICTIONARY
        | {
            "kernel_batches": [
                {
                    "stream_iid": 2,
                    "base_device_ns": 10_000,
                    "base_correlation": 2**32,
                    "gap_ns": [5, -3, 7],
                    "duration_ns": [100, 200, 300],
                    "kernel_iid": [1, 2, 1],
                    "correlation_delta": [1, -2, 4],
                }
            ],
            "call_batches": [
                {
                    "thread_iid": 1,
                    "base_host_ns": 500,
                    "base_correlation": 9,
                    "gap_ns": [1, 2, 3],
                    "duration_ns": [10, 20, 30],
                    "call_site_iid": [1, 2, 1],
                    "correlation_delta": [1, 1, 1],
                    "result_row": [2],
                    "result_code": [700],
                    "copy_row": [1],
                    "copy_destination": [2**63],
                    "copy_source": [77],
                    "copy_bytes": [4096],
                    "copy_kind": [1],
                }
            ],
            "open_calls": [
                {"thread_iid": 1, "call_site_iid": 1, "correlation": 12, "enter_host_ns": 5},
                {"thread_iid": 1, "call_site_iid": 1, "correlation": 99, "enter_host_ns": 6},
            ],
            "run_info": {"rank": 3, "driver_version": '"580.1"', "devices": [{"device": 0, "nvlink_known": True}]},
            "self_cost": {"callbacks": 1},
        },
        6,
        checkpoint=True,
    )
    second = chunk(
        1,
        {
            "steps": [{"host_ns": 7, "index": 0, "thread_iid": 1, "samples": 32}],
            "counters": [{"host_ns": 8, "name_iid": 3, "thread_iid": 1, "value": 0.5}],
            "losses": [{"reason": 1, "kind": 4, "count": 6}, {"reason": 1, "kind": 1, "count": 5}],
            "copy_batches": [
                {
                    "stream_iid": 1,
                    "base_device_ns": 1,
                    "gap_ns": [2],
                    "duration_ns": [3],
                    "bytes": [64],
                    "copy_kind": [1],
                    "correlation_delta": [8],
                }
            ],
            "self_cost": {"callbacks": 2},
        },
        3,
    )
    body = START + first + second
    offsets = [len(START), len(START) + len(first)]
    entries = [
        {
            "offset": offsets[0],
            "first_host_ns": 1000,
            "last_host_ns": 2000,
            "event_count": 6,
            "dictionary_checkpoint": True,
        },
        {"offset": offsets[1], "first_host_ns": 1001, "last_host_ns": 2001, "event_count": 3},
    ]
    index = delimited(0x1A, encode("TraceIndex", {"entries": entries}))
    return body + index + b"\x71" + struct.pack("<Q", len(body))


def test_columns() -> None:
    trace = trace_decode.loads(small_file())
    assert trace.clean
    assert trace.tail_bytes == 0
    assert trace.header["process"]["pid"] == 42
    kernels = trace.kernels
    assert kernels["start"].tolist() == [10_005, 10_102, 10_309]
    assert kernels["end"].tolist() == [10_105, 10_302, 10_609]
    assert kernels["correlation"].tolist() == [2**32 + 1, 2**32 - 1, 2**32 + 3]
    assert kernels["name"].tolist() == ["_Z4gemmPf", b"\xff\x00odd".decode("utf-8", "surrogateescape"), "_Z4gemmPf"]
    assert kernels["grid_x"].tolist() == [4, 9, 4]
    assert kernels["device_launched"].tolist() == [0, 1, 0]
    assert kernels["device"].tolist() == [1, 1, 1]
    assert kernels["graph_id"].tolist() == [0, 0, 0]
    calls = trace.calls
    assert calls["enter"].tolist() == [501, 513, 536]
    assert calls["exit"].tolist() == [511, 533, 566]
    assert calls["tid"].tolist() == [4711] * 3
    assert calls["function"].tolist() == ["_Z4gemmPf", "", "_Z4gemmPf"]
    assert calls["stream_handle"].tolist() == [2**64 - 1, 0, 2**64 - 1]
    assert calls["result_code"].tolist() == [0, 0, 700]
    assert calls["copy_destination"].tolist() == [0, 2**63, 0]
    assert calls["has_copy"].tolist() == [False, True, False]
    assert [call["correlation"] for call in trace.open_calls] == [99]  # 12 was finished in the same chunk
    assert trace.copies["bytes"].tolist() == [64]
    assert trace.copies["copy_count"].tolist() == [1]
    assert trace.memsets == {}
    assert trace.steps[0]["samples"] == 32
    assert trace.counters[0]["value"] == 0.5
    assert trace.lost() == {1: 11}
    assert trace.run_info is not None
    assert trace.run_info["rank"] == 3
    assert trace.run_info["devices"][0]["nvlink_known"] is True
    assert trace.self_cost is not None
    assert trace.self_cost["callbacks"] == 2


def test_a_cut_at_any_byte_costs_the_torn_chunk_only() -> None:
    data = small_file()
    whole = trace_decode.loads(data)
    second = whole.chunks[1].offset
    third = int.from_bytes(data[-8:], "little")
    for length in range(len(START), len(data)):
        trace = trace_decode.loads(data[:length])
        assert not trace.clean
        assert len(trace.chunks) == (length >= second) + (length >= third)
    assert len(trace_decode.loads(data[: second + 1]).kernels["name"]) == 3


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (b"\x7fELF" + bytes(60), "not a gpuperf trace"),
        (trace_decode.MAGIC, "inside its header"),
        (trace_decode.MAGIC + delimited(0x0A, b"\x08\x02"), "format version 2"),
    ],
)
def test_no_trace(broken: bytes, message: str) -> None:
    with pytest.raises(trace_decode.DecodeError, match=message):
        trace_decode.loads(broken)


@pytest.mark.parametrize(
    ("body", "count", "header", "message"),
    [
        ({}, 0, {"body_crc32c": 1}, "checksum"),
        ({}, 0, {"sequence": 4}, "expected sequence 0"),
        ({}, 3, {}, "event_count"),
        ({}, 0, {"sync_marker": b"0123456789abcdef"}, "sync marker"),
        ({"steps": [{"thread_iid": 5}]}, 1, {}, "thread 5 is used and not defined"),
        ({"strings": [{"iid": 1, "value": b"a"}, {"iid": 1, "value": b"b"}]}, 0, {}, "second meaning"),
    ],
)
def test_broken_chunk(body: dict[str, Any], count: int, header: dict[str, Any], message: str) -> None:
    with pytest.raises(trace_decode.DecodeError, match=message):
        trace_decode.loads(START + chunk(0, body, count, **header))


def test_a_checkpoint_forgets_what_stood_before() -> None:
    data = START + chunk(0, DICTIONARY, 0, checkpoint=True)
    step = {"steps": [{"thread_iid": 1}]}
    assert len(trace_decode.loads(data + chunk(1, step, 1)).steps) == 1
    with pytest.raises(trace_decode.DecodeError, match="thread 1 is used and not defined"):
        trace_decode.loads(data + chunk(1, step, 1, checkpoint=True))


@settings(deadline=None)
@given(st.lists(U64, max_size=300))
def test_varints(values: list[int]) -> None:
    data = b"".join(trace_decode._encode_varint(value) for value in values)
    assert trace_decode.varints(data).tolist() == values


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=100))
def test_zigzag(values: list[int]) -> None:
    coded = np.array([(value << 1 ^ value >> 63) & (2**64 - 1) for value in values], dtype=np.uint64)
    assert trace_decode.zigzag(coded).tolist() == values


@settings(deadline=None)
@given(st.binary(max_size=3000))
def test_crc32c(data: bytes) -> None:
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    assert trace_decode.crc32c(data) == state ^ 0xFFFFFFFF


def test_crc32c_known() -> None:
    assert trace_decode.crc32c(b"123456789") == 0xE3069283


COLUMNS = st.integers(0, 40).flatmap(
    lambda n: st.tuples(
        *[st.lists(element, min_size=n, max_size=n) for element in (GAP, st.integers(0, 2**40), U32, U64)]
    )
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(COLUMNS, st.integers(0, 2**61))
def test_what_protoc_encodes_is_decoded(columns: tuple[list[int], ...], base: int) -> None:
    gaps, durations, graph_ids, node_ids = columns
    batch = {
        "base_device_ns": base,
        "gap_ns": gaps,
        "duration_ns": durations,
        "graph_id": graph_ids,
        "graph_node_id": node_ids,
    }
    decoded = trace_decode.decode("KernelBatch", encode("KernelBatch", batch))
    assert {name: decoded[name] if name == "base_device_ns" else decoded[name].tolist() for name in batch} == batch
