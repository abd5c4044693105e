"""`gpuperf doctor`: what it finds, what it says follows, and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gpuperf.cli import doctor

HEALTHY: dict[str, Any] = {
    "driver": {"version": "580.159.04", "cuda": 13000, "error": ""},
    "gpus": [{"name": "NVIDIA H200"}, {"name": "NVIDIA H200"}, {"name": "NVIDIA A100"}],
    "cupti": {"path": "/x/libcupti.so.13", "version": 26, "found_by": "GPUPERF_CUPTI", "error": ""},
    "slot": {"free": True, "holder": "", "error": ""},
    "nvml": {"gpm": True, "error": ""},
    "warnings": [],
}


def examine(machine: dict[str, Any], **environment: str) -> dict[str, doctor.Check]:
    return {check.name: check for check in doctor.examine(machine, environment)}


def test_a_healthy_machine() -> None:
    checks = examine(HEALTHY)
    assert [check for check in checks.values() if check.status == doctor.BAD] == []
    assert checks["GPU"].found == "2 × NVIDIA H200, 1 × NVIDIA A100"
    assert checks["driver"].found == "580.159.04 (CUDA 13.0)"
    assert checks["libcupti"].found == "/x/libcupti.so.13, version 26, found by GPUPERF_CUPTI"
    newer = examine(HEALTHY | {"cupti": HEALTHY["cupti"] | {"version": 130001}})
    assert "version 13.0.1," in newer["libcupti"].found
    assert checks["CUPTI's slot"].found == "free"
    assert all(check.found for check in checks.values())


@pytest.mark.parametrize(
    ("part", "value", "name", "said"),
    [
        ("gpus", [], "GPU", "no capture"),
        ("driver", {"version": "", "error": "libcuda.so.1: cannot open"}, "driver", "cannot open"),
        ("cupti", {"path": "", "error": "no libcupti"}, "libcupti", "pip install"),
        ("slot", {"free": False, "holder": "Nsight Systems"}, "CUPTI's slot", "Nsight Systems"),
    ],
)
def test_what_prevents_a_capture_is_bad_and_says_what_to_do(part: str, value: object, name: str, said: str) -> None:
    check = examine(HEALTHY | {part: value})[name]
    assert check.status == doctor.BAD
    assert said in check.found + check.effect


def test_a_known_bad_version_is_a_note_with_its_sentence() -> None:
    checks = examine(HEALTHY | {"warnings": ["libcupti 13.1 crashes at stop"]})
    assert checks["versions"] == doctor.Check(
        "versions", doctor.NOTE, "libcupti 13.1 crashes at stop", "see docs/limits.md"
    )


def test_a_driver_that_cannot_be_asked_is_one_bad_line() -> None:
    checks = examine({"error": "asking the driver crashed (signal 11)"})
    assert checks["machine"].status == doctor.BAD
    assert "GPU" not in checks


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("CUDA_INJECTION64_PATH", "/opt/libToolsInjection64.so", doctor.BAD),
        ("CUDA_INJECTION64_PATH", "/nowhere/libgpuperf.so", doctor.BAD),
        ("LD_PRELOAD", "/opt/libToolsInjectionProxy64.so", doctor.NOTE),
        ("NSYS_PROFILING_SESSION_ID", "1", doctor.NOTE),
        ("KINETO_USE_DAEMON", "1", doctor.NOTE),
        ("CUDA_LAUNCH_BLOCKING", "1", doctor.NOTE),
    ],
)
def test_variables_that_are_in_the_way(name: str, value: str, status: str) -> None:
    assert examine(HEALTHY, **{name: value})[name].status == status
    assert name not in examine(HEALTHY)


def test_harmless_variables_are_not_mentioned() -> None:
    assert (
        examine(HEALTHY, LD_PRELOAD="/usr/lib/libjemalloc.so", CUDA_LAUNCH_BLOCKING="0").keys()
        == examine(HEALTHY).keys()
    )
    assert examine(HEALTHY, CUDA_INJECTION64_PATH="none").keys() == examine(HEALTHY).keys()


def test_nvtx_names_its_owner() -> None:
    assert examine(HEALTHY)["NVTX"].found == "free"
    assert "/opt/libnvtx.so" in examine(HEALTHY, NVTX_INJECTION64_PATH="/opt/libnvtx.so")["NVTX"].found


def test_an_unknown_variable_is_a_note() -> None:
    check = examine(HEALTHY, GPUPERF_OUTPT="x")["variable"]
    assert check.status == doctor.NOTE
    assert "GPUPERF_OUTPUT" in check.found


@pytest.mark.parametrize(("text", "status"), [("1", doctor.NOTE), ("0", doctor.OK), (None, doctor.NOTE)])
def test_permissions_are_read_from_the_driver(
    text: str | None, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = tmp_path / "params"
    if text is not None:
        parameters.write_text(f"EnableMSI: 1\nRmProfilingAdminOnly: {text}\n")
    monkeypatch.setattr(doctor, "_PARAMETERS", str(parameters))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    check = examine(HEALTHY)["permissions"]
    assert check.status == status


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed (signal 11)"),
        ("raise RuntimeError('no idea')", "RuntimeError: no idea"),
        ("print('not JSON')", "failed"),
        ("import time; time.sleep(60)", "took more than"),
    ],
)
def test_a_sick_driver_does_not_take_the_doctor_with_it(
    program: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_PROBE", program)
    monkeypatch.setattr(doctor, "_PROBE_SECONDS", 2)
    assert said in doctor.probe()["error"]


def run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpuperf", "doctor", *arguments],
        env=os.environ | environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )


def without_gpu(tmp_path: Path) -> dict[str, str]:
    """No driver, also on a machine that has one: its library's name is taken by a file that cannot be loaded."""
    (tmp_path / "libcuda.so.1").write_text("no library")
    return {"LD_LIBRARY_PATH": str(tmp_path)}


