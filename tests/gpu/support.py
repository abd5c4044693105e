"""What the GPU tests share: starting jobs in all ways, and holding traces against what the jobs say of themselves."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import trace_decode

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
JOBS = PROGRAMS / "jobs.py"

LAUNCH = 1  # CallKind
GRAPH_LAUNCH = 2
YIELDED = 2  # OutageReason


# ------------------------------------------------------------------------------------------------------- the machine


@cache
def why_no_gpu() -> str | None:
    """None if there is a GPU. Asked in another process: this one must stay free of CUDA."""
    code = "import ctypes, sys; sys.exit(ctypes.CDLL('libcuda.so.1').cuInit(0) != 0)"
    try:
        status = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120).returncode
    except subprocess.TimeoutExpired:
        return "the CUDA driver does not answer"
    return None if status == 0 else "no GPU: the CUDA driver cannot be initialised"


def tree_hash() -> str:
    """Commit of the tree that is tested: GPUPERF_TREE, else git's answer."""
    if given := os.environ.get("GPUPERF_TREE"):
        return given
    try:
        command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def command_line(arguments: Sequence[str]) -> str:
    """How the suite was started, without the place that the results went to."""
    kept = list(arguments)
    if "--gpu-json" in kept:
        at = kept.index("--gpu-json")
        del kept[at : at + 2]
    return "python -m pytest " + shlex.join(kept)


def shortened(reason: str, begin: int = 4, end: int = 6) -> str:
    """The first and the last lines of a long text, without the path of this checkout."""
    lines = [line for line in reason.replace(f"{ROOT}/", "").splitlines() if line.strip()]
    return "\n".join(lines if len(lines) <= begin + end else [*lines[:begin], "…", *lines[-end:]])


def smi(*arguments: str) -> str:
    """What nvidia-smi says, "" if it cannot."""
    try:
        return subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def machine() -> dict[str, Any]:
    """Card, driver and versions."""
    cards = smi("--query-gpu=name,driver_version,memory.total", "--format=csv,noheader").strip().splitlines()
    code = (
        "import json, sys; out = {'python': sys.version.split()[0]}\n"
        "try:\n import torch; out['torch'] = torch.__version__; out['cuda'] = torch.version.cuda\n"
        "except ImportError: pass\n"
        "import gpuperf; out['gpuperf'] = gpuperf.__version__\n"
        "print(json.dumps(out))"
    )
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    versions = json.loads(asked.stdout) if asked.returncode == 0 else {"python": platform.python_version()}
    return {
        "cards": [card.split(", ")[0] for card in cards],
        "driver": cards[0].split(", ")[1] if cards else "unknown",
        "cores": os.cpu_count(),
        **versions,
    }


# -------------------------------------------------------------------------------------------------------------- jobs


@cache
def gpuperf_command() -> list[str]:
    """The command line tool of the gpuperf that this Python imports."""
    beside = Path(sys.executable).with_name("gpuperf")
    return [str(beside)] if beside.exists() else [shutil.which("gpuperf") or "gpuperf"]


@cache
def library() -> str:
    """Path of libgpuperf.so, as `gpuperf lib` prints it."""
    return subprocess.run([*gpuperf_command(), "lib"], capture_output=True, text=True, check=True).stdout.strip()


