"""An independent decoder of gpuperf traces: the oracle beside the C++ reader.

Pure Python and numpy. It shares nothing with the reader but the text of `proto/`: the field numbers and types are read
from the .proto files, the Protobuf wire format is walked here, packed columns are decoded with numpy, frames and
checksums are verified here. No generated code, no protobuf runtime of whatever version.

    trace = trace_decode.read("run.gpuperf")
    trace.kernels["name"], trace.kernels["start"]        # columns of equal length, one row per record
    trace.calls["name"], trace.calls["enter"]            # finished calls: per thread in order of their exits
    trace.steps, trace.losses, trace.clock_pairs         # lists of dictionaries
    trace.clean, trace.tail_bytes                        # did the file end as a clean close leaves it?

A torn tail is not an error (`clean` is false); everything else that breaks docs/trace_format.md raises DecodeError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[Any]
Table = dict[str, Column]
Message = dict[str, Any]

PROTO_DIR = Path(__file__).resolve().parents[1] / "proto" / "gpuperf" / "trace" / "v1"
MAGIC = b"\x7a\x08GPUPERF1"
SYNC_MARKER = bytes.fromhex("f7") + b"GPCHUNK" + bytes.fromhex("9e3779b97f4a7c15")
FOOTER_BYTES = 9
NEWEST_VERSION = 1


class DecodeError(ValueError):
    """The file breaks the format."""


# ------------------------------------------------------------------------------------------------------------ schema


@dataclass(frozen=True)
class Field:
    """One field of a message, as the .proto text declares it."""

    name: str
    type: str
    repeated: bool


Schema = dict[str, dict[int, Field]]

_INTEGERS = {"uint32", "uint64", "int32", "int64", "sint32", "sint64", "bool"}
_FIXED = {"fixed32": "<u4", "fixed64": "<u8", "float": "<f4", "double": "<f8"}


@lru_cache(maxsize=1)
def schema() -> tuple[Schema, frozenset[str]]:
    """Messages and the names of enums, from the .proto files."""
    messages: Schema = {}
    enums: set[str] = set()
    for path in sorted(PROTO_DIR.glob("*.proto")):
        text = re.sub(r"//[^\n]*", "", path.read_text())
        for kind, name, body in re.findall(r"\b(message|enum)\s+(\w+)\s*\{([^{}]*)\}", text):
            if kind == "enum":
                enums.add(name)
                continue
            messages[name] = {
                int(number): Field(field_name, type_name, label == "repeated")
                for label, type_name, field_name, number in re.findall(
                    r"(?:(repeated|optional)\s+)?(\w+)\s+(\w+)\s*=\s*(\d+)\s*;", body
                )
            }
    return messages, frozenset(enums)


# ------------------------------------------------------------------------------------------------------- wire format


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise EOFError
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise DecodeError("a varint of more than 10 bytes")


def _fields(data: memoryview) -> Iterator[tuple[int, int, int, int, Any]]:
    """Yields (field number, wire type, offset of the tag, offset behind the field, raw value); EOFError if torn."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = _varint(data, at)
        wire_type = tag & 7
        raw: Any
        if wire_type == 0:
            raw, at = _varint(data, at)
        elif wire_type == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise EOFError
            raw = data[at : at + length]
            at += length
        elif wire_type in (1, 5):
            size = 8 if wire_type == 1 else 4
            if at + size > len(data):
                raise EOFError
            raw = data[at : at + size]
            at += size
        else:
            raise DecodeError(f"wire type {wire_type} at offset {begin}")
        yield tag >> 3, wire_type, begin, at, raw


def varints(data: memoryview | bytes) -> npt.NDArray[np.uint64]:
    """Decodes a packed column of varints."""
    raw = np.frombuffer(data, dtype=np.uint8)
    if raw.size == 0:
        return np.zeros(0, dtype=np.uint64)
    ends = np.flatnonzero(raw < 0x80)
    if ends.size == 0 or ends[-1] != raw.size - 1:
        raise DecodeError("a packed column ends inside a varint")
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > 10:
        raise DecodeError("a varint of more than 10 bytes")
    values = np.zeros(ends.size, dtype=np.uint64)
    for k in range(longest):
        rows = np.flatnonzero(lengths > k)
        values[rows] |= (raw[starts[rows] + k] & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * k)
    return values


