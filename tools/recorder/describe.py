#!/usr/bin/env python3
"""Describes and checks a capture (capture_format.h): python describe.py FILE.gpcap[.gz] [--json FILE] [--events N].

Exit code 4 if the capture is not consistent (a kernel outside a graph without a launch, an exit without its enter,
an incomplete file).
"""

import argparse
import collections
import dataclasses
import gzip
import hashlib
import json
import pathlib
import re
import struct
import sys
from collections.abc import Iterator
from typing import Any

MAGIC = b"GPCAPT01"
METADATA, RECORD_SIZES, THREAD, STRING, CALLBACK, BUFFER, CLOCK_PAIR, DROPPED = range(1, 9)
CALLBACK_HEAD = struct.Struct("<QIHHIIIiQQQQQ")
BUFFER_HEAD = struct.Struct("<QIIII")
KINDS = {1: "memcpy", 2: "memset", 3: "kernel (serial)", 10: "kernel", 22: "memcpy2"}
CALL_TABLE = pathlib.Path(__file__).resolve().parents[2] / "csrc" / "cupti" / "call_table.cc"
DRIVER, RUNTIME = 1, 2


class CaptureError(Exception):
    """Not a capture, or a damaged one."""


@dataclasses.dataclass(frozen=True)
class Callback:
    """One callback as recorded."""

    time_ns: int
    thread: int
    domain: int
    site: int
    cbid: int
    correlation: int
    context_uid: int
    return_value: int
    function: str
    symbol: str
    pointed_value: int
    params: bytes


@dataclasses.dataclass(frozen=True)
class Record:
    """One activity record: its raw bytes and what describe.py reads of it."""

    kind: int
    raw: bytes
    correlation: int
    start: int
    end: int
    graph_node: int
    name: str


@dataclasses.dataclass(frozen=True)
class Buffer:
    """One completed buffer."""

    time_ns: int
    thread: int
    records: list[Record]


def read_blocks(path: pathlib.Path) -> Iterator[tuple[int, bytes]]:
    """The blocks of a file: (type, payload)."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:8] != MAGIC:
        raise CaptureError(f"{path} is not a capture")
    at = 8
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if at + 8 + size > len(data):
            raise CaptureError(f"{path} ends in the middle of a block")
        yield kind, data[at + 8 : at + 8 + size]
        at += 8 + (size + 7) // 8 * 8


def parse_records(raw: bytes, sizes: dict[int, int], strings: dict[int, str]) -> list[Record]:
    """The activity records of a buffer, walked by the recorded library's record sizes."""
    records, at = [], 0
    while at + 4 <= len(raw):
        (kind,) = struct.unpack_from("<I", raw, at)
        size = sizes.get(kind)
        if not size or at + size > len(raw):
            raise CaptureError(f"record of unknown kind {kind} in a buffer")
        record = raw[at : at + size]
        start, end = struct.unpack_from("<QQ", record, 16)
        if kind in (3, 10):
            correlation, node = struct.unpack_from("<I", record, 92)[0], struct.unpack_from("<Q", record, 144)[0]
            name = strings.get(struct.unpack_from("<Q", record, 104)[0], "?")
        elif kind in (1, 2):
            correlation, node = struct.unpack_from("<I", record, 44)[0], struct.unpack_from("<Q", record, 64)[0]
            name = KINDS[kind]
        elif kind == 22:
            correlation, node = struct.unpack_from("<I", record, 60)[0], struct.unpack_from("<Q", record, 72)[0]
            name = KINDS[kind]
        else:
            correlation, node, start, end, name = 0, 0, 0, 0, ""
        records.append(Record(kind, record, correlation, start, end, node, name))
        at += size
    return records


class Capture:
    """A whole capture: metadata and everything delivered, in order."""

    def __init__(self, path: pathlib.Path) -> None:
        self.metadata: list[dict[str, Any]] = []
        self.sizes: dict[int, int] = {}
        self.threads: dict[int, int] = {}
        self.clock_pairs: list[tuple[int, int, int]] = []
        self.dropped = 0
        self.events: list[Callback | Buffer] = []
        strings: dict[int, str] = {}
        for kind, payload in read_blocks(path):
            if kind == METADATA:
                self.metadata.append(json.loads(payload))
            elif kind == RECORD_SIZES:
                values = struct.unpack(f"<{len(payload) // 4}I", payload)
                self.sizes = dict(zip(values[::2], values[1::2], strict=True))
            elif kind == THREAD:
                index, tid = struct.unpack("<II", payload)
                self.threads[index] = tid
            elif kind == STRING:
                address, length, _ = struct.unpack_from("<QII", payload)
                strings[address] = payload[16 : 16 + length].decode(errors="replace")
            elif kind == CALLBACK:
                (time, thread, domain, site, cbid, correlation, uid, result, _, function, symbol, pointed, _) = (
                    CALLBACK_HEAD.unpack_from(payload)
                )
                self.events.append(
                    Callback(
                        time,
                        thread,
                        domain,
                        site,
                        cbid,
                        correlation,
                        uid,
                        result,
                        strings.get(function, ""),
                        strings.get(symbol, ""),
                        pointed,
                        payload[CALLBACK_HEAD.size :],
                    )
                )
            elif kind == BUFFER:
                time, thread, _, _, _ = BUFFER_HEAD.unpack_from(payload)
                self.events.append(
                    Buffer(time, thread, parse_records(payload[BUFFER_HEAD.size :], self.sizes, strings))
                )
            elif kind == CLOCK_PAIR:
                self.clock_pairs.append(struct.unpack("<QQQ", payload))
            elif kind == DROPPED:
                self.dropped += struct.unpack("<QQ", payload)[1]
        if not self.metadata:
            raise CaptureError(f"{path} holds no metadata")

    @property
    def callbacks(self) -> list[Callback]:
        """All callbacks, in order."""
        return [e for e in self.events if isinstance(e, Callback)]

    @property
    def records(self) -> list[Record]:
        """All activity records, in order of delivery."""
        return [r for e in self.events if isinstance(e, Buffer) for r in e.records]


