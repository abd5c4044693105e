"""`gpuperf doctor`: what gpuperf can show on this machine, and what is in its way.

The machine is asked by the library (`gpuperf_probe_json`), in a process of its own, because that initialises CUDA and a
sick driver may hang or crash there. The rest (environment, files, torch) is looked at here. Each line says what was
found and what follows from it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuperf import _libpath, options
from gpuperf._env import INJECTION, LIBRARY_NAME, NVTX_CHAIN, NVTX_INJECTION, is_on, is_ours
from gpuperf.cli.run import output_fault
from gpuperf.errors import OptionError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

HELP = "say what gpuperf can show on this machine, and what is in its way"

OK, NOTE, BAD = "ok", "note", "bad"
EXIT_NO_CAPTURE = 6
_PROBE_SECONDS = 60
_PARAMETERS = "/proc/driver/nvidia/params"
_LITTLE_SPACE = 2 << 30
_PROBE = "from gpuperf._libpath import load_core; print(load_core().probe_json())"
# Variables by which other tools attach themselves to a job; those that end with _ are prefixes.
_TOOLS = {
    "NSYS_": "Nsight Systems",
    "NV_TPS_": "Nsight Compute",
    "NV_NSIGHT_": "Nsight",
    "NV_SANITIZER_": "compute-sanitizer",
    "KINETO_USE_DAEMON": "Kineto's daemon (dynolog), which may start torch.profiler sessions unseen",
}
_PRELOADED = ("libToolsInjection", "libcupti", "libsanitizer", "libparcagpucupti", "libaccel-prof", "libxpu_timer")


class Check(NamedTuple):
    """One line.

    Attributes:
        name: what was looked at.
        status: "ok"; "note": good to know; "bad": no capture.
        found: what was found.
        effect: what follows for what gpuperf can show.
    """

    name: str
    status: str
    found: str
    effect: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Only --json."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(args: argparse.Namespace) -> int:
    """Prints the findings; 0 if a capture works."""
    machine = probe()
    checks = list(examine(machine, os.environ))
    works = all(check.status != BAD for check in checks)
    if args.json:
        result = {"capture": works, "checks": [check._asdict() for check in checks], "machine": machine}
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        _print_table(checks, works=works)
    return 0 if works else EXIT_NO_CAPTURE


def probe() -> dict[str, Any]:
    """What the library says of this machine; {"error": …} if it could not say anything.

    GPUPERF_DISABLE keeps our own injected library, if the caller's environment has one, from starting a session there.
    Another tool's is left in: the question is what a job with this environment would meet.
    """
    environment = os.environ | {"GPUPERF_DISABLE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE],
            env=environment,
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"asking the driver took more than {_PROBE_SECONDS} s; nvidia-smi may hang too"}
    if done.returncode < 0:
        return {"error": f"asking the driver crashed (signal {-done.returncode})"}
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    if done.returncode != 0 or not isinstance(answer, dict):
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"error": f"asking the driver failed: {last}"}
    return answer


def examine(machine: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Check]:
    """All findings, most important first."""
    if "error" in machine:
        yield Check("machine", BAD, str(machine["error"]), "no capture")
    else:
        yield from _hardware(machine)
    yield _permissions()
    yield from _environment(environment)
    yield _torch()
    yield _start_up_file()
    yield _output()


def _hardware(machine: Mapping[str, Any]) -> Iterator[Check]:
    driver = machine.get("driver") or {}
    cupti = machine.get("cupti") or {}
    slot = machine.get("slot") or {}
    nvml = machine.get("nvml") or {}
    gpus = machine.get("gpus") or []

    if gpus:
        names = [str(gpu.get("name", "?")) for gpu in gpus]
        found = ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))
        yield Check("GPU", OK, found, "kernels, copies and memsets of all of them")
    else:
        yield Check("GPU", BAD, "none can be used", "no capture: jobs run, gpuperf says so and writes nothing")
    if driver.get("error"):
        what = f"{driver['version']}: {driver['error']}" if driver.get("version") else str(driver["error"])
        yield Check("driver", BAD, what, "no capture; in a container, start it with its GPUs (--gpus all)")
    elif driver.get("version"):
        yield Check("driver", OK, f"{driver['version']} (CUDA {_cuda(driver.get('cuda', 0))})", "")
    else:
        yield Check("driver", BAD, "tells nothing of itself", "no capture")

    if cupti.get("path"):
        found = f"{cupti['path']}, version {_cupti(cupti.get('version', 0))}, found by {cupti.get('found_by', '?')}"
        yield Check("libcupti", OK, found, "a process that has loaded another one already uses that one")
    elif driver.get("error"):
        found = ", ".join(map(str, cupti.get("candidates") or ["none found"]))
        yield Check("libcupti", NOTE, found, "not looked into without a usable driver")
    else:
        what = cupti.get("error") or "not found"
        yield Check("libcupti", BAD, what, "no capture: pip install nvidia-cuda-cupti, or name one in GPUPERF_CUPTI")
    for sentence in machine.get("warnings") or []:
        yield Check("versions", NOTE, str(sentence), "see docs/limits.md")
    if gpus and cupti.get("path"):
        if slot.get("free"):
            yield Check("CUPTI's slot", OK, "free", "")
        elif slot.get("error"):
            yield Check("CUPTI's slot", BAD, f"CUPTI says {slot['error']}", "no capture with this libcupti and driver")
        else:
            holder = slot.get("holder") or "another tool"
            yield Check("CUPTI's slot", BAD, f"held: {holder}", "no capture beside it: run the job without that tool")
    gpm = nvml.get("gpm")
    found = "readable" if gpm else str(nvml.get("error") or "not supported by this GPU or driver")
    yield Check(
        "NVML GPU metrics", OK if gpm else NOTE, found, "not needed: gpuperf shows no SM or memory utilisation yet"
    )


def _cuda(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def _cupti(version: int) -> str:
    """cuptiGetVersion(): since CUDA 13 as 130001, a bare count before."""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}" if version > 10000 else str(version)


def _permissions() -> Check:
    try:
        with open(_PARAMETERS) as file:
            parameters = dict(line.split(":", 1) for line in file if ":" in line)
    except OSError:
        return Check("permissions", NOTE, f"{_PARAMETERS} cannot be read", "traces do not depend on it")
    if parameters.get("RmProfilingAdminOnly", "0").strip() == "1" and os.geteuid() != 0:
        found = "GPU performance counters are for administrators only"
        return Check("permissions", NOTE, found, "traces do not need them")
    return Check("permissions", OK, "GPU performance counters may be read", "")


def _nvtx(environment: Mapping[str, str]) -> Check:
    chained = environment.get(NVTX_CHAIN, "")
    holder = environment.get(NVTX_INJECTION, "")
    if not is_on("GPUPERF_NVTX", default=True):
        return Check("NVTX", NOTE, "GPUPERF_NVTX is off", "NVTX ranges are not recorded; gpuperf.annotate() is")
    if not is_ours(holder) and holder:
        chained = holder
    if not chained:
        return Check("NVTX", OK, "free", "ranges and marks of every library that does not use NVTX before gpuperf")
    if fault := _fault_of_library(chained):
        return Check("NVTX", NOTE, f"{chained} {fault}", "ranges are recorded, that tool gets none")
    return Check("NVTX", OK, f"shared with {chained}", "ranges and marks are recorded, and that tool gets them, too")


def _environment(environment: Mapping[str, str]) -> Iterator[Check]:
    holder = environment.get(INJECTION, "")
    if holder not in ("", "none") and not is_ours(holder):
        yield Check(INJECTION, BAD, holder, "`gpuperf run` refuses: CUDA loads one such library only; unset it")
    elif is_ours(holder) and (fault := _fault_of_library(holder)):
        yield Check(INJECTION, BAD, f"{holder} {fault}", f"nothing is loaded; use $(gpuperf lib): {_libpath.library()}")
    elif is_ours(holder):
        yield Check(INJECTION, OK, holder, "programs started here are captured also without `gpuperf run`")
    yield _nvtx(environment)
    entries = environment.get("LD_PRELOAD", "").replace(":", " ").split()
    for path in filter(is_ours, entries):
        if fault := _fault_of_library(path):
            yield Check(
                "LD_PRELOAD", BAD, f"{path} {fault}", f"nothing is loaded; use $(gpuperf lib): {_libpath.library()}"
            )
    preloaded = [path for path in entries if _is_tool(path)]
    if preloaded:
        yield Check(
            "LD_PRELOAD", NOTE, " ".join(preloaded), "may take CUPTI before gpuperf does; then there is no capture"
        )
    for name in sorted(environment):
        tool = next(
            (tool for key, tool in _TOOLS.items() if name == key or (key.endswith("_") and name.startswith(key))), ""
        )
        if tool:
            yield Check(name, NOTE, f"set, by {tool}", "may take CUPTI before gpuperf does; then there is no capture")
    if environment.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        yield Check(
            "CUDA_LAUNCH_BLOCKING",
            NOTE,
            "set",
            "every launch waits for its kernel: times are not those of a normal run",
        )
    if is_on("GPUPERF_DISABLE"):
        yield Check("GPUPERF_DISABLE", BAD, "set", "gpuperf does nothing at all")
    for sentence in options.unknown_variables(environment):
        yield Check("variable", NOTE, sentence, "")
    try:
        options.check({})
    except OptionError as error:
        yield Check("options", BAD, str(error), "jobs run without a capture, `gpuperf run` refuses to start them")


def _fault_of_library(path: str) -> str | None:
    """What keeps the loader from loading a shared library of this machine; None if nothing that can be seen."""
    try:
        with open(path, "rb") as file:
            head = file.read(20)
    except FileNotFoundError:
        return "does not exist"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if head[:4] != b"\x7fELF":
        return "is no shared library"
    with open("/proc/self/exe", "rb") as file:
        mine = file.read(20)
    # Class (32 or 64 bits) and machine.
    return None if (head[4], head[18:20]) == (mine[4], mine[18:20]) else "is of another architecture"


def _is_tool(path: str) -> bool:
    return os.path.basename(path).startswith(_PRELOADED)


def _torch() -> Check:
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return Check("torch", NOTE, "not in this Python", "any CUDA program is captured; torch is not needed")
    built = _torch_cuda()
    if built is None:
        return Check("torch", NOTE, f"{version}, built without CUDA", "jobs with this torch do not use the GPU")
    return Check("torch", OK, f"{version}, CUDA {built}", "")


def _torch_cuda() -> str | None:
    """The CUDA that torch was built with, out of torch/version.py: to import torch would take seconds."""
    for file in metadata.files("torch") or []:
        if str(file) == "torch/version.py":
            names: dict[str, Any] = {}
            for line in file.read_text().splitlines():
                key, equals, value = line.partition("=")
                if equals:
                    names[key.split(":")[0].strip()] = value.strip().strip("'\"")
            cuda = names.get("cuda")
            return None if cuda in (None, "None") else str(cuda)
    return None


def _start_up_file() -> Check:
    if any(os.path.isfile(os.path.join(folder, "gpuperf.pth")) for folder in sys.path):
        if is_on("GPUPERF_HOOKS", default=True):
            return Check(
                "start-up file",
                OK,
                "installed",
                "unmodified Python jobs tell versions and step aside for torch.profiler",
            )
        return Check("start-up file", NOTE, "turned off by GPUPERF_HOOKS", "no step aside for torch.profiler")
    found = "not in this Python's site-packages"
    return Check("start-up file", NOTE, found, "unmodified jobs of this Python do not step aside for torch.profiler")


def _output() -> Check:
    library = _libpath.library()
    if not os.path.isfile(library):
        return Check(
            "gpuperf", BAD, f"{library} is missing", f"install gpuperf again: it is not whole without {LIBRARY_NAME}"
        )
    output = options.from_environment(os.environ).get("output", ".")
    if output == os.devnull:
        return Check("output", NOTE, output, "live counts only, no trace")
    folder = os.path.abspath(output if output == "." else os.path.dirname(output) or ".")
    if "%" in folder:
        return Check("output", OK, folder, "known only in the job")
    fault = output_fault(folder)
    if fault:
        return Check("output", BAD, f"{folder} cannot be written: {fault}", "no trace there: name another file with -o")
    free = shutil.disk_usage(folder).free
    status = OK if free > _LITTLE_SPACE else NOTE
    return Check(
        "output", status, f"{folder}, {free / 1e9:.1f} GB free", "a trace takes about 16 MB per million kernels"
    )


def _print_table(checks: list[Check], *, works: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from gpuperf.report import text as report_text

    marks = {OK: Text("ok", "green"), NOTE: Text("note", "yellow"), BAD: Text("bad", "bold red")}
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("what", no_wrap=True)
    table.add_column("found", overflow="fold")
    table.add_column("effect", overflow="fold")
    for check in checks:
        table.add_row(marks[check.status], Text(check.name), Text(check.found), Text(check.effect))
    console = report_text.console()
    console.print(table)
    console.print()
    if works:
        console.print(Text("A capture works here: gpuperf run -- python train.py", "green"))
    else:
        console.print(Text("No capture here; the lines marked bad say why.", "bold red"))