def zigzag(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Undoes the zigzag coding of sint32 and sint64."""
    one = np.uint64(1)
    decoded: npt.NDArray[np.uint64] = (values >> one) ^ (~(values & one) + one)
    return decoded.view(np.int64)


def _numbers(type_name: str, values: npt.NDArray[np.uint64]) -> Column:
    if type_name.startswith("sint"):
        return zigzag(values)
    return values.view(np.int64) if type_name.startswith("int") else values


def _scalar(type_name: str, raw: Any) -> Any:
    if type_name in _FIXED:
        return np.frombuffer(raw, dtype=_FIXED[type_name])[0].item()
    if type_name == "string":
        return bytes(raw).decode("utf-8", "surrogateescape")
    if type_name == "bytes":
        return bytes(raw)
    if type_name == "bool":
        return bool(raw)
    if type_name in _INTEGERS:
        return _numbers(type_name, np.array([raw], dtype=np.uint64))[0].item()
    return raw  # an enum


def decode(type_name: str, data: memoryview | bytes) -> Message:
    """Decodes one message. Fields that are not there get their default, so a column of no rows is an empty array."""
    messages, enums = schema()
    fields = messages[type_name]
    message: Message = {}
    for number, _, _, _, raw in _fields(memoryview(data)):
        declared = fields.get(number)
        if declared is None:
            continue  # unknown fields are skipped
        if declared.type in messages:
            value: Any = decode(declared.type, raw)
        elif declared.repeated and declared.type not in ("string", "bytes"):
            if isinstance(raw, int):
                raw = _encode_varint(raw)
            if declared.type in _FIXED:
                column: Column = np.frombuffer(raw, dtype=_FIXED[declared.type])
            else:
                column = _numbers(declared.type, varints(raw))
            old = message.get(declared.name)
            message[declared.name] = column if old is None else np.concatenate((old, column))
            continue
        else:
            value = _scalar(declared.type, raw)
        if declared.repeated:
            message.setdefault(declared.name, []).append(value)
        else:
            message[declared.name] = value
    for declared in fields.values():
        if declared.name in message:
            continue
        if declared.repeated:
            plain = declared.type in _INTEGERS or declared.type in _FIXED or declared.type in enums
            message[declared.name] = np.zeros(0, dtype=np.uint64) if plain else []
        elif declared.type in messages:
            message[declared.name] = None
        else:
            message[declared.name] = {"string": "", "bytes": b"", "bool": False, "double": 0.0, "float": 0.0}.get(
                declared.type, 0
            )
    return message


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# ------------------------------------------------------------------------------------------------------------ CRC-32C


@lru_cache(maxsize=1)
def _crc_table() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1).astype(np.uint32)
    return table


def crc32c(data: memoryview | bytes) -> int:
    """CRC-32C (Castagnoli), computed over about sqrt(n) lanes at once."""
    raw = np.frombuffer(data, dtype=np.uint8)
    table = _crc_table()
    if raw.size < 64:
        state = 0xFFFFFFFF
        for byte in raw.tolist():
            state = int(table[(state ^ byte) & 0xFF]) ^ (state >> 8)
        return state ^ 0xFFFFFFFF
    lanes = int(raw.size**0.5)
    length = -(-raw.size // lanes)
    head = raw[:4] ^ np.uint8(0xFF)  # the initial state; zeros before the data change nothing then
    flat = np.concatenate((np.zeros(lanes * length - raw.size, dtype=np.uint8), head, raw[4:]))
    matrix = flat.reshape(lanes, length)
    # Beside the lanes run the 32 unit states over zero bytes: the operator "append `length` zero bytes".
    state_of = np.zeros(lanes + 32, dtype=np.uint32)
    state_of[lanes:] = np.uint32(1) << np.arange(32, dtype=np.uint32)
    byte_of = np.zeros(lanes + 32, dtype=np.uint32)
    for column in range(length):
        byte_of[:lanes] = matrix[:, column]
        state_of = table[(state_of ^ byte_of) & np.uint32(0xFF)] ^ (state_of >> np.uint32(8))
    operator = [int(v) for v in state_of[lanes:]]
    total = 0
    for lane in state_of[:lanes].tolist():
        shifted = 0
        for bit in range(32):
            if total >> bit & 1:
                shifted ^= operator[bit]
        total = shifted ^ lane
    return total ^ 0xFFFFFFFF


# -------------------------------------------------------------------------------------------------------------- trace


@dataclass
class Chunk:
    """One committed chunk."""

    offset: int
    header: Message


@dataclass
class Trace:
    """Everything of one trace file."""

    header: Message
    chunks: list[Chunk] = field(default_factory=list)
    clean: bool = False
    tail_bytes: int = 0
    index: Message | None = None
    run_info: Message | None = None
    self_cost: Message | None = None
    kernels: Table = field(default_factory=dict)
    copies: Table = field(default_factory=dict)
    memsets: Table = field(default_factory=dict)
    calls: Table = field(default_factory=dict)
    open_calls: list[Message] = field(default_factory=list)
    steps: list[Message] = field(default_factory=list)
    annotations: list[Message] = field(default_factory=list)
    open_annotations: list[Message] = field(default_factory=list)
    marks: list[Message] = field(default_factory=list)
    counters: list[Message] = field(default_factory=list)
    clock_pairs: list[Message] = field(default_factory=list)
    losses: list[Message] = field(default_factory=list)
    outages: list[Message] = field(default_factory=list)
    level_changes: list[Message] = field(default_factory=list)
    resource_events: list[Message] = field(default_factory=list)
    opaque_intervals: list[Message] = field(default_factory=list)
    certificates: list[Message] = field(default_factory=list)

    def lost(self) -> dict[int, int]:
        """Lost records by LossReason."""
        out: dict[int, int] = {}
        for loss in self.losses:
            out[loss["reason"]] = out.get(loss["reason"], 0) + loss["count"]
        return out


def rows(table: Table) -> int:
    """Number of rows of a table."""
    return len(next(iter(table.values()))) if table else 0


class _Dictionary:
    """iid -> entry of one kind. A checkpoint forgets everything: later chunks may use what it and they define only."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._entries: dict[int, Any] = {}

    def forget(self) -> None:
        self._entries.clear()

    def define(self, iid: int, value: Any) -> None:
        if iid == 0:
            raise DecodeError(f"{self._what}: iid 0 is defined")
        if self._entries.setdefault(iid, value) != value:
            raise DecodeError(f"{self._what} {iid} is given a second meaning")

    def __getitem__(self, iid: int) -> Any:
        try:
            return self._entries[int(iid)]
        except KeyError:
            raise DecodeError(f"{self._what} {iid} is used and not defined") from None


_STREAM_FIELDS = ("device", "context", "stream", "channel", "channel_type", "priority")
_SITE_FIELDS = ("domain", "cbid", "kind", "stream_handle", "context", "capture", "per_thread_stream", "has_stream")


class _Builder:
    """Applies chunk after chunk."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.strings = _Dictionary("string")
        self.threads = _Dictionary("thread")
        self.streams = _Dictionary("stream")
        self.kernels = _Dictionary("kernel")
        self.sites = _Dictionary("call site")
        self.parts: dict[str, list[Table]] = {"kernels": [], "copies": [], "memsets": [], "calls": []}

    def chunk(self, header: Message, body: Message) -> None:
        """Applies one chunk; the order is the schema's: dictionaries first."""
        if header["dictionary_checkpoint"]:
            for dictionary in (self.strings, self.threads, self.streams, self.kernels, self.sites):
                dictionary.forget()
        for entry in body["strings"]:
            self.strings.define(entry["iid"], entry["value"].decode("utf-8", "surrogateescape"))
        for entry in body["threads"]:
            self.threads.define(entry["iid"], entry | {"name": self._string(entry["name_iid"])})
        for entry in body["streams"]:
            self.streams.define(entry["iid"], entry)
        for entry in body["kernels"]:
            self.kernels.define(entry["iid"], entry | {"name": self._string(entry["name_iid"])})
        for entry in body["call_sites"]:
            names = {"name": self._string(entry["name_iid"]), "function": self._string(entry["function_name_iid"])}
            self.sites.define(entry["iid"], entry | names)
        for batch in body["kernel_batches"]:
            self.parts["kernels"].append(self._kernels(batch))
        for batch in body["copy_batches"]:
            self.parts["copies"].append(self._device_rows(batch))
        for batch in body["memset_batches"]:
            self.parts["memsets"].append(self._device_rows(batch))
        for batch in body["call_batches"]:
            self.parts["calls"].append(self._calls(batch))
        trace = self.trace
        for call in body["open_calls"]:
            trace.open_calls.append(call | self._site(call["call_site_iid"]) | self._thread(call["thread_iid"]))
        for name in ("steps", "annotations", "open_annotations", "marks", "counters", "losses"):
            for row in body[name]:
                named = {"name": self.strings[row["name_iid"]]} if "name_iid" in row else {}
                thread = self._thread(row["thread_iid"]) if row["thread_iid"] else {}
                getattr(trace, name).append(row | named | thread)
        for name in ("clock_pairs", "outages", "level_changes", "opaque_intervals", "certificates", "resource_events"):
            getattr(trace, name).extend(body[name])
        trace.run_info = body["run_info"] or trace.run_info
        trace.self_cost = body["self_cost"] or trace.self_cost

    def finish(self) -> None:
        """Joins the batches and drops the open calls and annotations that were finished later."""
        for name, parts in self.parts.items():
            columns: Table = {}
            for key in parts[0] if parts else ():
                columns[key] = np.concatenate([part[key] for part in parts])
            setattr(self.trace, name, columns)
        trace = self.trace
        calls = trace.calls
        keys = [calls[name].tolist() if calls else [] for name in ("thread_iid", "correlation")]
        finished = set(zip(*keys, strict=True))
        latest = {(c["thread_iid"], c["correlation"]): c for c in trace.open_calls}
        trace.open_calls = [c for key, c in latest.items() if key not in finished]
        ended = {(a["thread_iid"], a["begin_host_ns"], a["name_iid"]) for a in trace.annotations}
        opened = {(a["thread_iid"], a["begin_host_ns"], a["name_iid"]): a for a in trace.open_annotations}
        trace.open_annotations = [a for key, a in opened.items() if key not in ended]

    def _string(self, iid: int) -> str:
        return str(self.strings[iid]) if iid else ""

    def _thread(self, iid: int) -> Message:
        return {"tid": self.threads[iid]["tid"]}

    def _site(self, iid: int) -> Message:
        site = self.sites[iid]
        return {name: site[name] for name in ("name", "function", *_SITE_FIELDS)}

    @staticmethod
    def _times(batch: Message, base: int, start: str, end: str) -> Table:
        gaps, durations = batch["gap_ns"].astype(np.int64), batch["duration_ns"].astype(np.int64)
        if len(durations) != len(gaps):
            raise DecodeError(f"columns of {len(gaps)} and {len(durations)} rows in one batch")
        ends = np.int64(base) + np.cumsum(gaps + durations)
        correlations = np.int64(batch["base_correlation"]) + np.cumsum(batch["correlation_delta"].astype(np.int64))
        return {start: ends - durations, end: ends, "correlation": correlations}

    def _device_rows(self, batch: Message) -> Table:
        table = self._times(batch, batch["base_device_ns"], "start", "end")
        count = len(table["start"])
        stream = self.streams[batch["stream_iid"]]
        for name in _STREAM_FIELDS:
            table[name] = np.full(count, stream[name], dtype=np.int64)
        for name, column in batch.items():
            if isinstance(column, np.ndarray) and name not in ("gap_ns", "duration_ns", "correlation_delta"):
                table[name] = _filled(column, count, 1 if name == "copy_count" else 0)
        return table

    def _kernels(self, batch: Message) -> Table:
        table = self._device_rows(batch)
        iids, inverse = np.unique(table.pop("kernel_iid"), return_inverse=True)
        entries = [self.kernels[iid] for iid in iids]
        for name in entries[0] if entries else ():
            if name not in ("iid", "name_iid"):
                dtype = object if name == "name" else np.int64
                table[name] = np.array([entry[name] for entry in entries], dtype=dtype)[inverse]
        return table

    def _calls(self, batch: Message) -> Table:
        table = self._times(batch, batch["base_host_ns"], "enter", "exit")
        count = len(table["enter"])
        iids, inverse = np.unique(batch["call_site_iid"], return_inverse=True)
        if len(inverse) != count:
            raise DecodeError(f"columns of {count} and {len(inverse)} rows in one batch")
        sites = [self._site(iid) for iid in iids]
        for name in sites[0] if sites else ():
            dtype = object if name in ("name", "function") else np.uint64 if name == "stream_handle" else np.int64
            table[name] = np.array([site[name] for site in sites], dtype=dtype)[inverse]
        table["thread_iid"] = np.full(count, batch["thread_iid"], dtype=np.int64)
        table["tid"] = np.full(count, self.threads[batch["thread_iid"]]["tid"], dtype=np.int64)
        for group in ("result", "copy", "event", "memory", "graph"):
            at = batch[f"{group}_row"].astype(np.int64)
            if len(at) and (at[-1] >= count or (np.diff(at) <= 0).any()):
                raise DecodeError(f"{group}_row is not ascending within the batch")
            table[f"has_{group}"] = np.isin(np.arange(count), at)
            for name in batch:
                if name.startswith(f"{group}_") and name != f"{group}_row":
                    values = batch[name]
                    if len(values) not in (0, len(at)):
                        raise DecodeError(f"{name} has {len(values)} values for {len(at)} rows")
                    table[name] = np.zeros(count, dtype=np.uint64)
                    if len(values):
                        table[name][at] = values
        return table


def _filled(column: Column, count: int, default: int) -> Column:
    if len(column) == count:
        return column
    if len(column):
        raise DecodeError(f"columns of {count} and {len(column)} rows in one batch")
    return np.full(count, default, dtype=np.uint64)


def read(path: str | Path) -> Trace:
    """Reads one trace file (one part)."""
    return loads(Path(path).read_bytes())


def loads(data: bytes) -> Trace:
    """Decodes the bytes of one trace file (one part)."""
    if not data.startswith(MAGIC):
        raise DecodeError("not a gpuperf trace: the magic is missing")
    view = memoryview(data)
    trace: Trace | None = None
    builder: _Builder | None = None
    header_crc = 0
    end = len(MAGIC)
    try:
        for number, wire_type, begin, behind, raw in _fields(view[len(MAGIC) :]):
            begin += len(MAGIC)
            if number == 1 and trace is None:
                header = decode("FileHeader", raw)
                if header["format_version"] > NEWEST_VERSION:
                    raise DecodeError(f"format version {header['format_version']} is newer than {NEWEST_VERSION}")
                trace = Trace(header)
                builder = _Builder(trace)
                header_crc = crc32c(raw)
            elif trace is None or builder is None:
                raise DecodeError("the file header is not the first field")
            elif number == 2:
                _chunk(trace, begin, raw, builder.chunk)
            elif number == 4 and wire_type == 5:
                if int.from_bytes(raw, "little") != header_crc:
                    raise DecodeError(f"the header has not the checksum {header_crc:08x} that the file tells")
            elif number == 3:
                trace.index = decode("TraceIndex", raw)
                _check_index(trace, begin, data)
            elif number == 14 and wire_type == 1:
                trace.clean = trace.index is not None and len(MAGIC) + behind == len(data)
            end = len(MAGIC) + behind
    except EOFError:
        pass
    if trace is None or builder is None:
        raise DecodeError("the file ends inside its header")
    trace.tail_bytes = len(data) - end
    builder.finish()
    return trace


def _chunk(trace: Trace, offset: int, raw: memoryview, apply: Callable[[Message, Message], None]) -> None:
    parts = {number: value for number, _, _, _, value in _fields(raw)}
    if 1 not in parts or 2 not in parts:
        raise DecodeError(f"the chunk at {offset} has no header or no body")
    header, body = decode("ChunkHeader", parts[1]), parts[2]
    where = f"chunk {header['sequence']} at {offset}"
    if header["sync_marker"] != SYNC_MARKER:
        raise DecodeError(f"{where}: wrong sync marker")
    if header["sequence"] != len(trace.chunks):
        raise DecodeError(f"{where}: expected sequence {len(trace.chunks)}")
    if header["body_size"] != len(body):
        raise DecodeError(f"{where}: body_size {header['body_size']}, body has {len(body)} bytes")
    checksum = crc32c(body)
    if header["body_crc32c"] != checksum:
        raise DecodeError(f"{where}: checksum {header['body_crc32c']:08x}, body has {checksum:08x}")
    decoded = decode("ChunkBody", body)
    counted = _event_count(decoded)
    if header["event_count"] != counted:
        raise DecodeError(f"{where}: event_count {header['event_count']}, body has {counted} rows")
    trace.chunks.append(Chunk(offset, header))
    apply(header, decoded)


def _event_count(body: Message) -> int:
    markers = sum(len(body[name]) for name in ("steps", "annotations", "marks", "counters"))
    batches = [batch for name in body if name.endswith("_batches") for batch in body[name]]
    return markers + sum(len(batch["gap_ns"]) for batch in batches)


def _check_index(trace: Trace, offset: int, data: bytes) -> None:
    assert trace.index is not None
    names = ("first_host_ns", "last_host_ns", "event_count", "dictionary_checkpoint")
    expected = [{"offset": c.offset} | {name: c.header[name] for name in names} for c in trace.chunks]
    if trace.index["entries"] != expected:
        raise DecodeError("the index does not agree with the chunks")
    footer = data[-FOOTER_BYTES:]
    if footer[:1] == b"\x71" and int.from_bytes(footer[1:], "little") != offset:
        raise DecodeError("index_offset does not point at the index")
