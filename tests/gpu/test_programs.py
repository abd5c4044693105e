"""Item 3: C++ CUDA programs without Python, equal to their own account of every call, per thread and in order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import support
import trace_decode

# libcupti 12.0 does not tell the kernel of such a call; the kernel's own record has it (docs/limits.md).
NAMELESS = "(cuLaunchKernelEx): kernel ''"


def hold(
    program: str,
    command: list[str],
    environment: dict[str, str],
    path: Path,
    figures: dict[str, Any],
    *,
    nameless: bool = False,
) -> None:
    """Runs a program that keeps a log and compares the trace with it."""
    log_file = path.with_suffix(".log")
    finished = support.succeed(support.run([*command, str(log_file)], **environment))
    assert finished.stdout == ""
    trace = support.whole(path)
    log = support.read_log(log_file)
    figures["program"] = program
    figures["threads"] = len(log)
    figures["calls in the program's log"] = sum(map(len, log.values()))
    figures["kernels, copies, memory sets"] = [
        trace_decode.rows(table) for table in (trace.kernels, trace.copies, trace.memsets)
    ]
    wrong = [line for line in support.hold_calls(trace, log) if not (nameless and NAMELESS in line)]
    figures["calls that differ"] = len(wrong)
    assert not wrong, "\n".join(wrong)
    wrong = support.hold_device_work(trace, log)
    figures["device records that differ"] = len(wrong)
    assert not wrong, "\n".join(wrong[:20])
    if program.startswith("launch_threads"):
        assert len(log) == 8


def injected(path: Path) -> dict[str, str]:
    """The environment that injects gpuperf."""
    return {"CUDA_INJECTION64_PATH": support.library(), "GPUPERF_OUTPUT": str(path)}


@pytest.mark.item(3)
@pytest.mark.parametrize("program", ["launch_threads", "copies", "driver_calls"])
@pytest.mark.parametrize("way", ["run", "injection"])
def test_equal_to_its_own_account(
    program: str, way: str, programs: Path, tmp_path: Path, figures: dict[str, Any]
) -> None:
    """Every call, operand, result and device record of a program that keeps its own log."""
    path, command = tmp_path / "trace.gpuperf", [str(programs / program)]
    if way == "run":
        hold(program, support.traced(path, command), {}, path, figures)
    else:
        hold(program, command, injected(path), path, figures)


@pytest.mark.item(3)
@pytest.mark.parametrize("program", ["launch_threads_12", "driver_calls"])
def test_with_the_libraries_of_cuda_12(program: str, programs: Path, tmp_path: Path, figures: dict[str, Any]) -> None:
    """The same with libcupti and libcudart of CUDA 12."""
    library = Path(os.environ.get("CUDA12_LIB", "")).resolve() / "libcupti.so.12"
    if not library.exists():
        pytest.skip("no libraries of CUDA 12: CUDA12_LIB names no folder with libcupti.so.12")
    path = tmp_path / "trace.gpuperf"
    hold(program, [str(programs / program)], injected(path) | {"GPUPERF_CUPTI": str(library)}, path, figures)
    run_info = trace_decode.read(path).run_info
    assert run_info is not None
    figures["libcupti"] = run_info["cupti"]["version"]
    assert run_info["cupti"]["path"] == str(library)


@pytest.mark.item(3)
def test_with_every_libcupti(programs: Path, tmp_path: Path, figures: dict[str, Any]) -> None:
    """The same with every libcupti in the subfolders of CUPTI_LIBRARIES: whatever its version, exact or a clear no."""
    libraries = sorted(Path(os.environ.get("CUPTI_LIBRARIES", "/nowhere")).resolve().glob("*/libcupti.so.*"))
    if not libraries:
        pytest.skip("CUPTI_LIBRARIES names no folder with <version>/libcupti.so.*")
    wrong = []
    for library in libraries:
        path = tmp_path / f"{library.parent.name}.gpuperf"
        found: dict[str, Any] = {}
        try:
            environment = injected(path) | {"GPUPERF_CUPTI": str(library)}
            nameless = library.parent.name == "12.0"
            hold("driver_calls", [str(programs / "driver_calls")], environment, path, found, nameless=nameless)
            run_info = trace_decode.read(path).run_info
            assert run_info is not None
            assert run_info["cupti"]["path"] == str(library)
            found["version"] = run_info["cupti"]["version"]
        except (AssertionError, OSError) as error:
            wrong.append(f"{library.parent.name}: {str(error)[:600]}")
        figures[library.parent.name] = found
    assert not wrong, "\n".join(wrong)
