"""What gpuperf.Trace and regions of a report have to say, computed the slow way.

Pure Python over protoc-generated classes, for whole files only: rows are dictionaries with the columns of
docs/python.md, None for what is not known. Shares nothing with the reader: clocks are mapped with Python's integers,
and the device time of a region's edge is searched for bit by bit.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

import trace_builder

Row = dict[str, Any]
Intervals = list[tuple[int, int]]

DEMANGLED = {"_Z3addPf": "add(float*)", "_ZN2at4gemmIfLi4EEEvPT_i": "void at::gemm<float, 4>(float*, int)"}
COPY_KINDS = ("unknown", "h2d", "d2h", "h2a", "a2h", "a2a", "a2d", "d2a", "d2d", "h2h", "p2p")
MEMORY_KINDS = ("unknown", "pageable", "pinned", "device", "array", "managed", "device_static", "managed_static")


def word(names: tuple[str, ...], value: int) -> str:
    return names[value] if value < len(names) else str(value)


def value_of(column: Any, row: int) -> int:
    """An absent column reads as 0 in every row."""
    return int(column[row]) if column else 0


def text(value: bytes | None) -> str | None:
    """A name as tables have it; the strings of these tests are valid UTF-8, or end in one wrong byte."""
    return value.decode(errors="replace") if value else None


def demangled(value: bytes | None) -> str | None:
    name = text(value)
    return DEMANGLED.get(name, name) if name is not None else None


class Clock:
    """Device times on the host clock, as docs/trace_format.md has it."""

    def __init__(self, pairs: Iterable[tuple[int, int]]) -> None:
        self.points: list[tuple[int, int]] = []
        for host, device in sorted(pairs, key=lambda pair: pair[0]):
            if not self.points or (host > self.points[-1][0] and device > self.points[-1][1]):
                self.points.append((host, device))

    def __bool__(self) -> bool:
        return bool(self.points)

    def to_host(self, device: int) -> int:
        points = self.points
        if len(points) == 1:
            return device - points[0][1] + points[0][0]
        at = 0
        while at < len(points) - 2 and points[at + 1][1] <= device:
            at += 1
        (h0, d0), (h1, d1) = points[at], points[at + 1]
        return h0 + (device - d0) * (h1 - h0) // (d1 - d0)

    def to_device(self, host: int) -> int:
        """The least device time that lies at `host` or later."""
        low, high = -(2**63), 2**63
        while low < high:
            middle = (low + high) // 2
            if self.to_host(middle) >= host:
                high = middle
            else:
                low = middle + 1
        return low


def overlap(intervals: Intervals, begin: int, end: int) -> int | None:
    """How much of [begin, end) is inside; None: it is not touched."""
    if begin == end:
        return 0 if any(a <= begin < b for a, b in intervals) else None
    length = sum(max(0, min(b, end) - max(a, begin)) for a, b in intervals)
    return length or None


def union(intervals: Iterable[tuple[int, int]]) -> Intervals:
    out: Intervals = []
    for begin, end in sorted(pair for pair in intervals if pair[0] < pair[1]):
        if out and begin <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((begin, end))
    return out


def intersection(first: Intervals, second: Intervals) -> Intervals:
    return union((max(a, c), min(b, d)) for a, b in first for c, d in second)


class Reference:
    """The rows of a trace, part by part and chunk by chunk."""

    def __init__(self, *parts: bytes) -> None:
        pb = trace_builder.schema()
        self.pb = pb
        self.files = [pb.trace.TraceFile.FromString(part) for part in parts]
        self.kernels: list[Row] = []
        self.copies: list[Row] = []
        self.memsets: list[Row] = []
        self.calls: list[Row] = []
        self.steps: list[Row] = []
        self.annotations: list[Row] = []
        self.marks: list[Row] = []
        self.counters: list[Row] = []
        self.names: list[Row] = []
        self.resources: list[Row] = []
        self.losses: list[Row] = []
        self.outages: list[Row] = []
        self.clock_pairs: list[Row] = []
        self._open_calls: dict[tuple[int, int], Row] = {}
        self._open_annotations: dict[tuple[int, int, bytes], Row] = {}
        self.run_info: Any = None
        self._order = count()  # of device rows
        start = self.files[0].header.start.monotonic_ns
        firsts = [chunk.header.first_host_ns for file in self.files for chunk in file.chunks]
        lasts = [chunk.header.last_host_ns for file in self.files for chunk in file.chunks]
        begin = start or min(firsts, default=0)
        self.span = (begin, max([begin, *lasts]))
        for file in self.files:
            self._file(file)
        self.calls += sorted(
            self._open_calls.values(), key=lambda row: (row["tid"] or 0, row["enter_host_ns"], row["correlation"])
        )
        self.annotations += [self._open_annotations[key] for key in sorted(self._open_annotations)]
        self.clock = Clock((row["host_ns"], row["device_ns"]) for row in self.clock_pairs)
        self._finish()

    def _file(self, file: Any) -> None:
        strings: dict[int, bytes] = {0: b""}
        threads: dict[int, Any] = {}
        streams: dict[int, Any] = {}
        kernels: dict[int, Any] = {}
        sites: dict[int, Any] = {}
        for chunk in file.chunks:
            body = chunk.body
            strings.update((entry.iid, entry.value) for entry in body.strings)
            threads.update((entry.iid, entry) for entry in body.threads)
            streams.update((entry.iid, entry) for entry in body.streams)
            kernels.update((entry.iid, entry) for entry in body.kernels)
            sites.update((entry.iid, entry) for entry in body.call_sites)

            def name(iid: int | None, strings: dict[int, bytes] = strings) -> bytes | None:
                return None if iid is None else strings.get(iid)

            def thread(iid: int, threads: dict[int, Any] = threads) -> Row:
                known = threads.get(iid)
                if known is None:
                    return {"tid": None, "thread": None}
                return {"tid": known.tid, "thread": text(name(known.name_iid))}

            def domain(iid: int, name: Any = name) -> Row:
                return {"domain": text(name(iid)), "domain_lost": name(iid) is None, "_domain": name(iid)}

            def label(row: Any, name: Any = name, domain: Any = domain) -> Row:
                nvtx, kind = row.nvtx, row.nvtx.payload_kind
                (signed,) = struct.unpack("<q", struct.pack("<Q", nvtx.payload))
                (double,) = struct.unpack("<d", struct.pack("<Q", nvtx.payload))
                return {
                    "name": text(name(row.name_iid)),
                    "_name": name(row.name_iid),
                    "source": ("gpuperf", "nvtx", "nvtx_start_end")[row.source],
                    "category": nvtx.category or None,
                    "color": nvtx.color if nvtx.HasField("color") else None,
                    "payload_kind": (None, "unsigned", "signed", "double", "extended")[kind],
                    "payload_unsigned": nvtx.payload if kind == 1 else None,
                    "payload_signed": signed if kind == 2 else None,
                    "payload_double": double if kind == 3 else None,
                    "payload_schema": nvtx.payload if kind == 4 else None,
                    "payload_bytes": nvtx.payload_bytes if nvtx.HasField("payload_bytes") else None,
                } | domain(nvtx.domain_iid)

            def device_rows(batch: Any, streams: dict[int, Any] = streams) -> Iterable[tuple[int, Row]]:
                stream = streams.get(batch.stream_iid)
                end, correlation = batch.base_device_ns, batch.base_correlation
                for i, (gap, duration) in enumerate(zip(batch.gap_ns, batch.duration_ns, strict=True)):
                    begin = end + gap
                    end = begin + duration
                    correlation = (correlation + batch.correlation_delta[i]) % 2**64
                    graph = batch.graph_id[i] if batch.graph_id else 0
                    yield (
                        i,
                        {
                            "_order": next(self._order),
                            "begin_device_ns": begin,
                            "end_device_ns": end,
                            "duration_ns": duration,
                            "device": stream.device if stream else None,
                            "context": stream.context if stream else None,
                            "stream": stream.stream if stream else None,
                            "correlation": correlation,
                            "graph_id": graph or None,
                            "graph_node_id": batch.graph_node_id[i] if graph else None,
                        },
                    )

            for batch in body.kernel_batches:
                for i, row in device_rows(batch):
                    kernel = kernels.get(batch.kernel_iid[i])
                    symbol = name(kernel.name_iid) if kernel else None
                    row |= {"name": demangled(symbol), "symbol": text(symbol)}
                    shape = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers_per_thread")
                    shape += ("static_shared_bytes", "dynamic_shared_bytes", "local_bytes_per_thread")
                    row |= {key: getattr(kernel, key) if kernel else None for key in shape}
                    for key in ("cluster_x", "cluster_y", "cluster_z"):
                        row[key] = (getattr(kernel, key) or None) if kernel else None
                    row["queued_device_ns"] = (batch.queued_ns[i] or None) if batch.queued_ns else None
                    row["submitted_device_ns"] = (batch.submitted_ns[i] or None) if batch.submitted_ns else None
                    self.kernels.append(row)
            for batch in body.copy_batches:
                for i, row in device_rows(batch):
                    kind = value_of(batch.copy_kind, i)
                    row |= {
                        "direction": word(COPY_KINDS, kind),
                        "bytes": value_of(batch.bytes, i),
                        "source": word(MEMORY_KINDS, value_of(batch.source_kind, i)),
                        "destination": word(MEMORY_KINDS, value_of(batch.destination_kind, i)),
                        "asynchronous": bool(value_of(batch.flags, i) & 1),
                        "copies": batch.copy_count[i] if batch.copy_count else 1,
                    }
                    for key in ("source_device", "source_context", "destination_device", "destination_context"):
                        row[key] = getattr(batch, key)[i] if batch.source_device else None
                    self.copies.append(row)
            for batch in body.memset_batches:
                for i, row in device_rows(batch):
                    row |= {
                        "memory": word(MEMORY_KINDS, value_of(batch.memory_kind, i)),
                        "bytes": value_of(batch.bytes, i),
                        "value": value_of(batch.value, i),
                        "asynchronous": bool(value_of(batch.flags, i) & 1),
                    }
                    self.memsets.append(row)
            for batch in body.call_batches:
                exit_, correlation = batch.base_host_ns, batch.base_correlation
                results = dict(zip(batch.result_row, batch.result_code, strict=True))
                groups = {
                    group: {row: at for at, row in enumerate(getattr(batch, f"{group}_row"))}
                    for group in ("copy", "event", "memory", "graph")
                }
                for i, (gap, duration) in enumerate(zip(batch.gap_ns, batch.duration_ns, strict=True)):
                    enter = exit_ + gap
                    exit_ = enter + duration
                    correlation = (correlation + batch.correlation_delta[i]) % 2**64
                    row = self._call(sites.get(batch.call_site_iid[i]), name) | thread(batch.thread_iid)
                    row |= {
                        "enter_host_ns": enter,
                        "exit_host_ns": exit_,
                        "duration_ns": duration,
                        "correlation": correlation,
                        "result": results.get(i, 0),
                    }
                    for key, group, unknown in (
                        ("copy_bytes", "copy", 0),
                        ("copy_kind", "copy", None),
                        ("copy_destination", "copy", 0),
                        ("copy_source", "copy", 0),
                        ("event_handle", "event", None),
                        ("memory_address", "memory", 0),
                        ("memory_bytes", "memory", 0),
                        ("graph_handle", "graph", 0),
                    ):
                        at = groups[group].get(i)
                        value = None if at is None else getattr(batch, key)[at]
                        row[key] = None if value == unknown else value
                    row["_has_memory"] = i in groups["memory"]
                    self.calls.append(row)
                    self._open_calls.pop((row["tid"] or 0, correlation), None)
            for open_ in body.open_calls:
                row = self._call(sites.get(open_.call_site_iid), name) | thread(open_.thread_iid)
                row |= {"enter_host_ns": open_.enter_host_ns, "correlation": open_.correlation}
                row |= dict.fromkeys(("exit_host_ns", "duration_ns", "result"))
                self._open_calls[row["tid"] or 0, open_.correlation] = row
            for step in body.steps:
                self.steps.append(
                    {
                        "index": step.index,
                        "end_host_ns": step.host_ns,
                        "samples": step.samples if step.HasField("samples") else None,
                        "tokens": step.tokens if step.HasField("tokens") else None,
                    }
                    | thread(step.thread_iid)
                )
            for annotation in body.annotations:
                begin = annotation.begin_host_ns
                row = label(annotation) | {"begin_host_ns": begin}
                row |= {"end_host_ns": begin + annotation.duration_ns, "duration_ns": annotation.duration_ns}
                row |= thread(annotation.thread_iid)
                row["end_tid"] = thread(annotation.end_thread_iid or annotation.thread_iid)["tid"]
                self.annotations.append(row)
                self._open_annotations.pop((row["tid"] or 0, begin, name(annotation.name_iid) or b""), None)
            for mark in body.marks:
                self.marks.append(label(mark) | {"host_ns": mark.host_ns} | thread(mark.thread_iid))
            for counter in body.counters:
                row = {"name": text(name(counter.name_iid)), "host_ns": counter.host_ns, "value": counter.value}
                self.counters.append(row | thread(counter.thread_iid))
            for open_ in body.open_annotations:
                key = (thread(open_.thread_iid)["tid"] or 0, open_.begin_host_ns, name(open_.name_iid) or b"")
                self._open_annotations[key] = label(open_) | thread(open_.thread_iid)
                self._open_annotations[key] |= {
                    "begin_host_ns": open_.begin_host_ns,
                    "end_host_ns": None,
                    "duration_ns": None,
                    "end_tid": None,
                }
            for named in body.resource_names:
                kind = self.pb.events.ResourceKind.Name(named.kind).removeprefix("RESOURCE_KIND_").lower()
                row = {"kind": kind, "id": named.id, "name": text(name(named.name_iid))} | domain(named.domain_iid)
                same = ("kind", "id", "_domain")
                for before in self.names if not row["domain_lost"] else []:
                    if all(before[key] == row[key] for key in same):
                        before.update(row)
                        break
                else:
                    self.names.append(row)
            for event in body.resource_events:
                change = self.pb.events.ResourceChange.Name(event.change).removeprefix("RESOURCE_CHANGE_").lower()
                row = {"change": change, "host_ns": event.host_ns, "device": event.device, "context": event.context}
                row |= {"stream": event.stream if change.startswith("stream") else None, "handle": event.handle}
                self.resources.append(row | thread(event.thread_iid))
            for loss in body.losses:
                self.losses.append(
                    {
                        "reason": self.pb.events.LossReason.Name(loss.reason).removeprefix("LOSS_REASON_").lower(),
                        "kind": self.pb.events.EventKind.Name(loss.kind).removeprefix("EVENT_KIND_").lower(),
                        "count": loss.count,
                        "first_host_ns": loss.first_host_ns,
                        "last_host_ns": loss.last_host_ns,
                    }
                    | thread(loss.thread_iid)
                )
            for outage in body.outages:
                self.outages.append(
                    {
                        "reason": self.pb.events.OutageReason.Name(outage.reason)
                        .removeprefix("OUTAGE_REASON_")
                        .lower(),
                        "begin_host_ns": outage.begin_host_ns,
                        "end_host_ns": outage.end_host_ns or None,
                        "detail": outage.detail or None,
                    }
                )
            for pair in body.clock_pairs:
                row = {"host_ns": pair.host_ns, "device_ns": pair.device_ns, "width_ns": pair.width_ns}
                self.clock_pairs.append(row)
            if body.HasField("run_info"):
                self.run_info = body.run_info

    def _call(self, site: Any, name: Callable[[int | None], bytes | None]) -> Row:
        def enum(kind: str, prefix: str, value: int) -> str:
            return str(getattr(self.pb.events, kind).Name(value).removeprefix(prefix).lower())

        keys = "copy_bytes copy_kind copy_destination copy_source event_handle memory_address memory_bytes graph_handle"
        keys += " kind domain capture stream_handle context name kernel_name _symbol"
        row: Row = dict.fromkeys(keys.split())
        row["_has_memory"] = False
        if site is not None:
            row |= {
                "name": text(name(site.name_iid)),
                "kind": enum("CallKind", "CALL_KIND_", site.kind),
                "domain": enum("CallDomain", "CALL_DOMAIN_", site.domain),
                "capture": enum("CaptureState", "CAPTURE_STATE_", site.capture),
                "kernel_name": demangled(name(site.function_name_iid)),
                "_symbol": text(name(site.function_name_iid)),
                "stream_handle": site.stream_handle if site.has_stream else None,
                "context": site.context or None,
            }
        return row

    def _finish(self) -> None:
        """Joins, host times, begins of steps."""
        by_id: dict[int, Row] = {}
        for call in self.calls:
            by_id.setdefault(call["correlation"], call)
            call["work_rows"] = 0
            call["_work"] = []
        for row in (*self.kernels, *self.copies, *self.memsets):
            call = by_id.get(row["correlation"], {})
            row["call_name"] = call.get("name")
            row["call_tid"] = call.get("tid")
            row["call_thread"] = call.get("thread")
            row["call_enter_host_ns"] = call.get("enter_host_ns")
            row["call_exit_host_ns"] = call.get("exit_host_ns")
            for end in ("begin", "end"):
                row[f"{end}_host_ns"] = self.clock.to_host(row[f"{end}_device_ns"]) if self.clock else None
            if call:
                call["_work"].append(row)
        for call in self.calls:
            work = call["_work"]
            call["work_rows"] = len(work)
            first = min(work, key=lambda row: (row["begin_device_ns"], row["_order"]), default=None)
            for key in ("device", "stream"):
                call[f"work_{key}"] = first[key] if first else None
            for clock in ("device", "host"):
                known = work and work[0][f"begin_{clock}_ns"] is not None
                call[f"work_begin_{clock}_ns"] = min(row[f"begin_{clock}_ns"] for row in work) if known else None
                call[f"work_end_{clock}_ns"] = max(row[f"end_{clock}_ns"] for row in work) if known else None
        self.steps.sort(key=lambda step: step["end_host_ns"])
        for before, step in zip([None, *self.steps], self.steps, strict=False):
            follows = before is not None and step["index"] == before["index"] + 1
            step["begin_host_ns"] = before["end_host_ns"] if before and follows else None
            step["duration_ns"] = step["end_host_ns"] - step["begin_host_ns"] if follows else None

    def of_kinds(self, *kinds: str) -> list[Row]:
        return [call for call in self.calls if call["kind"] in kinds]

    @property
    def launches(self) -> list[Row]:
        return self.of_kinds("launch", "graph_launch")

    @property
    def syncs(self) -> list[Row]:
        return self.of_kinds("synchronize")

    @property
    def allocations(self) -> list[Row]:
        wanted = [call for call in self.calls if call["_has_memory"] or call["kind"] in ("allocate", "free")]
        return [call | {"address": call["memory_address"], "bytes": call["memory_bytes"]} for call in wanted]

    # ------------------------------------------------------------------------------------------------------ regions

    def steps_region(self, begin: int | None, end: int | None) -> Intervals:
        """Of steps whose numbers rise; the caller asks for steps that are there."""
        ends = {step["index"]: step["end_host_ns"] for step in self.steps}
        numbers = range(max(ends) + 1)[slice(begin, end)]
        if not numbers:
            return []
        first = self.span[0] if numbers[0] == 0 else ends[numbers[0] - 1]
        return intersection([self.span], [(first, ends[numbers[-1]])])

    def annotation_region(self, name: str) -> Intervals:
        return self._open_time(row for row in self.annotations if row["name"] == name)

    def nvtx_region(self, name: str, domain: str | None) -> Intervals:
        """`domain` "": the default one; None: any."""
        mine = [row for row in self.annotations if row["name"] == name and row["source"] != "gpuperf"]
        if domain is not None:
            mine = [row for row in mine if not row["domain_lost"] and (row["domain"] or "") == domain]
        return self._open_time(mine)

    def _open_time(self, rows: Iterable[Row]) -> Intervals:
        return intersection(
            [self.span], union((row["begin_host_ns"], row["end_host_ns"] or self.span[1]) for row in rows)
        )

    def time_region(self, begin: int, end: int) -> Intervals:
        return intersection([self.span], [(begin, end)])

    def on_device(self, region: Intervals) -> Intervals:
        return union((self.clock.to_device(begin), self.clock.to_device(end)) for begin, end in region)

    def restricted(self, table: str, region: Intervals) -> list[Row]:
        """The rows of a table that are in a region."""
        rows: list[Row] = getattr(self, table)
        device = self.on_device(region) if self.clock else []

        def wanted(row: Row) -> bool:
            if table in ("kernels", "copies", "memsets"):
                return overlap(device, row["begin_device_ns"], row["end_device_ns"]) is not None
            if table == "steps":
                return any(begin < row["end_host_ns"] <= end for begin, end in region)
            if table == "names":
                return True
            if table in ("marks", "counters", "clock_pairs", "resources"):
                return overlap(region, row["host_ns"], row["host_ns"]) is not None
            if table == "losses":
                return any(row["first_host_ns"] < end and row["last_host_ns"] >= begin for begin, end in region)
            first = "begin_host_ns" if table in ("annotations", "outages") else "enter_host_ns"
            last = "end_host_ns" if table in ("annotations", "outages") else "exit_host_ns"
            end = max(row[first], self.span[1]) if row[last] is None else row[last]
            return overlap(region, row[first], end) is not None

        return [row for row in rows if wanted(row)]


def nvtx_ranges(expected: Reference) -> list[tuple[str, str, str | None]]:
    """What may be asked for: as it is told, and the name and domain that it means."""
    found = {(row["name"], None) for row in expected.annotations if row["source"] != "gpuperf" and row["name"]}
    for row in expected.annotations:
        if row["source"] != "gpuperf" and row["name"] and not row["domain_lost"]:
            found.add((row["name"], row["domain"] or ""))
    escaped = [tuple(part and part.replace("@", r"\@") for part in pair) for pair in found]
    told = [name if domain is None else f"{name}@{domain}" for name, domain in escaped]
    return sorted((one, *pair) for one, pair in zip(told, found, strict=True))
