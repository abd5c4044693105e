"""The sentences of a report: how idle the GPUs were, and how complete that picture is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuperf.report import units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuperf.report.traces import Summary

_LOST = {
    "ring_full": "dropped, a thread's ring was full",
    "pool_empty": "activity buffers refused, the pool was empty",
    "cupti_dropped": "dropped by CUPTI",
    "zero_timestamp": "invalid, without a time",
    "reversed_timestamp": "invalid, ended before they began",
    "no_launch": "without the call that launched them",
    "unreadable": "activity buffers not readable to their end",
    "write_failed": "not written, the disk refused",
    "no_ring": "dropped, no memory for a thread's ring",
    "queue_full": "activity buffers lost, gpuperf did not take them in time",
}
_BUFFERS = ("pool_empty", "unreadable", "queue_full")
"""Reasons that count buffers: how many records went with them is not known."""


def is_damaged(trace: Summary) -> bool:
    """The file is not what its writer would have left at an orderly end: exit code 4."""
    completeness = trace["completeness"]
    return not completeness["cleanly_closed"] or completeness["damage_count"] != 0


def idle(trace: Summary) -> Iterator[str]:
    """One sentence a GPU."""
    captured = trace["span"]["captured_ns"]
    if not trace["devices"]:
        if is_damaged(trace):
            yield f"No GPU work in what can be read of the trace ({units.duration(captured)} of the run)"
        else:
            yield f"No GPU work in {units.duration(captured)}"
    for device in trace["devices"]:
        gpu = _gpu(device)
        gpu = gpu[0].upper() + gpu[1:]
        if device["idle_ns"] is None:
            yield f"{gpu}: how long it was idle is not known (no clock pair carries its times to the host clock)"
            continue
        text = f"{gpu} had nothing to run {units.share(device['idle_ns'], captured)} of {units.duration(captured)}"
        if device["opaque_ns"]:
            text += f", and {units.share(device['opaque_ns'], captured)} is opaque (inside graph launches)"
        yield text


def region(trace: Summary) -> Iterator[str]:
    """What the tables are restricted to, if they are."""
    told = trace["region"]
    if told is None:
        return
    ways = []
    if told["steps"]:
        begin, end = (told["steps"][key] for key in ("begin", "end"))
        ways.append(f"steps {'' if begin is None else begin}:{'' if end is None else end}")
    if told["annotation"] is not None:
        ways.append(f"annotation {told['annotation']}")
    if told["nvtx"]:
        name, domain = told["nvtx"]["name"], told["nvtx"]["domain"]
        where = "" if domain is None else f" of domain {domain}" if domain else " of the default domain"
        ways.append(f"NVTX range {name}{where}")
    if told["time"]:
        ways.append("time")
    first, last = (_since_start(trace, told[key]) for key in ("begin_host_ns", "end_host_ns"))
    text = f"Only {' and '.join(ways)}: {units.duration(told['ns'])}, {first} to {last}"
    yield text if told["intervals"] == 1 else f"{text}, in {units.count(told['intervals'])} intervals"


def completeness(trace: Summary) -> Iterator[str]:
    """What is missing, one clause each; "nothing lost" if nothing is known to be."""
    facts = trace["completeness"]
    if facts["complete"]:
        yield "nothing lost"
    elif is_damaged(trace):
        yield "the trace is damaged" if facts["damage_count"] else "the end of the trace is missing"
    elif not facts["losses"] and not facts["launches_without_kernel"]:
        yield "no record lost while tracing"
    for loss in facts["losses"]:
        yield _loss(trace, loss)
    if not facts["cleanly_closed"]:
        yield "the file was not closed (the process was killed or still runs): what came after its end is not known"
    if facts["damage_count"]:
        text = f"{units.count(facts['damage_count'])} damaged or missing {_plural('stretch', facts['damage_count'])}"
        if trace["span"]["unreadable_ns"]:
            text += f" ({units.duration(trace['span']['unreadable_ns'])} of the run)"
        yield text
    if trace["span"]["outage_ns"]:
        reasons = ", ".join(sorted({outage["reason"] for outage in facts["outages"]}))
        yield f"{units.duration(trace['span']['outage_ns'])} not captured ({reasons})"
    missing = facts["launches_without_kernel"]
    if missing:
        yield f"the kernels of {units.count(missing)} {_plural('launch', missing)} are not in the trace"
    if all(loss["reason"] != "no_launch" for loss in facts["losses"]):  # else it is said already
        yield from _joins(facts["launches"])


def lost(trace: Summary) -> str:
    """How many records are missing, "≥" if it may be more."""
    facts = trace["completeness"]
    at_least = any(loss["reason"] in _BUFFERS for loss in facts["losses"])
    return ("≥ " if at_least else "") + units.count(facts["lost"])


def notes(trace: Summary) -> Iterator[str]:
    """Details to the clauses of `completeness`, one line each."""
    facts = trace["completeness"]
    shown = 10
    for damage in facts["damages"][:shown]:
        where = f"at byte {units.count(damage['offset'])}"
        if damage["bytes"]:
            where += f", {units.size(damage['bytes'])}"
        if damage["file"] != trace["trace"]["path"]:
            where = damage["file"] if not damage["offset"] else f"{damage['file']} {where}"
        yield f"damage: {damage['what']} ({where})"
    if facts["damage_count"] > shown:
        yield f"damage: and {units.count(facts['damage_count'] - shown)} more (gpuperf dump shows them)"
    for call in facts["unfinished_calls"][:shown]:
        began = _since_start(trace, call["enter_host_ns"])
        end = "was not over when the session ended" if facts["cleanly_closed"] else "did not return"
        yield f"{call['function'] or 'a call'} of thread {call['tid'] or '?'}, begun {began}, {end}"
    for change in facts["levels"]:
        how = {"graph": "as a whole", "full": "kernel by kernel"}.get(change["level"], change["level"])
        yield f"CUDA graphs are recorded {how} from {_since_start(trace, change['host_ns'])}"
    for device in trace["devices"]:
        if device["longest_idle_begin_host_ns"] is not None:
            yield _idle_times(trace, device)
    for warning in (trace["run"] or {}).get("warnings", []):
        yield f"warning: {warning}"


def _idle_times(trace: Summary, device: dict[str, Any]) -> str:
    begin = device["longest_idle_begin_host_ns"]
    text = f"{_gpu(device)}: longest idle time {units.duration(device['longest_idle_ns'])}, from"
    text += f" {_since_start(trace, begin)}{_among_steps(trace, device)}"
    if device["steps_captured_ns"]:
        in_steps = units.share(device["steps_idle_ns"], device["steps_captured_ns"])
        text += f"; idle {in_steps} of the {units.duration(device['steps_captured_ns'])} between steps"
    return text


def _gpu(device: dict[str, Any]) -> str:
    return "a GPU that the trace does not name" if device["device"] is None else f"GPU {device['device']}"


def _among_steps(trace: Summary, device: dict[str, Any]) -> str:
    """Where the longest idle time lies; most of it counts where it reaches over the first end or the last."""
    middle = device["longest_idle_begin_host_ns"] + device["longest_idle_ns"] // 2
    first, last = trace["steps"]["first_host_ns"], trace["steps"]["last_host_ns"]
    after, before = device["longest_idle_after_step"], device["longest_idle_before_step"]
    if after is None and first is not None and middle < first:
        return ", before the first step was over"
    if before is None and last is not None and middle >= last:
        return ", after the last step"
    if after is not None and before is not None:
        return f", between the ends of steps {units.count(after)} and {units.count(before)}"
    if after is not None:
        return f", after the end of step {units.count(after)}"
    return "" if before is None else f", before the end of step {units.count(before)}"


def _plural(word: str, number: int) -> str:
    return word if number == 1 else f"{word}es"


def _loss(trace: Summary, loss: dict[str, Any]) -> str:
    what = "" if loss["reason"] in _BUFFERS else f" {loss['kind']} record{'s' if loss['count'] != 1 else ''}"
    why = _LOST.get(loss["reason"], loss["reason"])
    first, last = (_since_start(trace, loss[key]) for key in ("first_host_ns", "last_host_ns"))
    return f"{units.count(loss['count'])}{what} {why} ({first} to {last})"


def _since_start(trace: Summary, host_ns: int) -> str:
    return f"{units.duration(max(host_ns - trace['span']['begin_host_ns'], 0))} in"


def _joins(launches: dict[str, dict[str, int]]) -> Iterator[str]:
    for kind, figures in launches.items():
        missing = figures["records"] - figures["joined"]
        if missing:
            yield f"{units.count(missing)} of {units.count(figures['records'])} {kind} without their call"