def launch_ids() -> dict[int, set[int]]:
    """Callback ids whose calls put work on a device, by domain, from the generated call table."""
    ids: dict[int, set[int]] = {DRIVER: set(), RUNTIME: set()}
    domain = RUNTIME
    for line in CALL_TABLE.read_text().splitlines():
        if "kDriverCalls[]" in line:
            domain = DRIVER
        row = re.match(r"\s*/\* (\d+) \w+ \*/ \{K::k(Launch|GraphLaunch|Copy|Memset|Graph)\b", line)
        if row:
            ids[domain].add(int(row.group(1)))
    return ids


def check(capture: Capture) -> list[str]:
    """What is wrong with a capture."""
    problems = []
    if len(capture.metadata) < 2:
        problems.append("the file is incomplete: the closing block is missing")
    elif capture.metadata[-1].get("truncated"):
        problems.append("the recording stopped at GPUPERF_RECORD_MAX")
    if capture.dropped:
        problems.append(f"CUPTI dropped {capture.dropped} records")
    launches = launch_ids()
    launched = {c.correlation for c in capture.callbacks if c.cbid in launches[c.domain]}
    orphans = [r for r in capture.records if r.kind in KINDS and r.correlation not in launched]
    if orphans:
        problems.append(f"{len(orphans)} device records have no launch, e.g. {orphans[0].name}")
    backward = [r for r in capture.records if r.kind in KINDS and (r.start == 0 or r.end < r.start)]
    if backward:
        problems.append(f"{len(backward)} device records have no valid time")
    open_calls: dict[int, list[tuple[int, int]]] = collections.defaultdict(list)
    unmatched = 0
    for call in capture.callbacks:
        if call.site == 0:
            open_calls[call.thread].append((call.domain, call.cbid))
        elif open_calls[call.thread] and open_calls[call.thread][-1] == (call.domain, call.cbid):
            open_calls[call.thread].pop()
        elif open_calls[call.thread] or unmatched >= len(capture.threads):
            problems.append(f"thread {call.thread}: exit of {call.function} without its enter")
            break
        else:
            unmatched += 1  # the recording began inside this call
    return problems


def summary(capture: Capture, path: pathlib.Path) -> dict[str, Any]:
    """Everything that is worth a line."""
    functions = collections.Counter(f"{c.function}" for c in capture.callbacks if c.site == 0)
    nested = 0
    depth: dict[int, int] = collections.defaultdict(int)
    for call in capture.callbacks:
        if call.site == 0:
            nested += call.domain == DRIVER and depth[call.thread] > 0
            depth[call.thread] += 1
        else:
            depth[call.thread] = max(0, depth[call.thread] - 1)
    times = [e.time_ns for e in capture.events]
    return {
        "file": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "bytes": path.stat().st_size,
        **capture.metadata[0].get("given", {}),
        **{k: v for k, v in capture.metadata[0].items() if k not in ("given", "pid")},
        "seconds": round((max(times) - min(times)) / 1e9, 3) if times else 0.0,
        "threads": len(capture.threads),
        "callbacks": len(capture.callbacks),
        "driver_calls_inside_runtime_calls": nested,
        "calls": dict(functions.most_common()),
        "buffers": sum(isinstance(e, Buffer) for e in capture.events),
        "records": dict(collections.Counter(KINDS.get(r.kind, f"kind {r.kind}") for r in capture.records)),
        "records_of_graphs": sum(r.graph_node != 0 for r in capture.records),
        "kernel_names": len({r.name for r in capture.records if r.kind == 10}),
        "kernel_ns": sum(r.end - r.start for r in capture.records if r.kind == 10),
        "record_bytes": {str(k): v for k, v in capture.sizes.items() if k in KINDS},
        "clock_pairs": len(capture.clock_pairs),
        "without_parameters": sorted({c.function for c in capture.callbacks if c.site == 0 and not c.params}),
    }


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path, help="write the summary to this file too")
    parser.add_argument("--events", type=int, default=0, help="also print the first N events")
    args = parser.parse_args()
    try:
        capture = Capture(args.file)
    except (OSError, CaptureError, ValueError, struct.error) as error:
        print(f"describe: {error}", file=sys.stderr)
        return 3
    described = summary(capture, args.file)
    problems = check(capture)
    described["problems"] = problems
    text = json.dumps(described, indent=2)
    print(text)
    if args.json:
        args.json.write_text(text + "\n")
    for event in capture.events[: args.events]:
        if isinstance(event, Callback):
            print(
                f"{event.time_ns} t{event.thread} {'exit ' if event.site else 'enter'} {event.function} "
                f"c{event.correlation} {event.symbol} {event.pointed_value:#x} = {event.return_value}"
            )
        else:
            print(f"{event.time_ns} t{event.thread} buffer of {len(event.records)} records")
    return 4 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
