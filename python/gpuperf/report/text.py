"""A report for a terminal or a pipe."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from gpuperf.report import kernel_names, statements, units
from gpuperf.report.tables import Column, plain, show

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from gpuperf.report.traces import Summary

_PIPE_WIDTH = 160  # where nothing tells how wide it may be
_WAITS = {
    "synchronize": "waits for the GPU",
    "blocking_copy": "blocking copy",
    "pageable_copy": "copy of pageable memory",
}


def console(stream: TextIO | None = None) -> Console:
    """Where reports go: colours only on a terminal; names are never read as markup."""
    out = _Console(file=stream or sys.stdout, markup=False, highlight=False, emoji=False)
    if not out.is_terminal:
        if "COLUMNS" not in os.environ:
            out.width = _PIPE_WIDTH
        out.file = cast("IO[str]", _NoTrailingBlanks(out.file))
    return out


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """The reader is gone: for the command line to deal with; rich would end the process with code 1."""
        raise


class _NoTrailingBlanks:
    """A stream whose lines end with their last word: tables are padded, and a file need not be."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._line = ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        self._stream.write("".join(f"{line.rstrip()}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        self._stream.write(self._line)
        self._line = ""
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def show_report(out: Console, traces: Sequence[Summary], *, top: int, full_names: bool = False) -> None:
    """Prints the report of some traces: with more than one, a row for each first.

    Args:
        out: where to.
        traces: what `summary` returned.
        top: rows of the longest tables; 0 = all.
        full_names: kernel names as the compiler spells them.
    """
    if len(traces) > 1:
        ordered = sorted(traces, key=lambda trace: (trace["process"]["rank"] is None, trace["process"]["rank"] or 0))
        _show_ranks(out, ordered)
        for trace in ordered:
            out.print()
            out.print(Rule(Text(plain(_title(trace))), align="left", characters="─"))
            _show_one(out, trace, top, full_names=full_names)
    else:
        for trace in traces:
            _show_one(out, trace, top, full_names=full_names)


def _title(trace: Summary) -> str:
    rank = trace["process"]["rank"]
    name = Path(trace["trace"]["path"]).name
    return name if rank is None else f"rank {rank}: {name}"


def _show_one(out: Console, trace: Summary, top: int, *, full_names: bool) -> None:
    style = "green" if trace["completeness"]["complete"] else "yellow"
    for sentence in statements.region(trace):
        _say(out, f"{sentence}.", "bold")
    head, *others = statements.idle(trace)
    clauses = list(statements.completeness(trace))
    _say(out, f"{head}; {clauses[0]}.", "bold")
    for sentence in others:
        _say(out, f"{sentence}.", "bold")
    for clause in clauses[1:]:
        _say(out, f"  {clause}", style)
    for note in statements.notes(trace):
        _say(out, f"  {note}", "dim")
    out.print(Text(plain(_origin(trace)), style="dim"), no_wrap=True, overflow="ellipsis")

    _show_steps(out, trace)
    _show_devices(out, trace)
    _show_streams(out, trace, top)
    _show_kernels(out, trace, top, full_names=full_names)
    _show_copies(out, trace)
    _show_copy_sizes(out, trace)
    _show_waits(out, trace, top)
    _show_ranges(out, trace, top)
    _show_cost(out, trace)


def _say(out: Console, text: str, style: str) -> None:
    out.print(Text(plain(text), style=style))


def _origin(trace: Summary) -> str:
    process, run = trace["process"], trace["run"] or {}
    parts = [trace["trace"]["path"], units.size(trace["trace"]["bytes"])]
    if process["rank"] is not None:
        parts.append(f"rank {process['rank']} of {units.count(process['world_size'])}")
    if process["host"]:
        parts.append(f"{process['host']}, process {process['pid']}")
    names = {hardware["device"]: hardware["name"] for hardware in run.get("hardware", [])}
    parts += sorted({names[d["device"]] for d in trace["devices"] if names.get(d["device"])})
    parts.append(" ".join(process["command_line"]))
    return " · ".join(part for part in parts if part)


