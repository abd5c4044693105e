"""Both ways in, end to end: the installed gpuperf, the real libgpuperf.so, stand-ins for the CUDA libraries.

`gpuperf run` runs gpuperf-replay (tests/fakes) or a small Python job that calls the stand-in driver itself; the traces
are read with the independent decoder. Every claim about the Python face that needs a session is checked here.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import trace_decode  # noqa: E402

# A job that knows nothing of gpuperf: calls of the CUDA driver that a capture records.
JOB = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def work(calls=10):
    assert cuda.cuInit(0) == 0
    context = ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    for _ in range(calls):
        assert cuda.cuCtxSynchronize() == 0
"""
RANKS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


class Machine:
    """A folder to work in on a machine with one (stand-in) GPU."""

    def __init__(self, fakes: Path, folder: Path) -> None:
        self.fakes = fakes
        self.folder = folder
        self.replay = str(fakes / "gpuperf-replay")

    def run(self, *command: str | Path, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GPUPERF_", "CUDA_")) and name not in RANKS
        }
        # Named too, because gpuperf looks into a CUDA toolkit before it asks the loader.
        stand_ins = {"LD_LIBRARY_PATH": str(self.fakes), "GPUPERF_CUPTI": str(self.fakes / "libcupti.so.13")}
        done = subprocess.run(
            [str(part) for part in command],
            env=inherited | stand_ins | environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, done.stderr
        return done

    def gpuperf(self, *arguments: str | Path, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "gpuperf", *arguments, code=code, **environment)

    def python(self, job: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-c", JOB + textwrap.dedent(job), code=code, **environment)

    def traces(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if ".gpuperf" in path.name)

    def read(self, name: str) -> trace_decode.Trace:
        return trace_decode.read(self.folder / name)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    fakes = Path(os.environ.get("GPUPERF_TEST_BUILD", ROOT / "build/release")) / "fakes"
    if not (fakes / "gpuperf-replay").exists():
        pytest.skip(f"{fakes}/gpuperf-replay is not built (make test builds it)")
    return Machine(fakes, tmp_path)


def versions(trace: trace_decode.Trace) -> dict[str, str]:
    assert trace.run_info is not None
    return {entry["key"]: entry["value"] for entry in trace.run_info["versions"]}


def calls(trace: trace_decode.Trace) -> int:
    return trace.calls["name"].tolist().count("cuCtxSynchronize")


# --- gpuperf run ---------------------------------------------------------------------------------------------------


def test_a_program_that_knows_nothing_of_us(machine: Machine) -> None:
    done = machine.gpuperf(
        "run", "-o", "x.gpuperf", "--", machine.replay, "--json", "played.json", "--exit-with", "3", code=3
    )
    assert done.stdout == ""
    trace = machine.read("x.gpuperf")
    assert trace.clean
    assert trace_decode.rows(trace.kernels) > 100
    assert machine.traces() == ["x.gpuperf"]
    assert (machine.folder / "x.gpuperf").stat().st_mode & 0o777 == 0o600
    # One line: the file, its size, its cost, what was lost, what to do next.
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("gpuperf: ")
    assert "x.gpuperf" in done.stderr
    assert re.search(r"\d (B|kB|KB|KiB|MB|MiB)", done.stderr)
    assert "gpuperf report" in done.stderr


def test_quiet_is_quiet(machine: Machine) -> None:
    done = machine.gpuperf("run", "-q", "-o", "x.gpuperf", machine.replay, "--json", "played.json")
    assert (done.stdout, done.stderr) == ("", "")
    assert machine.traces() == ["x.gpuperf"]


def test_the_default_name_says_script_rank_and_pid(machine: Machine) -> None:
    (machine.folder / "train.py").write_text(JOB + "work()\nimport os; print(os.getpid())\n")
    pid = machine.gpuperf("run", "train.py", RANK="5").stdout.strip()
    assert machine.traces() == [f"gpuperf-train-r5-{pid}.gpuperf"]


def test_the_name_is_found_where_the_run_began(machine: Machine) -> None:
    (machine.folder / "sub").mkdir()
    machine.gpuperf("run", "-o", "x.gpuperf", "-c", JOB + "import os; os.chdir('sub'); work()")
    assert machine.traces() == ["x.gpuperf"]


def test_patterns_are_looked_up_in_the_job(machine: Machine) -> None:
    import socket

    job = f"import os; os.environ['RANK'] = '7'\n{JOB}work(); print(os.getpid())"
    pid = machine.gpuperf("run", "-o", "%h-r%r-%p.gpuperf", "-c", job).stdout.strip()
    assert machine.traces() == [f"{socket.gethostname()}-r7-{pid}.gpuperf"]


def test_several_processes_share_one_plain_name(machine: Machine) -> None:
    script = f"{machine.replay} --json a.json; {machine.replay} --json b.json"
    machine.gpuperf("run", "-o", "x.gpuperf", "--", "sh", "-c", script)
    names = machine.traces()
    assert len(names) == 2
    assert names[1] == "x.gpuperf"
    assert re.fullmatch(r"x-r\d+-\d+\.gpuperf", names[0])
    first, second = (machine.read(name) for name in names)
    assert trace_decode.rows(first.kernels) == trace_decode.rows(second.kernels) > 0


def test_a_process_without_cuda_writes_nothing(machine: Machine) -> None:
    done = machine.gpuperf("run", "-o", "x.gpuperf", "-c", "print('no GPU used')")
    assert (done.stdout, done.stderr) == ("no GPU used\n", "")
    assert machine.traces() == []


def test_an_old_file_is_refused_and_replaced_only_if_asked(machine: Machine) -> None:
    job = ("-o", "x.gpuperf", machine.replay, "--json", "played.json")
    machine.gpuperf("run", *job)
    before = (machine.folder / "x.gpuperf").read_bytes()
    refused = machine.gpuperf("run", *job, code=2)
    assert len(refused.stderr.splitlines()) == 1
    assert (machine.folder / "x.gpuperf").read_bytes() == before
    machine.gpuperf("run", "-f", *job)
    assert machine.traces() == ["x.gpuperf"]
    assert machine.read("x.gpuperf").header["trace_uuid"] != trace_decode.loads(before).header["trace_uuid"]


def test_without_the_launcher_an_old_file_costs_the_capture_and_not_the_job(machine: Machine) -> None:
    (machine.folder / "x.gpuperf").write_text("precious")
    os.utime(machine.folder / "x.gpuperf", ns=(0, 0))
    library = machine.gpuperf("lib").stdout.strip()
    done = machine.run(
        machine.replay, "--json", "played.json", "--exit-with", "4",
        code=4, CUDA_INJECTION64_PATH=library, GPUPERF_OUTPUT="x.gpuperf",
    )  # fmt: skip
    assert (machine.folder / "x.gpuperf").read_text() == "precious"
    assert len(done.stderr.splitlines()) == 1
    assert "x.gpuperf" in done.stderr
    assert machine.traces() == ["x.gpuperf"]


def test_without_a_gpu_the_job_runs_on(machine: Machine) -> None:
    job = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"
    done = machine.gpuperf("run", "-o", "x.gpuperf", "-c", job, GPUPERF_FAKE_CUINIT="100")
    assert done.stdout == "100\n"
    assert machine.traces() == []


def test_disabled_captures_nothing(machine: Machine) -> None:
    done = machine.gpuperf("run", "-o", "x.gpuperf", "-c", JOB + "work(); print('ran')", GPUPERF_DISABLE="1")
    assert (done.stdout, done.stderr) == ("ran\n", "")
    assert machine.traces() == []


def test_disabled_is_silent_about_wrong_variables(machine: Machine) -> None:
    library = machine.gpuperf("lib").stdout.strip()
    wrong = {"GPUPERF_FLUSH_MS": "soon", "GPUPERF_LOG": "loud", "GPUPERF_OUTPT": "x", "GPUPERF_HOOKS": "maybe"}
    done = machine.python("work(); print('ran')", CUDA_INJECTION64_PATH=library, GPUPERF_DISABLE="1", **wrong)
    assert (done.stdout, done.stderr) == ("ran\n", "")
    assert machine.traces() == []


def test_an_empty_output_variable_is_the_default_name_and_dev_null_is_no_file(machine: Machine) -> None:
    library = machine.gpuperf("lib").stdout.strip()
    machine.python("work()", CUDA_INJECTION64_PATH=library, GPUPERF_OUTPUT="/dev/null")
    machine.gpuperf("run", "-o", "", "-c", JOB + "work()")
    assert machine.traces() == []
    machine.python("work()", CUDA_INJECTION64_PATH=library, GPUPERF_OUTPUT="", GPUPERF_FLUSH_MS="")
    assert len(machine.traces()) == 1
    assert machine.traces()[0].startswith("gpuperf-python-c-r0-")


def test_an_unmodified_python_job_gets_what_an_import_gives(machine: Machine) -> None:
    machine.gpuperf("run", "-o", "hooks.gpuperf", "-c", JOB + "work()")
    with_hooks = machine.read("hooks.gpuperf")
    assert with_hooks.clean
    assert versions(with_hooks)["python"] == sys.version.split()[0]
    machine.gpuperf("run", "-o", "plain.gpuperf", "--no-hooks", "-c", JOB + "work()")
    without = machine.read("plain.gpuperf")
    assert "python" not in versions(without)
    assert calls(without) == calls(with_hooks) == 10


def test_a_version_that_comes_late_is_in_the_trace_of_a_killed_process(machine: Machine) -> None:
    job = """
import os, gpuperf
from gpuperf._libpath import load_core
work()
assert gpuperf.flush()  # the devices are told
load_core().set_version("torch", "9.9")  # as the hook does when the job imports torch
work()
assert gpuperf.flush()
os._exit(0)
"""
    machine.gpuperf("run", "-o", "x.gpuperf", "-c", JOB + job)
    trace = machine.read("x.gpuperf")
    assert not trace.clean
    assert versions(trace)["torch"] == "9.9"
    assert trace.run_info is not None
    assert trace.run_info["devices"]


def test_a_python_that_has_no_gpuperf_is_captured_without_hooks(machine: Machine) -> None:
    """-S: site-packages are not read, so neither is the start-up file, and `import gpuperf` fails."""
    machine.gpuperf("run", "-q", "-o", "x.gpuperf", "--", sys.executable, "-S", "-c", JOB + "work()")
    trace = machine.read("x.gpuperf")
    assert trace.clean
    assert calls(trace) == 10
    assert "python" not in versions(trace)


def test_the_trace_is_whole_though_the_interpreter_leaves_by_sys_exit(machine: Machine) -> None:
    machine.gpuperf("run", "-q", "-o", "x.gpuperf", "-c", JOB + "import sys; work(); sys.exit(9)", code=9)
    trace = machine.read("x.gpuperf")
    assert trace.clean
    assert calls(trace) == 10


def test_spawned_children_have_traces_of_their_own(machine: Machine) -> None:
    (machine.folder / "train.py").write_text(
        f"""{JOB}
import multiprocessing
if __name__ == "__main__":
    work(3)
    child = multiprocessing.get_context("spawn").Process(target=work, args=(5,))
    child.start()
    child.join()
    assert child.exitcode == 0
"""
    )
    machine.gpuperf("run", "-q", "-o", "x.gpuperf", "train.py")
    names = machine.traces()
    assert len(names) == 2
    assert sorted(calls(machine.read(name)) for name in names) == [3, 5]


def test_an_uncaught_exception_leaves_a_whole_trace(machine: Machine) -> None:
    done = machine.gpuperf("run", "-o", "x.gpuperf", "-c", JOB + "work(); raise RuntimeError('the job failed')", code=1)
    assert "RuntimeError: the job failed" in done.stderr
    trace = machine.read("x.gpuperf")
    assert trace.clean
    assert calls(trace) == 10


# --- With the real torch (a CPU build) -----------------------------------------------------------------------------

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch (CPU)")


@needs_torch
@pytest.mark.parametrize("way", ["run", "import"])
def test_a_torch_profiler_session_in_the_middle(machine: Machine, way: str) -> None:
    job = """
import torch
work()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as cpu_only:
    torch.ones(3) + 1
work()
# A CPU build has no sessions with the GPU: given the activities, the rest is torch's own.
session = torch.autograd.profiler.profile(use_kineto=True)
session.kineto_activities = {torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA}
with session:
    torch.ones(3) + 1
    work()
assert len(cpu_only.events()) == len(session.function_events) > 0
print(torch.__version__)
"""
    if way == "run":
        done = machine.gpuperf("run", "-o", "x.gpuperf", "-c", JOB + job, PYTHONWARNINGS="ignore")
    else:
        done = machine.python(f"import gpuperf; gpuperf.start('x.gpuperf')\n{job}", PYTHONWARNINGS="ignore")
    assert sum("torch.profiler session" in line for line in done.stderr.splitlines()) == 1
    trace = machine.read("x.gpuperf")
    assert trace.clean
    assert calls(trace) == 20
    assert [outage["detail"] for outage in trace.outages] == ["torch.profiler session"]
    assert versions(trace)["torch"] == done.stdout.strip()


@needs_torch
@pytest.mark.long
def test_a_dataloader_with_forked_workers(machine: Machine) -> None:
    job = """
import torch
class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        return torch.full((4,), index)
work()
import gpuperf
loader = torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=4, multiprocessing_context="fork")
for epoch in range(2):
    for batch in loader:
        work(1)
        gpuperf.step(samples=len(batch))
"""
    machine.gpuperf("run", "-o", "x.gpuperf", "-c", JOB + job)
    assert machine.traces() == ["x.gpuperf"]
    trace = machine.read("x.gpuperf")
    assert trace.clean
    assert calls(trace) == 10 + 16
    assert [step["samples"] for step in trace.steps] == [8] * 16
    assert trace.lost() == {}


@needs_torch
@pytest.mark.long
@pytest.mark.parametrize("inside", [False, True])
def test_torchrun_around_or_inside(machine: Machine, inside: bool) -> None:
    """gpuperf run -- torchrun …, and torchrun --no-python gpuperf run …: one trace a rank, none of the launcher."""
    (machine.folder / "train.py").write_text(JOB + "work()\n")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ours = [sys.executable, "-m", "gpuperf", "run", "-q", "-o", "x-r%r.gpuperf", "--"]
    script = [sys.executable, "train.py"]
    machine.run(*([*torchrun, "--no-python", *ours, *script] if inside else [*ours, *torchrun, "--no-python", *script]))
    assert machine.traces() == ["x-r0.gpuperf", "x-r1.gpuperf"]
    for rank, name in enumerate(machine.traces()):
        trace = machine.read(name)
        assert trace.clean
        assert trace.run_info is not None
        assert (trace.run_info["rank"], trace.run_info["world_size"]) == (rank, 2)
        assert calls(trace) == 10


# --- import gpuperf ------------------------------------------------------------------------------------------------


def test_markers_reach_the_trace(machine: Machine) -> None:
    done = machine.python(
        """
        import threading, gpuperf
        assert gpuperf.start("x.gpuperf") is True
        assert gpuperf.state == "running" and gpuperf.output_path is None
        gpuperf.start()
        work()
        gpuperf.step()
        with gpuperf.annotate("outer"):
            with gpuperf.annotate("inner"):
                gpuperf.mark("here")
        gpuperf.counter("loss", 0.5)
        gpuperf.step(samples=32, tokens=4096)
        thread = threading.Thread(target=lambda: gpuperf.mark("elsewhere"))
        thread.start(); thread.join()
        assert gpuperf.flush()
        stats = gpuperf.stats()
        assert stats.steps == 2 and stats.calls >= 10 and stats.lost == 0, stats
        assert gpuperf.output_path.endswith("/x.gpuperf")
        gpuperf.stop()
        assert gpuperf.state == "stopped"
        gpuperf.stop()
        gpuperf.step(); gpuperf.mark("after the end")
        """
    )
    assert len(done.stderr.splitlines()) == 1
    assert "2 steps" in done.stderr
    trace = machine.read("x.gpuperf")
    assert trace.clean
    assert [(step["index"], step["samples"], step["tokens"]) for step in trace.steps] == [
        (0, 0, 0),  # not given
        (1, 32, 4096),
    ]
    assert sorted(annotation["name"] for annotation in trace.annotations) == ["inner", "outer"]
    inner, outer = sorted(trace.annotations, key=lambda annotation: annotation["name"])
    assert outer["begin_host_ns"] <= inner["begin_host_ns"]
    assert sorted(mark["name"] for mark in trace.marks) == ["elsewhere", "here"]
    assert [(counter["name"], counter["value"]) for counter in trace.counters] == [("loss", 0.5)]
    assert versions(trace)["python"] == sys.version.split()[0]
    assert trace.lost() == {}


def test_both_ways_in_record_the_same(machine: Machine) -> None:
    job = "work(20)"
    machine.gpuperf("run", "-o", "run.gpuperf", "-c", JOB + job)
    machine.python(f"import gpuperf; gpuperf.start('import.gpuperf'); {job}")
    by_run, by_import = machine.read("run.gpuperf"), machine.read("import.gpuperf")
    assert calls(by_run) == calls(by_import) == 20
    assert by_run.clean
    assert by_import.clean
    assert versions(by_run) == versions(by_import)


@pytest.mark.parametrize("first", ["start", "work"])
def test_a_start_and_a_stop_of_the_script_leave_the_run_s_capture_alone(first: str, machine: Machine) -> None:
    job = """
import gpuperf
assert gpuperf.start("y.gpuperf") is True
work()
gpuperf.stop()
work()
gpuperf.step()
with gpuperf.annotate("later"):
    assert gpuperf.start() is True
    work()
gpuperf.stop()
"""
    machine.gpuperf("run", "-o", "x.gpuperf", "-c", JOB + ("work()" if first == "work" else "") + job)
    assert machine.traces() == ["x.gpuperf"]
    trace = machine.read("x.gpuperf")
    assert calls(trace) == (40 if first == "work" else 30)
    assert len(trace.steps) == 1
    assert [row["name"] for row in trace.annotations] == ["later"]


def test_a_start_under_run_changes_nothing(machine: Machine) -> None:
    job = """
import gpuperf
work()
with gpuperf.profile("y.gpuperf") as session:
    work()
gpuperf.flush()
print(session.output_path)
"""
    done = machine.gpuperf("run", "-o", "x.gpuperf", "-c", JOB + job)
    assert done.stdout.strip() == str(machine.folder / "x.gpuperf")
    assert machine.traces() == ["x.gpuperf"]
    assert calls(machine.read("x.gpuperf")) == 20
    assert len(done.stderr.splitlines()) == 1  # a script may serve both ways; so no word about its own output


def test_live_state_only_writes_nothing(machine: Machine) -> None:
    done = machine.python(
        """
        import gpuperf
        assert gpuperf.start(None)
        work()
        gpuperf.step()
        gpuperf.stop()
        assert gpuperf.output_path is None
        print(gpuperf.stats().steps, gpuperf.stats().calls >= 10)
        """
    )
    assert done.stdout.split() == ["1", "True"]
    assert list(machine.folder.iterdir()) == []


def test_profile_twice_makes_two_traces(machine: Machine) -> None:
    machine.python(
        """
        import gpuperf
        work(1)
        for name in ("a.gpuperf", "b.gpuperf"):
            with gpuperf.profile(name, quiet=True) as session:
                work(3)
            assert session.output_path.endswith(name)
        work(1)
        """
    )
    assert machine.traces() == ["a.gpuperf", "b.gpuperf"]
    for name in machine.traces():
        trace = machine.read(name)
        assert trace.clean
        assert calls(trace) == 3


def test_mistakes_raise_and_leave_the_file_alone(machine: Machine) -> None:
    (machine.folder / "old.gpuperf").write_text("precious")
    os.utime(machine.folder / "old.gpuperf", ns=(0, 0))
    done = machine.python(
        """
        import os, gpuperf
        for output, error in (("old.gpuperf", FileExistsError), ("no/folder/x.gpuperf", OSError)):
            try:
                gpuperf.start(output)
            except error as caught:
                print(type(caught).__name__, os.path.dirname(output) in str(caught))
            else:
                print("nothing raised")
            assert gpuperf.state == "idle"
        assert gpuperf.start("old.gpuperf", force=True, quiet=True)
        work()
        """
    )
    assert done.stdout.splitlines() == ["OutputExistsError True", "OutputUnwritableError True"]
    assert calls(machine.read("old.gpuperf")) == 10


def test_an_unknown_variable_is_said_once_either_way(machine: Machine) -> None:
    by_run = machine.gpuperf("run", "-q", "-c", JOB + "work()", GPUPERF_OUTPT="x")
    by_import = machine.python("import gpuperf; gpuperf.start('x.gpuperf', quiet=True); work()", GPUPERF_OUTPT="x")
    for done in (by_run, by_import):
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert "GPUPERF_OUTPT" in done.stderr


def test_a_bad_value_in_the_environment_costs_the_capture_and_not_the_job(machine: Machine) -> None:
    library = machine.gpuperf("lib").stdout.strip()
    for variables in ({}, {"CUDA_INJECTION64_PATH": library}):
        start = "" if variables else "import gpuperf; assert gpuperf.start() is False"
        done = machine.python(f"{start}\nwork(); print('ran')", GPUPERF_RING_BYTES="5000", **variables)
        assert done.stdout == "ran\n"
        assert len(done.stderr.splitlines()) == 1
        assert "power of two" in done.stderr
    done = machine.python(
        """
        import gpuperf
        try:
            gpuperf.start("x.gpuperf", ring_bytes=5000)
        except ValueError as error:
            print(error)
        """
    )
    assert "power of two" in done.stdout
    assert done.stderr == ""
    assert machine.traces() == []


def test_yielding_closes_the_trace_and_says_so_once(machine: Machine) -> None:
    """What the torch.profiler hook does, without torch."""
    done = machine.python(
        """
        import gpuperf
        from gpuperf.hooks import torch_profiler
        class Activity:
            name = "CUDA"
        gpuperf.start("x.gpuperf")
        work()
        torch_profiler._step_aside("config", {Activity})
        torch_profiler._step_aside("config", {Activity})
        assert gpuperf.state == "yielded", gpuperf.state
        work()
        gpuperf.stop()
        """
    )
    said = [line for line in done.stderr.splitlines() if "torch.profiler session" in line]
    assert len(said) == 1
    trace = machine.read("x.gpuperf")
    assert trace.clean
    assert calls(trace) == 10
    assert [outage["detail"] for outage in trace.outages] == ["torch.profiler session"]


def test_a_forked_child_leaves_the_parents_trace_alone(machine: Machine) -> None:
    done = machine.python(
        """
        import multiprocessing, gpuperf
        context = multiprocessing.get_context("fork")

        def child(queue):
            gpuperf.step(); gpuperf.mark("child")
            answer = [gpuperf.state, gpuperf.start("child.gpuperf"), gpuperf.flush()]
            gpuperf.stop()
            queue.put(answer)

        gpuperf.start("x.gpuperf")
        work()
        queue = context.SimpleQueue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        print(*queue.get())
        process.join()
        gpuperf.step()
        work()
        """
    )
    assert done.stdout.split() == ["forked", "False", "False"]
    assert machine.traces() == ["x.gpuperf"]
    trace = machine.read("x.gpuperf")
    assert trace.clean
    assert calls(trace) == 20
    assert len(trace.steps) == 1
    assert trace.marks == []


def test_a_child_forked_before_a_session_may_have_its_own(machine: Machine) -> None:
    done = machine.python(
        """
        import multiprocessing, gpuperf
        context = multiprocessing.get_context("fork")

        def child():
            assert gpuperf.start("child.gpuperf", quiet=True), gpuperf.state
            work()
            gpuperf.stop()

        gpuperf.step()
        process = context.Process(target=child)
        process.start()
        process.join()
        print(process.exitcode)
        """
    )
    assert done.stdout.split() == ["0"], done.stderr
    assert calls(machine.read("child.gpuperf")) == 10


def test_a_child_forked_in_the_middle_of_a_start_is_silent(machine: Machine) -> None:
    done = machine.python(
        """
        import os, signal, threading, time, gpuperf
        starting = threading.Thread(target=lambda: gpuperf.start("x.gpuperf"))
        starting.start()
        time.sleep(0.3)
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends it if anything of ours waits for a lock that the parent holds
            print(gpuperf.stats(), gpuperf.start("child.gpuperf"), flush=True)
            gpuperf.step()
            gpuperf.stop()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        starting.join()
        work()
        gpuperf.stop()
        """,
        GPUPERF_FAKE_CUINIT_MS="1000",
    )
    assert "False" in done.stdout
    assert machine.traces() == ["x.gpuperf"]
    assert machine.read("x.gpuperf").clean


def test_a_child_forked_after_a_start_that_failed_may_have_its_own(machine: Machine) -> None:
    machine.python(
        """
        import os, signal, gpuperf
        os.environ["GPUPERF_FAKE_CUINIT"] = "100"
        assert gpuperf.start("parent.gpuperf") is False
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            del os.environ["GPUPERF_FAKE_CUINIT"]
            assert gpuperf.start("child.gpuperf") is True
            work()
            gpuperf.stop()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert machine.traces() == ["child.gpuperf"]
    assert machine.read("child.gpuperf").clean


def test_cuda_initialised_in_one_thread_while_another_starts(machine: Machine) -> None:
    machine.python(
        """
        import signal, threading, time, gpuperf
        signal.alarm(30)
        initialising = threading.Thread(target=work)
        initialising.start()
        time.sleep(0.2)
        assert gpuperf.start("x.gpuperf") is True
        initialising.join()
        work()
        gpuperf.stop()
        """,
        GPUPERF_FAKE_CUINIT_MS="1000",
        GPUPERF_OUTPUT="injected.gpuperf",
        CUDA_INJECTION64_PATH=machine.gpuperf("lib").stdout.strip(),
    )
    assert machine.traces() == ["injected.gpuperf"]
    assert calls(machine.read("injected.gpuperf")) >= 10


def test_another_holder_of_cupti_costs_one_line(machine: Machine) -> None:
    done = machine.python(
        """
        import ctypes, gpuperf
        cupti = ctypes.CDLL("libcupti.so.13")
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
        callback = kind(lambda *_: None)
        handle = ctypes.c_void_p()
        assert cuda.cuInit(0) == 0
        assert cupti.cuptiSubscribe(ctypes.byref(handle), callback, None) == 0
        print(gpuperf.start("x.gpuperf"), gpuperf.state)
        """
    )
    assert done.stdout.split() == ["False", "idle"]
    assert len(done.stderr.splitlines()) == 1
    assert machine.traces() == []


def test_the_doctor_of_this_machine(machine: Machine) -> None:
    import json

    done = machine.gpuperf("doctor", "--json", GPUPERF_FAKE_GPUS="2")
    answer: dict[str, Any] = json.loads(done.stdout)
    checks = {check["name"]: check for check in answer["checks"]}
    assert answer["capture"] is True
    assert checks["GPU"]["found"] == "2 × NVIDIA H200"
    assert str(machine.fakes) in checks["libcupti"]["found"]
    assert checks["CUPTI's slot"]["found"] == "free"
    assert checks["driver"]["status"] == "ok"
    assert machine.traces() == []


@pytest.mark.parametrize(("before", "after"), [("", 0), ("other_client_has_loaded_it()", 39)])
def test_at_exit_a_client_that_came_after_us_is_detached(machine: Machine, before: str, after: int) -> None:
    """Where gpuperf was the first to load CUPTI, CUPTI's own exit function would run after that client's data are gone.

    39: the slot is still held. A client whose library was there first ends by itself, in the right order.
    """
    told = machine.python(
        f"""
        import ctypes, os
        def other_client_has_loaded_it():
            ctypes.CDLL(os.environ["GPUPERF_CUPTI"])
        {before}
        import gpuperf
        from gpuperf._libpath import load_core
        assert gpuperf.start("t.gpuperf", quiet=True)
        work()
        load_core().yield_("a torch.profiler session")
        cupti = ctypes.CDLL(os.environ["GPUPERF_CUPTI"])
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
        callback = kind(lambda *_: None)
        def subscribe():
            return cupti.cuptiSubscribe(ctypes.byref(ctypes.c_void_p()), callback, None)
        first, second = subscribe(), subscribe()
        load_core().at_exit()
        print(first, second, subscribe())
        """
    )
    assert told.stdout.split() == ["0", "39", str(after)]
