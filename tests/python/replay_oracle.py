"""What a trace of a replayed capture has to hold: computed from the capture's raw bytes, without any code of gpuperf.

Parameter offsets come from the committed call table (its text), record offsets from CUPTI's documentation.
"""

from __future__ import annotations

import collections
import re
import struct
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "recorder"))

import describe  # noqa: E402

Row = dict[str, Any]
KINDS = [
    "Launch",
    "GraphLaunch",
    "HostFunction",
    "Copy",
    "Memset",
    "Synchronize",
    "EventRecord",
    "EventWait",
    "Allocate",
    "Free",
    "Graph",
    "Module",
    "BeginCapture",
    "EndCapture",
    "Memory",
    "Control",
]
COLUMNS = [
    "kind",
    "per_thread_stream",
    "fixed_copy_kind",
    "unloads_module",
    "params_size",
    "stream",
    "config",
    "config_stream",
    "handle",
    "destination",
    "source",
    "bytes",
    "bytes_factor",
    "copy_kind",
    "element_bytes",
    "address",
    "address_out",
]
DRIVER, RUNTIME = describe.DRIVER, describe.RUNTIME


def call_table() -> dict[tuple[int, int], Row]:
    """(domain, id) -> row of csrc/cupti/call_table.cc, with the function's name."""
    table: dict[tuple[int, int], Row] = {}
    domain = RUNTIME
    for line in describe.CALL_TABLE.read_text().splitlines():
        if "kDriverCalls[]" in line:
            domain = DRIVER
        match = re.match(r"\s*/\* (\d+) (\w+) \*/ \{K::k(\w+), (.*)\},", line)
        if match:
            values = [v == "true" if v in ("true", "false") else int(v) for v in match.group(4).split(", ")]
            row: Row = dict(zip(COLUMNS, [KINDS.index(match.group(3)) + 1, *values], strict=True))
            table[domain, int(match.group(1))] = row | {"name": match.group(2)}
    return table


class _Capturing:
    """The streams that capture a graph: those that began, and those that waited for an event of one."""

    def __init__(self) -> None:
        self._streams: dict[int, int] = {}  # stream -> the stream whose capture it takes part in
        self._events: dict[int, int] = {}

    def state(self, stream: int) -> int:
        """CaptureState of a call on the stream."""
        return int(stream in self._streams)

    def several(self) -> bool:
        """Whether more than one capture is going on."""
        return len(set(self._streams.values())) > 1

    def follow(self, call: Row) -> None:
        """Takes up what a finished call changes."""
        if call["result_code"]:
            return
        kind, stream = KINDS[call["kind"] - 1], call["stream_handle"]
        if kind == "BeginCapture":
            self._streams[stream] = stream
        elif kind == "EndCapture":
            self._streams = {s: origin for s, origin in self._streams.items() if origin != stream}
            self._events = {e: origin for e, origin in self._events.items() if origin != stream}
        elif kind == "EventRecord" and stream in self._streams:
            self._events[call["event_handle"]] = self._streams[stream]
        elif kind == "EventRecord":
            self._events.pop(call["event_handle"], None)
        elif kind == "EventWait" and call["event_handle"] in self._events:
            self._streams[stream] = self._events[call["event_handle"]]