def _show_ranks(out: Console, traces: Sequence[Summary]) -> None:
    columns = [
        Column("rank"),
        Column("file", is_name=True),
        Column("GPU"),
        Column("captured", 2),
        Column("idle"),
        Column("idle in steps", 3),
        Column("steps", 1),
        Column("step p50", 1),
        Column("step p99", 4),
        Column("kernels", 5),
        Column("lost"),
    ]
    rows = [_rank_row(trace, device) for trace in traces for device in trace["devices"] or [_no_device()]]
    show(out, f"{units.count(len(traces))} traces", columns, rows)


def _rank_row(trace: Summary, device: dict[str, Any]) -> list[str]:
    durations = trace["steps"]["durations"]
    return [
        units.count(trace["process"]["rank"]),
        Path(trace["trace"]["path"]).name,
        units.count(device["device"]),
        units.duration(trace["span"]["captured_ns"]),
        units.share(device["idle_ns"], trace["span"]["captured_ns"]),
        units.share(device["steps_idle_ns"], device["steps_captured_ns"]),
        units.count(trace["steps"]["count"]),
        units.duration(durations["p50_ns"]),
        units.duration(durations["p99_ns"]),
        units.count(device["kernels"]),
        _lost(trace),
    ]


def _no_device() -> dict[str, Any]:
    return {"device": None, "idle_ns": None, "steps_idle_ns": None, "steps_captured_ns": None, "kernels": 0}


def _lost(trace: Summary) -> str:
    facts = trace["completeness"]
    words = [statements.lost(trace)]
    if facts["damage_count"]:
        words.append("damaged")
    if not facts["cleanly_closed"]:
        words.append("not closed")
    return ", ".join(words)


def _show_steps(out: Console, trace: Summary) -> None:
    steps = trace["steps"]
    durations = steps["durations"]
    if not steps["count"]:
        out.print()
        whole = "No steps: call gpuperf.step() at the end of each to see them here."
        _say(out, whole if trace["region"] is None else "No step ends in this part of the run.", "dim")
        return
    columns = [Column("step()"), Column("durations"), Column("p50"), Column("p95", 2), Column("p99"), Column("max", 1)]
    row = [units.count(steps["count"]), units.count(durations["count"])]
    row += [units.duration(durations[key]) for key in ("p50_ns", "p95_ns", "p99_ns", "max_ns")]
    for what in ("samples", "tokens"):
        if steps[what] is not None:
            columns.append(Column(f"{what}/s"))
            row.append(units.rate(steps[what], steps[f"{what}_ns"]))
    if steps["not_seen"]:
        columns.append(Column("not seen"))
        row.append(units.count(steps["not_seen"]))
    show(out, "Steps", columns, [row])


def _show_devices(out: Console, trace: Summary) -> None:
    columns = [
        Column("GPU"),
        Column("busy"),
        Column("idle"),
        Column("idle share"),
        Column("in steps", 3),
        Column("longest idle", 2),
        Column("kernels", 1),
        Column("copies", 4),
        Column("memory sets", 5),
    ]
    captured = trace["span"]["captured_ns"]
    rows = [
        [
            units.count(device["device"]),
            units.duration(device["busy_ns"]),
            units.duration(device["idle_ns"]),
            units.share(device["idle_ns"], captured),
            units.share(device["steps_idle_ns"], device["steps_captured_ns"]),
            units.duration(device["longest_idle_ns"]),
            f"{units.count(device['kernels'])} in {units.duration(device['kernel_ns'])}",
            f"{units.count(device['copies'])} in {units.duration(device['copy_ns'])}",
            f"{units.count(device['memsets'])} in {units.duration(device['memset_ns'])}",
        ]
        for device in trace["devices"]
    ]
    show(out, "GPU time (busy: any kernel, copy or memory set is running)", columns, rows)


