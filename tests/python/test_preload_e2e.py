"""LD_PRELOAD=$(gpuperf lib), end to end: the third way into unmodified jobs, and what it must leave alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import trace_decode

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GPUPERF_TEST_BUILD", ROOT / "build/release"))
FAKES = BUILD / "fakes"
CLIENT, TOOL = (FAKES / f"libnvtx_{name}.so" for name in ("client", "tool"))

JOB = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
context = ctypes.c_void_p()
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
for _ in range(10):
    assert cuda.cuCtxSynchronize() == 0
client = ctypes.CDLL(os.environ["CLIENT"])
for _ in range(5):
    client.client_push(None, b"range")
    client.client_pop(None)
print("out")
sys.exit(3)
"""


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        lib = subprocess.run([sys.executable, "-m", "gpuperf", "lib"], capture_output=True, text=True, check=True)
        self.library = lib.stdout.strip()

    def run(self, *command: str | Path, preload: str | None = None, code: int = 0, **more: str) -> tuple[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("GPUPERF_") and "INJECTION64" not in k}
        stand_ins = {"LD_LIBRARY_PATH": str(FAKES), "GPUPERF_CUPTI": str(FAKES / "libcupti.so.13")}
        more = {"GPUPERF_OUTPUT": "x.gpuperf", "CLIENT": str(CLIENT), "LD_PRELOAD": preload or self.library} | more
        done = subprocess.run(
            list(map(str, command)),
            env=clean | stand_ins | more,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, done.stderr
        return done.stdout, done.stderr

    def trace(self) -> trace_decode.Trace:
        assert [path.name for path in self.folder.glob("*.gpuperf")] == ["x.gpuperf"]
        return trace_decode.read(self.folder / "x.gpuperf")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if not CLIENT.exists():
        pytest.skip(f"{CLIENT} is not built (make test builds it where NVTX's headers are)")
    return Machine(tmp_path)


def recorded(trace: trace_decode.Trace) -> tuple[Counter[str], Counter[str]]:
    assert trace.clean
    return Counter(trace.calls["name"].tolist()), Counter(row["name"] for row in trace.annotations)


def test_the_three_ways_record_the_same(machine: Machine, tmp_path: Path) -> None:
    stdout, stderr = machine.run(sys.executable, "-c", JOB, code=3)
    assert stdout == "out\n"
    assert len(stderr.splitlines()) == 1
    calls, ranges = recorded(machine.trace())
    assert calls["cuCtxSynchronize"] == 10
    assert ranges == {"range": 5}
    versions = {entry["key"] for entry in (machine.trace().run_info or {})["versions"]}
    assert "python" in versions  # the start-up file's hooks are there
    for way in ("run", "import"):
        other = Machine(tmp_path / way)
        other.folder.mkdir()
        if way == "run":
            command = [sys.executable, "-m", "gpuperf", "run", "-o", "x.gpuperf", "--", sys.executable, "-c", JOB]
        else:
            command = [sys.executable, "-c", "import gpuperf\ngpuperf.start('x.gpuperf')\n" + JOB]
        assert other.run(*command, preload=" ", code=3)[0] == "out\n"
        assert recorded(other.trace()) == (calls, ranges)


def test_a_process_without_cuda_is_left_alone(machine: Machine) -> None:
    assert machine.run("/bin/sh", "-c", "echo out; env -i /bin/sh -c 'exit 4'", code=4) == ("out\n", "")
    assert list(machine.folder.iterdir()) == []


def test_a_static_program_runs(machine: Machine) -> None:
    source, program = machine.folder / "p.c", machine.folder / "p"
    source.write_text("int main(void) { return 5; }\n")
    compiler = shutil.which("cc") or shutil.which("gcc")
    made = (
        compiler and subprocess.run([compiler, "-static", "-o", program, source], capture_output=True).returncode == 0
    )
    if not made:
        pytest.skip("no static C library here")
    assert machine.run(program, code=5) == ("", "")


@pytest.mark.parametrize("order", ["before", "behind"])
def test_beside_another_preload(machine: Machine, order: str) -> None:
    both = [machine.library, str(TOOL)] if order == "behind" else [str(TOOL), machine.library]
    machine.run(sys.executable, "-c", JOB, preload=":".join(both), code=3)
    assert recorded(machine.trace())[1] == {"range": 5}


def test_another_nvtx_tool_is_chained(machine: Machine) -> None:
    job = JOB.replace('print("out")', 'print(ctypes.CDLL(os.environ["TOOL"]).tool_pops())')
    stdout, _ = machine.run(sys.executable, "-c", job, code=3, NVTX_INJECTION64_PATH=str(TOOL), TOOL=str(TOOL))
    assert stdout == "5\n"
    assert recorded(machine.trace())[1] == {"range": 5}


def test_disabled(machine: Machine) -> None:
    code = "import os; print([v for v in os.environ if 'INJECTION64' in v])"
    assert machine.run(sys.executable, "-c", code, GPUPERF_DISABLE="1") == ("[]\n", "")


def test_children_of_a_job_are_captured_too(machine: Machine) -> None:
    launcher = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', sys.argv[1]]).returncode)"
    machine.run(sys.executable, "-c", launcher, JOB, code=3)
    assert recorded(machine.trace())[0]["cuCtxSynchronize"] == 10
