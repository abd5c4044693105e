"""Builds trace files with protoc-generated code, as docs/trace_format.md has them.

pb = trace_builder.schema()                       # modules trace, events, metadata
body = pb.trace.ChunkBody(steps=[pb.events.Step(host_ns=5)])
data = trace_builder.file(pb.metadata.FileHeader(format_version=1), [trace_builder.chunk(body, 0)])
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAGIC = b"\x7a\x08GPUPERF1"
SYNC_MARKER = b"\xf7GPCHUNK\x9e\x37\x79\xb9\x7f\x4a\x7c\x15"


@lru_cache(maxsize=1)
def schema() -> SimpleNamespace:
    """The generated modules; skips the test where protoc or Protobuf's Python package is missing."""
    pytest.importorskip("google.protobuf")
    protoc = shutil.which("protoc")
    if protoc is None:
        pytest.skip("needs protoc")
    out = tempfile.mkdtemp(prefix="gpuperf-schema-")
    try:
        protos = sorted((ROOT / "proto").rglob("*.proto"))
        subprocess.run([protoc, f"-I{ROOT / 'proto'}", f"--python_out={out}", *protos], check=True)
        # The generated packages are gpuperf.trace.v1.*: beside the installed package `gpuperf`, not instead of it.
        package = importlib.import_module("gpuperf")
        package.__path__.append(f"{out}/gpuperf")
        names = ("trace", "events", "metadata")
        return SimpleNamespace(**{name: importlib.import_module(f"gpuperf.trace.v1.{name}_pb2") for name in names})
    finally:
        shutil.rmtree(out, ignore_errors=True)
        sys.path_importer_cache.clear()


@lru_cache(maxsize=1)
def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ 0x82F63B78 if value & 1 else value >> 1
        table.append(value)
    return table


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli)."""
    table = _crc_table()
    value = 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def event_count(body: Any) -> int:
    """Rows of a chunk body, as ChunkHeader.event_count counts them."""
    batches = (body.kernel_batches, body.copy_batches, body.memset_batches, body.call_batches)
    count = sum(len(batch.gap_ns) for group in batches for batch in group)
    lists = ("steps", "annotations", "marks", "counters")
    return count + sum(len(getattr(body, name)) for name in lists)


def chunk(body: Any, sequence: int, *, checkpoint: bool = False, first: int = 0, last: int = 0) -> bytes:
    """The bytes of one chunk, with its tag and length. `body` is a ChunkBody or its serialised bytes."""
    content = body if isinstance(body, bytes) else body.SerializeToString(deterministic=True)
    header = schema().trace.ChunkHeader(
        sync_marker=SYNC_MARKER,
        sequence=sequence,
        body_crc32c=crc32c(content),
        body_size=len(content),
        first_host_ns=first,
        last_host_ns=last,
        event_count=0 if isinstance(body, bytes) else event_count(body),
        dictionary_checkpoint=checkpoint,
    )
    return field(2, field(1, header.SerializeToString(deterministic=True)) + field(2, content))


def file(header: Any, chunks: list[bytes], *, closed: bool = True, continues: bool = False) -> bytes:
    """The bytes of one file. `closed`: with index and footer. `continues`: says that a further part follows."""
    pb = schema().trace
    encoded_header = header.SerializeToString(deterministic=True)
    check_sum = varint(4 << 3 | 5) + crc32c(encoded_header).to_bytes(4, "little")
    data = MAGIC + field(1, encoded_header) + check_sum
    index = pb.TraceIndex(continues=continues)
    for encoded in chunks:
        parsed = pb.TraceFile.FromString(encoded).chunks[0].header
        index.entries.add(
            offset=len(data),
            first_host_ns=parsed.first_host_ns,
            last_host_ns=parsed.last_host_ns,
            event_count=parsed.event_count,
            dictionary_checkpoint=parsed.dictionary_checkpoint,
        )
        data += encoded
    if closed:
        offset = len(data)
        data += field(3, index.SerializeToString(deterministic=True)) + b"\x71" + offset.to_bytes(8, "little")
    return data