def environment(**extra: str) -> dict[str, str]:
    """The environment without anything that steers gpuperf or injects."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("GPUPERF_") and not k.endswith("INJECTION64_PATH")}
    return clean | extra


def traced(output: Path | str, command: Sequence[str | Path]) -> list[str]:
    """`command` under `gpuperf run`."""
    return [*gpuperf_command(), "run", "-o", str(output), "--", *map(str, command)]


def run(command: Sequence[str | Path], timeout: float = 150, **extra: str) -> subprocess.CompletedProcess[str]:
    """Runs a job to its end with its output captured."""
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=timeout, env=environment(**extra)
    )


def job(*arguments: object) -> list[str]:
    """A command line of programs/jobs.py."""
    return [sys.executable, str(JOBS), *map(str, arguments)]


def succeed(finished: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """Asserts exit code 0 and shows the output otherwise."""
    assert finished.returncode == 0, (
        f"exit code {finished.returncode}\n{finished.stdout[-1500:]}\n{finished.stderr[-3000:]}"
    )
    return finished


def whole(path: Path) -> trace_decode.Trace:
    """Reads a trace that must be complete: closed cleanly, nothing lost, everything joined."""
    trace = trace_decode.read(path)
    assert trace.clean, f"{path.name}: not closed cleanly, {trace.tail_bytes} bytes of tail"
    assert trace.lost() == {}, f"{path.name}: losses by reason {trace.lost()}"
    return trace


# ------------------------------------------------------------------------------------------------- what a trace holds


def base_name(function: str) -> str:
    """API function without what distinguishes its versions: cudaLaunchKernel_ptsz, cuMemAlloc_v2 …"""
    return re.sub(r"(_v\d+|_ptsz|_ptds)+$", "", function)


def by_name(table: trace_decode.Table) -> Counter[str]:
    """Number of rows per name."""
    return Counter(map(base_name, table["name"].tolist())) if table else Counter()


def launches(trace: trace_decode.Trace) -> npt.NDArray[np.bool_]:
    """Which calls put exactly one kernel on a stream."""
    calls = trace.calls
    mask: npt.NDArray[np.bool_] = (calls["kind"] == LAUNCH) & (calls["capture"] == 0) & (calls["result_code"] == 0)
    return mask


def join_share(trace: trace_decode.Trace) -> tuple[int, int]:
    """(kernels outside graphs, those of them whose launch is in the trace)."""
    outside = (trace.kernels["graph_id"] == 0) & (trace.kernels["graph_node_id"] == 0)
    known = trace.calls["correlation"][trace.calls["kind"] == LAUNCH]
    return int(outside.sum()), int(np.isin(trace.kernels["correlation"][outside], known).sum())


@cache
def _demangler() -> Any:
    function = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    function.restype = ctypes.c_void_p
    return function


@cache
def demangle(name: str) -> str:
    """A kernel's name as torch.profiler shows it."""
    status = ctypes.c_int(0)
    pointer = _demangler()(name.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not pointer:
        return name
    text = ctypes.cast(pointer, ctypes.c_char_p).value or b""
    ctypes.CDLL(None).free(ctypes.c_void_p(pointer))
    return text.decode()


# --------------------------------------------------------------------------- traces against the programs' own accounts

# Calls that keep their size in a struct or in several arrays: the call does not tell it, the device record does.
SIZE_NOT_TOLD = re.compile(r"3D|Batch|cuMemcpy2D|cuMemcpy3D")


def read_log(path: Path) -> dict[int, list[dict[str, Any]]]:
    """A program's own account (programs/call_log.h): calls per thread, in order."""
    log: dict[int, list[dict[str, Any]]] = {}
    for line in path.read_text().splitlines():
        call = json.loads(line)
        log.setdefault(call["tid"], []).append(call)
    return log


def calls_of(trace: trace_decode.Trace, tid: int, names: set[str]) -> list[dict[str, Any]]:
    """A thread's calls of these functions, in the order in which they were made."""
    calls = trace.calls
    rows = np.flatnonzero(calls["tid"] == tid)
    rows = rows[np.argsort(calls["enter"][rows], kind="stable")]
    return [
        {key: column[row] for key, column in calls.items()} for row in rows if base_name(calls["name"][row]) in names
    ]


def hold_calls(trace: trace_decode.Trace, log: Mapping[int, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Differences between the calls of a trace and a program's own account: order, function, operands, result."""
    names = {call["api"] for calls in log.values() for call in calls}
    wrong: list[str] = []
    for tid, expected in log.items():
        actual = calls_of(trace, tid, names)
        if len(actual) != len(expected):
            wrong.append(f"thread {tid}: {len(actual)} calls in the trace, {len(expected)} made")
        for at, (got, made) in enumerate(zip(actual, expected, strict=False)):
            problem = _difference(got, made)
            if problem:
                wrong.append(f"thread {tid}, call {at} ({made['api']}): {problem}")
                if len(wrong) > 20:
                    return wrong
    return wrong


def _difference(got: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    api = made["api"]
    told: list[tuple[str, Any, Any]] = [
        ("function", base_name(got["name"]), api),
        ("result", int(got["result_code"]), made["result"]),
    ]
    if made["symbol"]:
        told.append(("kernel", got["function"], made["symbol"]))
    if got["has_stream"]:
        told.append(("stream", int(got["stream_handle"]), made["stream"]))
    if made["event"]:
        told.append(("event", int(got["event_handle"]), made["event"]))
    if made["device_work"] in ("copy", "memset"):
        size = int(got["copy_bytes"])
        if size or not SIZE_NOT_TOLD.search(api):
            told.append(("bytes", size, made["bytes"]))
        addresses = {key: int(got[f"copy_{key}"]) for key in ("destination", "source")}
        told += [(key, address, made[key]) for key, address in addresses.items() if address and made[key]]
    if got["has_memory"]:
        told += [
            (what, int(got[f"memory_{what}"]), made[key])
            for what, key in (("bytes", "bytes"), ("address", "destination"))
            if made[key] and int(got[f"memory_{what}"])
        ]
    return ", ".join(f"{what} {a!r}, expected {b!r}" for what, a, b in told if a != b)


def hold_device_work(trace: trace_decode.Trace, log: Mapping[int, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Differences between the device records of a trace and a program's own account, joined by correlation id."""
    names = {call["api"] for calls in log.values() for call in calls}
    tables = {"kernel": trace.kernels, "copy": trace.copies, "memset": trace.memsets}
    rows: dict[str, dict[int, list[int]]] = {}
    for work, table in tables.items():
        rows[work] = {}
        for row, correlation in enumerate(table["correlation"].tolist() if table else ()):
            rows[work].setdefault(correlation, []).append(row)
    wrong: list[str] = []
    seen = Counter[str]()
    for tid, expected in log.items():
        for got, made in zip(calls_of(trace, tid, names), expected, strict=False):
            work = made["device_work"]
            if not work or made["result"] != 0:
                continue
            mine = rows[work].get(int(got["correlation"]), [])
            seen[work] += len(mine)
            label = f"{made['api']} of thread {tid}, correlation {got['correlation']}"
            if not mine:
                wrong.append(f"{label}: no {work} record")
            elif work == "kernel":
                table = trace.kernels
                if len(mine) != 1 or table["name"][mine[0]] != made["symbol"]:
                    wrong.append(f"{label}: {len(mine)} kernels, {table['name'][mine[0]]}, expected {made['symbol']}")
                elif made["grid"] and table["grid_x"][mine[0]] != made["grid"]:
                    wrong.append(f"{label}: grid {table['grid_x'][mine[0]]}, expected {made['grid']}")
            else:
                moved = sum(int(tables[work]["bytes"][row]) for row in mine)
                if moved != made["bytes"]:
                    wrong.append(f"{label}: {moved} bytes, expected {made['bytes']}")
    for work, table in tables.items():
        if seen[work] != trace_decode.rows(table):
            wrong.append(
                f"{trace_decode.rows(table)} {work} records in the trace, {seen[work]} belong to the calls made"
            )
    return wrong


LOOP_PERIOD = 1009


def hold_loop(trace: trace_decode.Trace | None, launched: int, stamps: npt.NDArray[np.uint64]) -> dict[str, Any]:
    """Holds the trace of an endless loop that was killed against its progress file.

    Calls and kernels must be the first ones of what was launched, without a hole: kernel i has the grid that launch i
    had, and belongs to call i. "missing …, s": from the first launch that the trace lacks to the last one made.
    """
    table_calls, kernels = (trace.calls, trace.kernels) if trace is not None else ({}, {})
    made = np.zeros(0, dtype=np.int64)
    if table_calls:
        order = np.argsort(table_calls["enter"], kind="stable")
        made = table_calls["correlation"][order][table_calls["kind"][order] == LAUNCH]
    grids, joined = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if kernels:
        order = np.argsort(kernels["start"], kind="stable")
        grids, joined = kernels["grid_x"][order], kernels["correlation"][order]

    def missing(count: int) -> float:
        if count >= launched:
            return 0.0
        # Launches whose stamps were overwritten are longer ago than any bar.
        first = max(count, launched - len(stamps))
        return (int(stamps[(launched - 1) % len(stamps)]) - int(stamps[first % len(stamps)])) / 1e9

    wrong = []
    if trace is not None and trace.lost():
        wrong.append(f"losses by reason {trace.lost()}")
    expected = 1 + np.arange(len(grids)) % LOOP_PERIOD
    if (grids != expected).any():
        wrong.append(f"kernel {int(np.argmax(grids != expected))} is not the next launch")
    both = min(len(made), len(joined))
    if not np.array_equal(made[:both], joined[:both]):
        wrong.append("kernels and launches do not join in order")
    if len(made) > launched or len(grids) > launched:
        wrong.append(f"{len(made)} launches and {len(grids)} kernels, {launched} were made")
    return {
        "launches": launched,
        "calls": len(made),
        "kernels": len(grids),
        "missing calls, s": missing(len(made)),
        "missing kernels, s": missing(len(grids)),
        "tail bytes": trace.tail_bytes if trace is not None else 0,
        "wrong": wrong,
    }