def _show_streams(out: Console, trace: Summary, top: int) -> None:
    streams = trace["streams"]
    columns = [
        Column("GPU"),
        Column("context", 3),
        Column("stream"),
        Column("priority", 6),
        Column("busy"),
        Column("share", 1),
        Column("kernels"),
        Column("copies", 4),
        Column("memory sets", 5),
    ]
    rows = [
        [
            *(units.count(stream[key]) for key in ("device", "context", "stream", "priority")),
            units.duration(stream["busy_ns"]),
            units.share(stream["busy_ns"], trace["span"]["captured_ns"]),
            f"{units.count(stream['kernels'])} in {units.duration(stream['kernel_ns'])}",
            f"{units.count(stream['copies'])} in {units.duration(stream['copy_ns'])}",
            f"{units.count(stream['memsets'])} in {units.duration(stream['memset_ns'])}",
        ]
        for stream in _top(streams, top)
    ]
    show(out, _headline("Streams by work", len(rows), len(streams)), columns, rows)


def _show_kernels(out: Console, trace: Summary, top: int, *, full_names: bool) -> None:
    kernels = trace["kernels"]
    columns = [
        Column("share"),
        Column("total"),
        Column("count"),
        Column("average", 1),
        Column("min", 4),
        Column("max", 3),
        Column("p99", 2),
        Column("name", is_name=True),
    ]
    whole = sum(kernel["total_ns"] for kernel in kernels)
    rows = [
        [
            units.share(kernel["total_ns"], whole),
            units.duration(kernel["total_ns"]),
            units.count(kernel["count"]),
            *(units.duration(kernel[key]) for key in ("average_ns", "min_ns", "max_ns", "p99_ns")),
            (kernel["name"] or "(name lost)") if full_names else kernel_names.short(kernel["name"]),
        ]
        for kernel in _top(kernels, top)
    ]
    show(out, _headline("Kernels by total time", len(rows), len(kernels)), columns, rows)


def _show_copies(out: Console, trace: Summary) -> None:
    columns = [
        Column("direction", is_name=True),
        Column("from", is_name=True),
        Column("to", is_name=True),
        Column("count", 2),
        Column("bytes"),
        Column("time", 1),
        Column("bandwidth"),
        Column("of the link", 3),
    ]
    rows = [
        [
            copies["direction"],
            copies["source"],
            copies["destination"],
            units.count(copies["operations"]),
            units.size(copies["bytes"]),
            units.duration(copies["total_ns"]),
            units.bandwidth(copies["bytes_per_second"]),
            _link_share(copies),
        ]
        for copies in trace["copies"]
    ]
    rows += [
        [
            "set",
            "",
            memsets["memory"],
            units.count(memsets["operations"]),
            units.size(memsets["bytes"]),
            units.duration(memsets["total_ns"]),
            units.bandwidth(memsets["bytes_per_second"]),
            "",
        ]
        for memsets in trace["memsets"]
    ]
    show(out, "Copies and memory sets", columns, rows)


def _show_copy_sizes(out: Console, trace: Summary) -> None:
    columns = [
        Column("direction", is_name=True),
        Column("size"),
        Column("count"),
        Column("bytes", 2),
        Column("time", 1),
        Column("bandwidth"),
        Column("of the link", 3),
    ]
    rows = [
        [
            sizes["direction"],
            _sizes(sizes["least_bytes"], sizes["below_bytes"]),
            units.count(sizes["operations"]),
            units.size(sizes["bytes"]),
            units.duration(sizes["total_ns"]),
            units.bandwidth(sizes["bytes_per_second"]),
            _link_share(sizes),
        ]
        for sizes in trace["copy_sizes"]
    ]
    show(out, "Copies by size", columns, rows)


