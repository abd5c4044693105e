"""NVTX, end to end: libraries with NVTX's own header-only client, the real libgpuperf.so, stand-ins for CUDA."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAKES = Path(os.environ.get("GPUPERF_TEST_BUILD", ROOT / "build/release")) / "fakes"
CLIENT, CLIENT_2, TOOL = (FAKES / f"libnvtx_{name}.so" for name in ("client", "client_2", "tool"))

JOB = """
import ctypes, os, sys, threading
cuda = ctypes.CDLL("libcuda.so.1")
def work():
    assert cuda.cuInit(0) == 0
    context = ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    for _ in range(10):
        assert cuda.cuCtxSynchronize() == 0
def client(path):
    library = ctypes.CDLL(path)
    library.client_start.restype = ctypes.c_uint64
    library.client_end.argtypes = [ctypes.c_uint64]
    return library
"""
RANGES = """
work()
one, two = client(sys.argv[1]), client(sys.argv[2])
for _ in range(100):
    one.client_push(None, b"outer")
    two.client_push(b"library", b"inner")
    one.client_mark(b"mark")
    two.client_pop(b"library")
    one.client_pop(None)
ids = [two.client_start(b"across") for _ in range(20)]
ender = threading.Thread(target=lambda: [one.client_end(i) for i in ids])
ender.start()
ender.join()
"""


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *command: str | Path, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("GPUPERF_") and "INJECTION64" not in k}
        stand_ins = {"LD_LIBRARY_PATH": str(FAKES), "GPUPERF_CUPTI": str(FAKES / "libcupti.so.13")}
        done = subprocess.run(
            [str(part) for part in command],
            env=clean | stand_ins | environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, done.stderr
        return done

    def job(self, code: str, *arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
        """Under `gpuperf run`."""
        command = [sys.executable, "-m", "gpuperf", "run", "-o", "x.gpuperf", "--", sys.executable, "-c"]
        return self.run(*command, JOB + textwrap.dedent(code), CLIENT, CLIENT_2, *arguments, **more)

    def dumped(self, kind: str) -> list[dict[str, str]]:
        """Rows of one kind, by key; values as the dump writes them."""
        text = self.run(sys.executable, "-m", "gpuperf", "dump", "x.gpuperf").stdout
        lines = [line for line in text.splitlines() if line.split(" ", 1)[0] == kind]
        return [dict(word.split("=", 1) for word in line.split()[1:]) for line in lines]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if not CLIENT.exists():
        pytest.skip(f"{CLIENT} is not built (make test builds it where NVTX's headers are)")
    return Machine(tmp_path)


def check_ranges(machine: Machine) -> None:
    ranges = machine.dumped("annotation")
    assert Counter((row["name"], row.get("domain"), row["source"]) for row in ranges) == {
        ('"outer"', None, "nvtx"): 100,
        ('"inner"', '"library"', "nvtx"): 100,
        ('"across"', None, "nvtx_start_end"): 20,
    }
    begin = {kind: [int(row["begin_ns"]) for row in ranges if row["name"] == kind] for kind in ('"outer"', '"inner"')}
    assert all(outer <= inner for outer, inner in zip(begin['"outer"'], begin['"inner"'], strict=True))
    assert all(row["end_thread_iid"] != row["thread_iid"] for row in ranges if row["name"] == '"across"')
    assert Counter(row["name"] for row in machine.dumped("mark")) == {'"mark"': 100}
    assert machine.dumped("loss") == []


def test_two_libraries_of_an_unmodified_job(machine: Machine) -> None:
    machine.job(RANGES)
    check_ranges(machine)


def test_an_import_hears_the_same(machine: Machine) -> None:
    job = JOB + "import gpuperf\nassert gpuperf.start('x.gpuperf')\n" + RANGES + "gpuperf.stop()\n"
    machine.run(sys.executable, "-c", job, CLIENT, CLIENT_2)
    check_ranges(machine)


def test_another_tool_gets_its_events_too(machine: Machine) -> None:
    code = RANGES + "tool = ctypes.CDLL(sys.argv[3]); print(tool.tool_pops())"
    assert machine.job(code, TOOL, NVTX_INJECTION64_PATH=str(TOOL)).stdout.strip() == "100"
    check_ranges(machine)


def test_another_tool_that_is_gone_costs_nothing(machine: Machine) -> None:
    machine.job(RANGES, NVTX_INJECTION64_PATH="/no/such/tool.so")
    check_ranges(machine)


@pytest.mark.parametrize("variable", ["GPUPERF_NVTX", "flag"])
def test_turned_off(machine: Machine, variable: str) -> None:
    command = [sys.executable, "-m", "gpuperf", "run", "-o", "x.gpuperf"]
    flags = ["--no-nvtx"] if variable == "flag" else []
    environment = {} if variable == "flag" else {"GPUPERF_NVTX": "0"}
    machine.run(*command, *flags, "--", sys.executable, "-c", JOB + RANGES, CLIENT, CLIENT_2, **environment)
    assert machine.dumped("annotation") == machine.dumped("mark") == []
    assert len(machine.dumped("call")) > 5


def test_without_a_session_clients_run_as_ever(machine: Machine) -> None:
    code = JOB + "import gpuperf\none = client(sys.argv[1]); print(one.client_push(None, b'x'), one.client_pop(None))"
    assert machine.run(sys.executable, "-c", code, CLIENT).stdout == "-2 -2\n"


def test_a_forked_child_is_silent(machine: Machine) -> None:
    machine.job(
        """
        work()
        one = client(sys.argv[1])
        one.client_push(None, b"parent")
        child = os.fork()
        if child == 0:
            for _ in range(1000):
                one.client_push(None, b"child")
                one.client_pop(None)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        one.client_pop(None)
        """
    )
    assert [row["name"] for row in machine.dumped("annotation")] == ['"parent"']