def test_json_on_a_machine_without_a_gpu(tmp_path: Path) -> None:
    done = run("--json", cwd=tmp_path, **without_gpu(tmp_path))
    assert (done.returncode, done.stderr) == (6, "")
    answer = json.loads(done.stdout)
    assert answer["capture"] is False
    checks = {check["name"]: check for check in answer["checks"]}
    assert checks["GPU"]["status"] == checks["driver"]["status"] == "bad"
    assert set(checks["GPU"]) == {"name", "status", "found", "effect"}
    assert answer["machine"]["gpus"] == []


def test_the_table_is_plain_text_when_nobody_watches(tmp_path: Path) -> None:
    done = run(cwd=tmp_path, **without_gpu(tmp_path), COLUMNS="200")
    assert (done.returncode, done.stderr) == (6, "")
    assert "\x1b" not in done.stdout
    assert "GPU" in done.stdout
    assert done.stdout.splitlines()[-1] == "No capture here; the lines marked bad say why."


NO_DEVICE = {"version": "580.1", "error": "cuInit says CUDA_ERROR_NO_DEVICE (100)"}
NO_DRIVER = {"error": "libcuda.so.1 cannot be loaded"}
BROKEN_SLOT = {"free": False, "holder": "", "error": "CUPTI_ERROR_NOT_INITIALIZED (15)"}


@pytest.mark.parametrize(
    ("machine", "line", "status", "says"),
    [
        ({"driver": NO_DEVICE, "gpus": []}, "driver", "bad", "580.1: cuInit says CUDA_ERROR_NO_DEVICE"),
        ({"driver": NO_DRIVER, "gpus": []}, "libcupti", "note", "/x/libcupti.so.13"),
        ({"slot": BROKEN_SLOT}, "CUPTI's slot", "bad", "CUPTI says CUPTI_ERROR_NOT_INITIALIZED"),
        ({"slot": {"free": False, "holder": "nsys", "error": ""}}, "CUPTI's slot", "bad", "held: nsys"),
    ],
)
def test_the_true_reason_is_named(machine: dict[str, object], line: str, status: str, says: str) -> None:
    unseen = {"cupti": {"error": "not looked into", "candidates": ["/x/libcupti.so.13"]}} if "gpus" in machine else {}
    check = examine(HEALTHY | unseen | machine)[line]
    assert check.status == status
    assert says in check.found


def test_values_that_do_not_fit_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUPERF_RING_BYTES", "many")
    check = examine(HEALTHY)["options"]
    assert check.status == doctor.BAD
    assert "many" in check.found


OTHER_ARCHITECTURE = b"\x7fELF\x01" + bytes(20)


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "does not exist"), (b"text", "is no shared library"), (OTHER_ARCHITECTURE, "of another architecture")],
)
def test_a_library_of_ours_that_cannot_be_loaded_is_named(content: bytes | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "libgpuperf.so"
    if content is not None:
        path.write_bytes(content)
    for variable in ("CUDA_INJECTION64_PATH", "LD_PRELOAD"):
        check = examine(HEALTHY, **{variable: str(path)})[variable]
        assert check.status == doctor.BAD
        assert says in check.found


def test_a_place_that_takes_no_file_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUPERF_OUTPUT", "/proc/x.gpuperf")
    assert examine(HEALTHY)["output"].status == doctor.BAD