def _sizes(least: int, below: int | None) -> str:
    if below is None:
        return f"≥ {units.binary(least)}"
    return f"{units.binary(least)} – {units.binary(below)}" if least else f"< {units.binary(below)}"


def _link_share(figures: dict[str, Any]) -> str:
    """Of the most that PCIe carries in that direction; nothing where no link to the host is crossed."""
    if figures["direction"] not in ("h2d", "d2h", "h2a", "a2h"):
        return ""
    if figures["link_bytes_per_second"] is None:
        return "unknown"
    return units.share(figures["bytes_per_second"], figures["link_bytes_per_second"])


def _show_waits(out: Console, trace: Summary, top: int) -> None:
    columns = [
        Column("total"),
        Column("count"),
        Column("max", 1),
        Column("call", is_name=True),
        Column("why", 2, is_name=True),
    ]
    rows = [
        [
            units.duration(wait["total_ns"]),
            units.count(wait["count"]),
            units.duration(wait["max_ns"]),
            wait["function"] or "(name lost)",
            _WAITS.get(wait["reason"], wait["reason"]),
        ]
        for wait in _top(trace["waits"], top)
    ]
    show(out, _headline("Host waits by call", len(rows), len(trace["waits"])), columns, rows)


def _show_ranges(out: Console, trace: Summary, top: int) -> None:
    columns = [
        Column("total"),
        Column("count"),
        Column("max", 3),
        Column("launches", 2),
        Column("GPU time"),
        Column("GPU idle in it", 1),
        Column("range", is_name=True),
    ]
    rows = [
        [
            units.duration(annotation["total_ns"]),
            units.count(annotation["count"]),
            units.duration(annotation["max_ns"]),
            units.count(annotation["launches"]),
            units.duration(annotation["gpu_ns"]),
            units.duration(annotation["gpu_idle_ns"]),
            _range_name(annotation),
        ]
        for annotation in _top(trace["ranges"], top)
    ]
    title = _headline("Annotations and NVTX ranges by time on the host", len(rows), len(trace["ranges"]))
    show(out, title, columns, rows)
    if not trace["ranges_complete"]:
        _say(out, "(more than 64 around one call: the others have no launches and no GPU time)", "dim")
    open_ranges = sum(annotation["open"] for annotation in trace["ranges"])
    if open_ranges:
        verb = "range did" if open_ranges == 1 else "ranges did"
        _say(
            out,
            f"({units.count(open_ranges)} {verb} not end: up to the end of the trace, and in no count or total)",
            "dim",
        )


def _range_name(annotation: dict[str, Any]) -> str:
    name = "(name lost)" if annotation["name"] is None else annotation["name"] or "(no name)"
    if annotation["domain_lost"]:
        return f"{name} @ (name lost)"
    return name if annotation["domain"] is None else f"{name} @ {annotation['domain']}"


def _show_cost(out: Console, trace: Summary) -> None:
    cost = trace["self_cost"]
    out.print()
    if cost is None:
        _say(out, "gpuperf itself: cost not known.", "dim")
        return
    parts = [
        f"{units.duration(cost['callback_ns'])} in {units.count(cost['callbacks'])} callbacks",
        f"{units.duration(cost['collector_cpu_ns'])} collector CPU",
        f"{units.duration(cost['flush_cpu_ns'])} flush CPU",
        f"{units.size(cost['buffer_bytes_peak'] + cost['ring_bytes'])} of host memory",
        f"{units.size(trace['trace']['bytes'])} on disk",
        "CUPTI's own share not measured",
    ]
    _say(out, f"gpuperf itself: {', '.join(parts)}.", "dim")


def _top(rows: list[dict[str, Any]], top: int) -> list[dict[str, Any]]:
    return rows[:top] if top else rows


def _headline(title: str, shown: int, all_rows: int) -> str:
    return title if shown == all_rows else f"{title} ({units.count(shown)} of {units.count(all_rows)}; -n shows more)"