class Oracle:
    """The expected rows of a replay, from the capture that was played and the replay's JSON."""

    def __init__(self, capture: Path, replay: Row) -> None:
        self.capture = describe.Capture(capture)
        self.replay = replay
        self.table = call_table()
        self.overlapping_captures = False  # known after calls(): a tool may say that it cannot tell the capture

    def correlation(self, recorded: int, loop: int) -> int:
        """The 64-bit id: wraps counted in the upper half."""
        replay = self.replay
        unwrapped: int = (
            replay["correlation_base"] + recorded - replay["correlation_first"] + loop * replay["correlation_stride"]
        )
        return unwrapped

    def calls(self) -> dict[int, list[Row]]:
        """Outermost calls by thread id, in order of their exits."""
        calls: dict[int, list[Row]] = collections.defaultdict(list)
        tids = [thread["tid"] for thread in self.replay["threads"]]
        for loop in range(self.replay["loops"]):
            open_calls: dict[int, list[describe.Callback]] = collections.defaultdict(list)
            captures: dict[int, int] = {}  # thread -> was the stream of its outermost open call capturing?
            capturing = _Capturing()
            for callback in self.capture.callbacks:
                stack = open_calls[callback.thread]
                if callback.site == 0:
                    stack.append(callback)
                    if len(stack) == 1:
                        captures[callback.thread] = capturing.state(self._stream(callback))
                elif stack:
                    enter = stack.pop()
                    if not stack:
                        call = self._call(enter, callback, loop)
                        if call["stream_handle"]:
                            call["capture"] = captures[callback.thread]
                        calls[tids[callback.thread]].append(call)
                        capturing.follow(call)
                        self.overlapping_captures |= capturing.several()
        return dict(calls)

    def _stream(self, enter: describe.Callback) -> int:
        row = self.table[enter.domain, enter.cbid]
        if row["config"] >= 0:
            return enter.pointed_value
        if row["stream"] < 0 or not enter.params:
            return 0
        return int(struct.unpack_from("<Q", enter.params, row["stream"])[0])

    def _call(self, enter: describe.Callback, leave: describe.Callback, loop: int) -> Row:
        row = self.table[enter.domain, enter.cbid]

        def value(column: str, code: str = "<Q") -> int:
            if row[column] < 0 or not enter.params:
                return 0
            return int(struct.unpack_from(code, enter.params, row[column])[0])

        call: Row = {
            "name": row["name"],
            "domain": 1 if enter.domain == RUNTIME else 2,
            "cbid": enter.cbid,
            "kind": row["kind"],
            "correlation": self.correlation(enter.correlation, loop),
            "context": enter.context_uid,
            "stream_handle": self._stream(enter),
            "result_code": leave.return_value & 0xFFFFFFFF,
        }
        kind = KINDS[row["kind"] - 1]
        if kind == "Launch":
            call["function"] = enter.symbol
        if kind in ("Copy", "Memset"):
            call["copy_destination"] = value("destination")
            call["copy_source"] = value("source")
            factor = value("bytes_factor") if row["bytes_factor"] >= 0 else 1
            call["copy_bytes"] = value("bytes") * factor * row["element_bytes"]
        if kind == "Copy" and (row["copy_kind"] >= 0 or row["fixed_copy_kind"] >= 0):
            call["copy_kind"] = value("copy_kind", "<I") if row["copy_kind"] >= 0 else row["fixed_copy_kind"]
        if row["handle"] >= 0 and kind in ("EventRecord", "EventWait", "Synchronize"):
            call["event_handle"] = value("handle")
        if kind == "GraphLaunch":
            call["graph_handle"] = value("handle")
        if kind in ("Allocate", "Free"):
            call["memory_address"] = leave.pointed_value if row["address_out"] >= 0 else value("address")
            factor = value("bytes_factor") if row["bytes_factor"] >= 0 else 1
            call["memory_bytes"] = value("bytes") * factor
        return call

    def records(self, kind: int) -> list[Row]:
        """Records of a kind in order of delivery, as columns of the trace."""
        decode = {10: self._kernel, 1: self._copy, 22: self._peer_copy, 2: self._memset}[kind]
        found = [record for record in self.capture.records if record.kind == kind]
        rows = []
        for loop in range(self.replay["loops"]):
            shift = self.replay["device_shift_ns"] + loop * self.replay["period_ns"]
            for record in found:
                row = decode(record)
                row["start"] = (record.start + shift) % 2**64
                row["end"] = (record.end + shift) % 2**64
                row["correlation"] = self.correlation(record.correlation, loop)
                rows.append(row)
        return rows

    @staticmethod
    def _read(raw: bytes, layout: dict[str, tuple[int, str]]) -> Row:
        return {
            name: struct.unpack_from("<" + code, raw, offset)[0] if offset + struct.calcsize(code) <= len(raw) else 0
            for name, (offset, code) in layout.items()
        }

    def _kernel(self, record: describe.Record) -> Row:
        row = self._read(
            record.raw,
            {
                "device": (40, "I"),
                "context": (44, "I"),
                "stream": (48, "I"),
                "grid_x": (52, "I"),
                "grid_y": (56, "I"),
                "grid_z": (60, "I"),
                "block_x": (64, "I"),
                "block_y": (68, "I"),
                "block_z": (72, "I"),
                "static_shared_bytes": (76, "I"),
                "dynamic_shared_bytes": (80, "I"),
                "local_bytes_per_thread": (84, "I"),
                "registers_per_thread": (6, "H"),
                "cache_config": (4, "B"),
                "launch_type": (136, "B"),
                "shared_carveout_requested": (137, "B"),
                "shared_carveout_percent": (138, "B"),
                "executed_shared_bytes": (140, "I"),
                "graph_node_id": (144, "Q"),
                "graph_id": (156, "I"),
                "channel": (168, "I"),
                "channel_type": (172, "I"),
                "cluster_x": (176, "I"),
                "cluster_y": (180, "I"),
                "cluster_z": (184, "I"),
                "cluster_scheduling_policy": (188, "I"),
                "local_bytes_total": (192, "Q"),
                "max_potential_cluster_size": (200, "I"),
                "max_active_clusters": (204, "I"),
                "device_launched": (208, "B"),
            },
        )
        if not row["shared_carveout_requested"]:
            row["shared_carveout_percent"] = 0
        return row | {"name": record.name}

    def _copy(self, record: describe.Record) -> Row:
        return self._read(
            record.raw,
            {
                "copy_kind": (4, "B"),
                "source_kind": (5, "B"),
                "destination_kind": (6, "B"),
                "flags": (7, "B"),
                "bytes": (8, "Q"),
                "device": (32, "I"),
                "context": (36, "I"),
                "stream": (40, "I"),
                "graph_node_id": (64, "Q"),
                "graph_id": (72, "I"),
                "channel": (76, "I"),
                "channel_type": (80, "I"),
                "copy_count": (88, "Q"),
            },
        )

    def _peer_copy(self, record: describe.Record) -> Row:
        return self._read(
            record.raw,
            {
                "copy_kind": (4, "B"),
                "source_kind": (5, "B"),
                "destination_kind": (6, "B"),
                "flags": (7, "B"),
                "bytes": (8, "Q"),
                "device": (32, "I"),
                "context": (36, "I"),
                "stream": (40, "I"),
                "source_device": (44, "I"),
                "source_context": (48, "I"),
                "destination_device": (52, "I"),
                "destination_context": (56, "I"),
                "graph_node_id": (72, "Q"),
                "graph_id": (80, "I"),
                "channel": (84, "I"),
                "channel_type": (88, "I"),
            },
        )

    def _memset(self, record: describe.Record) -> Row:
        return self._read(
            record.raw,
            {
                "value": (4, "I"),
                "bytes": (8, "Q"),
                "device": (32, "I"),
                "context": (36, "I"),
                "stream": (40, "I"),
                "flags": (48, "H"),
                "memory_kind": (50, "H"),
                "graph_node_id": (64, "Q"),
                "graph_id": (72, "I"),
                "channel": (76, "I"),
                "channel_type": (80, "I"),
            },
        )
