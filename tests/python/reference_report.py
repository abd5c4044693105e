"""The figures of docs/report.md for a region of a trace, computed the slow way from reference_tables.Reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from reference_tables import Intervals, Reference, Row, intersection, overlap, union

SIZES = [0, *(1 << bit for bit in range(10, 31, 2))]
LANE = {1: 250_000_000, 2: 500_000_000, 3: 984_615_384, 4: 1_969_230_769, 5: 3_938_461_538, 6: 7_562_500_000}


def length(intervals: Intervals) -> int:
    return sum(end - begin for begin, end in intervals)


def without(intervals: Intervals, other: Intervals) -> Intervals:
    """The parts of `intervals` that lie in none of `other`."""
    edges = sorted({time for pair in (*intervals, *other) for time in pair})
    pieces = pairwise(edges)

    def inside(piece: tuple[int, int], among: Intervals) -> bool:
        return any(begin <= piece[0] and piece[1] <= end for begin, end in among)

    return union(piece for piece in pieces if inside(piece, intervals) and not inside(piece, other))


def figures(durations: list[int]) -> Row:
    """FIGURES."""
    values = sorted(durations)
    count = len(values)
    out: Row = {"count": count, "total_ns": sum(values)}
    out["average_ns"] = sum(values) // count if count else None
    out["min_ns"] = values[0] if count else None
    out["max_ns"] = values[-1] if count else None
    for percent in (50, 95, 99):
        out[f"p{percent}_ns"] = values[-(-count * percent // 100) - 1] if count else None
    return out


def by_total(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: -row["total_ns"])


def grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


class ReferenceReport:
    """A region's figures; `region` None: the whole trace's."""

    def __init__(self, trace: Reference, region: Intervals | None) -> None:
        self.trace = trace
        self.region = region
        self.device_region = trace.on_device(region) if region is not None else None
        outages = union((row["begin_host_ns"], row["end_host_ns"] or trace.span[1]) for row in trace.outages)
        whole = union([trace.span]) if region is None else region
        self.outage_ns = length(intersection(whole, outages))
        self.captured = without(whole, outages)
        self.kernels = self.of_device(trace.kernels)
        self.copies = self.of_device(trace.copies)
        self.memsets = self.of_device(trace.memsets)
        self.calls = [
            call | {"ns": self.host_ns(call["enter_host_ns"], call["exit_host_ns"])}
            for call in trace.calls
            if call["exit_host_ns"] is not None
            and self.host_ns(call["enter_host_ns"], call["exit_host_ns"]) is not None
        ]

    def of_device(self, rows: list[Row]) -> list[Row]:
        out = []
        for row in rows:
            ns: int | None = row["duration_ns"]
            if self.device_region is not None:
                ns = overlap(self.device_region, row["begin_device_ns"], row["end_device_ns"])
            if ns is not None:
                out.append(row | {"ns": ns})
        return out

    def host_ns(self, begin: int, end: int) -> int | None:
        return end - begin if self.region is None else overlap(self.region, begin, end)

    def kernel_table(self) -> dict[Any, Row]:
        groups = grouped(self.kernels, lambda row: row["name"])
        return {name: figures([row["ns"] for row in rows]) for name, rows in groups.items()}

    def link(self, device: int | None, direction: str) -> int | None:
        if direction not in ("h2d", "d2h", "h2a", "a2h") or self.trace.run_info is None:
            return None
        for told in self.trace.run_info.devices:
            if told.device == device:
                lane = LANE.get(told.pcie_generation_max or told.pcie_generation)
                width = told.pcie_width or told.pcie_width_max
                return lane * width if lane and width else None
        return None

    def transfer(self, rows: list[Row], *, link: bool = True) -> Row:
        out: Row = {"operations": len(rows), "bytes": min(sum(row["bytes"] for row in rows), 2**64 - 1)}
        out["total_ns"] = sum(row["ns"] for row in rows)
        out["whole_ns"] = whole = sum(row["duration_ns"] for row in rows)
        out["bytes_per_second"] = out["bytes"] * 10**9 // whole if whole else None
        if out["bytes_per_second"] is not None and out["bytes_per_second"] >= 2**64:
            out["bytes_per_second"] = None
        if link:
            links = [(self.link(row["device"], row["direction"]), row["duration_ns"]) for row in rows]
            known = whole and all(peak is not None for peak, _ in links)
            out["link_bytes_per_second"] = sum((peak or 0) * ns for peak, ns in links) // whole if known else None
        return out

    def copy_table(self) -> dict[Any, Row]:
        groups = grouped(self.copies, lambda row: (row["direction"], row["source"], row["destination"]))
        return {
            key: self.transfer(rows) | {"copies": sum(row["copies"] for row in rows)} for key, rows in groups.items()
        }

    def size_table(self) -> dict[Any, Row]:
        def least(row: Row) -> tuple[str, int]:
            size = row["bytes"] // max(row["copies"], 1)
            return row["direction"], max(bound for bound in SIZES if bound <= size)

        return {key: self.transfer(rows) for key, rows in grouped(self.copies, least).items()}

    def memset_table(self) -> dict[Any, Row]:
        groups = grouped(self.memsets, lambda row: row["memory"])
        return {key: self.transfer(rows, link=False) for key, rows in groups.items()}

    def call_table(self) -> dict[Any, Row]:
        groups = grouped(self.calls, lambda row: (row["name"], row["kind"] or "unspecified"))
        return {
            key: {
                "count": len(rows),
                "total_ns": sum(row["ns"] for row in rows),
                "max_ns": max(row["ns"] for row in rows),
                "errors": sum(row["result"] != 0 for row in rows),
            }
            for key, rows in groups.items()
        }

    def wait_table(self) -> dict[Any, Row]:
        pageable = {
            row["correlation"] for row in self.trace.copies if "pageable" in (row["source"], row["destination"])
        }

        def reason(call: Row) -> str | None:
            asynchronous = call["name"] is None or "Async" in call["name"] or "Batch" in call["name"]
            if call["kind"] == "copy" and asynchronous:
                return "pageable_copy" if call["correlation"] in pageable else None
            if call["capture"] == "capturing":
                return None
            return {"synchronize": "synchronize", "copy": "blocking_copy"}.get(call["kind"])

        groups = grouped(self.calls, lambda call: (call["name"], reason(call)))
        return {
            key: {"count": len(rows), "total_ns": sum(r["ns"] for r in rows), "max_ns": max(r["ns"] for r in rows)}
            for key, rows in groups.items()
            if key[1] is not None
        }

    def annotation_table(self) -> dict[Any, Row]:
        found = []
        for row in self.trace.annotations:
            if row["end_host_ns"] is not None:
                ns = self.host_ns(row["begin_host_ns"], row["end_host_ns"])
                if ns is not None:
                    found.append(row | {"ns": ns})
        return {
            name: {"count": len(rows), "total_ns": sum(r["ns"] for r in rows), "max_ns": max(r["ns"] for r in rows)}
            for name, rows in grouped(found, lambda row: row["name"]).items()
        }

    def range_table(self) -> dict[Any, Row]:
        """Every instance against every call and every operation."""
        launching = [
            call
            for call in self.trace.calls
            if call["kind"] in ("launch", "graph_launch", "copy", "memset") and call["exit_host_ns"] is not None
        ]
        operations = []
        for row in (*self.trace.kernels, *self.trace.copies, *self.trace.memsets):
            edges = (row["begin_device_ns"], row["end_device_ns"])
            if self.device_region is not None:
                if overlap(self.device_region, *edges) is None:
                    continue
                inside = intersection(self.device_region, union([edges]))
                edges = (inside[0][0], inside[-1][1]) if inside else edges
            operations.append((row["device"], row["correlation"], *edges))
        end = self.trace.span[1]
        instances = []
        for row in self.trace.annotations:
            last = row["end_host_ns"]
            if last is None and self.region is not None and not any(row["begin_host_ns"] < e for _, e in self.region):
                continue
            if last is not None and self.host_ns(row["begin_host_ns"], last) is None:
                continue
            instances.append(row | {"last": max(row["begin_host_ns"], end) if last is None else last})
        out = {}
        for key, rows in grouped(
            instances, lambda row: (row["source"], row["domain"], row["domain_lost"], row["name"])
        ).items():
            times = [self.host_ns(row["begin_host_ns"], row["last"]) for row in rows if row["end_host_ns"] is not None]
            calls, work, extents = set(), set(), []
            for row in rows:
                mine = [
                    call
                    for call in launching
                    if row["begin_host_ns"] <= call["enter_host_ns"] < row["last"]
                    and (row["source"] == "nvtx_start_end" or (row["tid"] is not None and row["tid"] == call["tid"]))
                ]
                calls |= {
                    call["correlation"]
                    for call in mine
                    if self.host_ns(call["enter_host_ns"], call["exit_host_ns"]) is not None
                }
                ids = {call["correlation"] for call in mine}
                done = [(at, *operation) for at, operation in enumerate(operations) if operation[1] in ids]
                work |= set(done)
                for device in {operation[1] for operation in done}:
                    edges = [(begin, last) for _, place, _, begin, last in done if place == device]
                    extents.append((device, min(begin for begin, _ in edges), max(last for _, last in edges)))
            gpu = idle = 0
            for device in {place for _, place, *_ in work}:
                gpu += length(union((begin, last) for _, place, _, begin, last in work if place == device))
                extent = union((begin, last) for place, begin, last in extents if place == device)
                if self.device_region is not None:
                    extent = intersection(extent, self.device_region)
                busy = union((begin, last) for place, _, begin, last in operations if place == device)
                idle += length(without(extent, busy))
            out[key] = {
                "count": len(times),
                "total_ns": sum(time or 0 for time in times),
                "max_ns": max((time or 0 for time in times), default=0),
                "open": len(rows) - len(times),
                "launches": len(calls),
                "operations": len(work),
                "gpu_ns": gpu,
                "gpu_idle_ns": idle,
            }
        return out

    def busy(self, rows: Iterable[Row]) -> Intervals:
        return intersection(self.captured, union((row["begin_host_ns"], row["end_host_ns"]) for row in rows))

    def stream_table(self) -> dict[Any, Row]:
        def key(row: Row) -> tuple[Any, ...]:
            return row["device"], row["context"], row["stream"]

        kinds = {"kernel": self.kernels, "copy": self.copies, "memset": self.memsets}
        plural = {"kernel": "kernels", "copy": "copies", "memset": "memsets"}
        groups = {kind: grouped(rows, key) for kind, rows in kinds.items()}
        out = {}
        for stream in {key(row) for rows in kinds.values() for row in rows}:
            row: Row = {"total_ns": 0}
            for kind in kinds:
                mine = groups[kind].get(stream, [])
                row[plural[kind]] = len(mine)
                row[f"{kind}_ns"] = sum(one["ns"] for one in mine)
                row["total_ns"] += row[f"{kind}_ns"]
            work = [row for rows in kinds.values() for row in rows if key(row) == stream]
            row["busy_ns"] = length(self.busy(work))
            out[stream] = row
        return out

    def device_table(self) -> dict[Any, Row]:
        every = [*self.trace.kernels, *self.trace.copies, *self.trace.memsets]
        inside = [*self.kernels, *self.copies, *self.memsets]
        ends = [step["end_host_ns"] for step in self.trace.steps]
        in_steps = intersection(self.captured, [(ends[0], ends[-1])]) if len(ends) > 1 else []
        out = {}
        for device in {row["device"] for row in every}:
            busy = self.busy(row for row in inside if row["device"] == device)
            idle = without(self.captured, busy)
            longest = max(idle, key=lambda gap: gap[1] - gap[0], default=None)
            numbered = [(step["end_host_ns"], step["index"]) for step in self.trace.steps]
            before = [index for end, index in numbered if longest and end <= longest[0]]
            behind = [index for end, index in numbered if longest and end >= longest[1]]
            out[device] = {
                "kernels": sum(row["device"] == device for row in self.kernels),
                "busy_ns": length(busy),
                "idle_ns": length(idle),
                "idle_intervals": len(idle),
                "longest_idle_ns": max((end - begin for begin, end in idle), default=0),
                "longest_idle_begin_host_ns": longest[0] if longest else None,
                "longest_idle_after_step": before[-1] if before else None,
                "longest_idle_before_step": behind[0] if behind else None,
                "steps_captured_ns": length(in_steps) if in_steps else None,
                "steps_idle_ns": length(intersection(idle, in_steps)) if in_steps else None,
            }
        return out

    def joins(self) -> Row:
        ids = {call["correlation"] for call in self.trace.calls}
        out = {}
        for kind in ("kernels", "copies", "memsets"):
            rows = [row for row in getattr(self, kind) if row["graph_id"] is None]
            out[kind] = {"records": len(rows), "joined": sum(row["correlation"] in ids for row in rows)}
        return out

    def launches_without_kernel(self) -> int:
        kernels = {row["correlation"] for row in self.trace.kernels if row["graph_id"] is None}
        return sum(
            row["kind"] == "launch"
            and row["result"] == 0
            and row["capture"] == "none"
            and row["correlation"] not in kernels
            for row in self.calls
        )

    def steps(self) -> tuple[int, list[int]]:
        """The number of ends in the region, and the times of the steps that lie in it wholly."""
        steps = self.trace.steps
        if self.region is None:
            return len(steps), [step["duration_ns"] for step in steps if step["duration_ns"] is not None]
        ends = sum(any(begin < step["end_host_ns"] <= end for begin, end in self.region) for step in steps)
        times = [
            step["duration_ns"]
            for step in steps
            if step["duration_ns"] is not None
            and any(begin <= step["begin_host_ns"] and step["end_host_ns"] <= end for begin, end in self.region)
        ]
        return ends, times
