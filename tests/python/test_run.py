"""`gpuperf run`: what the job gets, what is refused before it starts, and that the job stays its own."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from gpuperf import _libpath, options
from gpuperf.cli import _Parser
from gpuperf.cli import run as run_module
from hypothesis import given
from hypothesis import strategies as st

CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("GPUPERF_", "CUDA_INJECTION")) and name not in run_module._WORLD_SIZES
}
SHOW = "import json, os, sys; print(json.dumps([sys.argv, dict(os.environ)]))"
OURS = ("GPUPERF_", "CUDA_INJECTION")
NO_DRIVER = (
    b"gpuperf: no NVIDIA driver here (libcuda.so.1): the job runs, and there will be no trace"
    b" (gpuperf doctor says more)\n"
)


def gpuperf(
    *arguments: str | Path, cwd: Path | None = None, stdin: bytes | None = None, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "gpuperf", *map(str, arguments)],
        env=CLEAN | environment,
        cwd=cwd,
        input=stdin,
        capture_output=True,
        timeout=60,
    )
    done.stderr = done.stderr.replace(NO_DRIVER, b"")  # see test_a_machine_without_a_driver…
    return done


def job_environment(*options: str | Path, cwd: Path, **environment: str) -> dict[str, str]:
    """The variables of ours that a job sees under `gpuperf run OPTIONS`."""
    done = gpuperf("run", *options, "--", sys.executable, "-c", SHOW, cwd=cwd, **environment)
    assert done.returncode == 0, done.stderr
    seen: dict[str, str] = json.loads(done.stdout)[1]
    return {name: value for name, value in seen.items() if name.startswith(OURS)}


# --- The job is its own --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 3, 6, 255])
def test_the_exit_code_is_the_jobs(code: int, tmp_path: Path) -> None:
    done = gpuperf("run", "sh", "-c", f"exit {code}", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


@pytest.mark.parametrize("driver", [True, False])
def test_a_machine_without_a_driver_is_told_before_the_job_runs(driver: bool, tmp_path: Path) -> None:
    if driver:
        command = ["cc", "-shared", "-o", str(tmp_path / "libcuda.so.1"), "-x", "c", "/dev/null"]
        subprocess.run(command, check=True, timeout=60)
    elif Path("/proc/driver/nvidia").exists():
        pytest.skip("there is a driver")
    for flags, told in (([], not driver), (["-q"], False)):
        done = subprocess.run(
            [sys.executable, "-m", "gpuperf", "run", *flags, "sh", "-c", "echo job >&2; exit 3"],
            env=CLEAN | {"LD_LIBRARY_PATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, timeout=60,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (3, (NO_DRIVER if told else b"") + b"job\n")


def test_a_trace_that_a_job_still_writes_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.gpuperf"
    path.write_bytes(b"a trace")
    os.utime(path, (1, 1))
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "still being written" in refused("-f", "-o", "x.gpuperf", *JOB, cwd=tmp_path, code=2)
    assert path.read_bytes() == b"a trace"
    assert gpuperf("run", "-f", "-o", "x.gpuperf", "true", cwd=tmp_path).returncode == 0
    assert not path.exists()


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("sub/", "it names a folder"),
        ("a" * 250 + ".gpuperf", "the name is too long"),
        ("/proc/x.gpuperf", "/proc"),
        (b"no\xff/x.gpuperf", "no such folder"),
    ],
)
def test_names_that_cannot_be_are_refused(output: str | bytes, says: str, tmp_path: Path) -> None:
    assert says in refused("-o", os.fsdecode(output), *JOB, cwd=tmp_path, code=2)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_signal_reaches_the_job_and_ends_it_as_without_us(number: signal.Signals, tmp_path: Path) -> None:
    code = "import sys, time; print('ready', flush=True); time.sleep(60)"
    command = [sys.executable, "-m", "gpuperf", "run", "--", sys.executable, "-c", code]
    with subprocess.Popen(command, env=CLEAN, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == b"ready\n"
        job.send_signal(number)
        assert job.wait(timeout=30) == -number


def test_bytes_pass_through_untouched(tmp_path: Path) -> None:
    data = bytes(range(256)) * 64
    done = gpuperf("run", "sh", "-c", "cat; echo problem >&2", cwd=tmp_path, stdin=data)
    assert (done.returncode, done.stdout, done.stderr) == (0, data, b"problem\n")


def test_the_job_has_our_process_id_and_the_default_signals(tmp_path: Path) -> None:
    code = "import os, signal; print(os.getpid()); print(open('/proc/self/status').read())"
    command = [sys.executable, "-m", "gpuperf", "run", "-c", code]
    with subprocess.Popen(command, env=CLEAN, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as job:
        output = job.communicate(timeout=60)[0].splitlines()
    assert int(output[0]) == job.pid

    # Python sets SIGPIPE to "ignored" and a program inherits that: `gpuperf run -- yes | head` would never end well.
    shown = gpuperf("run", "cat", "/proc/self/status", cwd=tmp_path).stdout.decode()
    ignored = int(next(line for line in shown.splitlines() if line.startswith("SigIgn")).split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1))


def test_the_jobs_arguments_are_not_read_by_us(tmp_path: Path) -> None:
    tricky = ["-o", "--help", "-m", "--", "", "a b", "-q", "--force"]
    for separator in ([], ["--"]):
        done = gpuperf("run", "-q", *separator, sys.executable, "-c", SHOW, *tricky, cwd=tmp_path)
        assert json.loads(done.stdout)[0] == ["-c", *tricky]
    assert list(tmp_path.iterdir()) == []


# --- Forms of the command ------------------------------------------------------------------------------------------


def test_python_may_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SHOW)
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__main__.py").write_text(SHOW)
    for command in (["train.py"], ["-m", "package"], ["-c", SHOW]):
        done = gpuperf("run", "-q", *command, "--lr", "3", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        arguments, environment = json.loads(done.stdout)
        assert arguments[1:] == ["--lr", "3"]
        assert environment["CUDA_INJECTION64_PATH"] == _libpath.library()


def test_a_script_with_a_first_line_of_its_own_runs_by_it(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("#!/bin/sh\necho I am a shell script\n")
    script.chmod(0o755)
    assert gpuperf("run", "./train.py", cwd=tmp_path).stdout == b"I am a shell script\n"


@pytest.mark.parametrize(
    ("arguments", "own", "command"),
    [
        (["python", "t.py"], [], ["python", "t.py"]),
        (["--", "python"], [], ["python"]),
        (["-q", "python", "-q"], ["-q"], ["python", "-q"]),
        (["-o", "python", "t.py"], ["-o", "python"], ["t.py"]),
        (["-opython", "t.py"], ["-opython"], ["t.py"]),
        (["-qfo", "x", "t.py"], ["-qfo", "x"], ["t.py"]),
        (["--output=x", "t.py"], ["--output=x"], ["t.py"]),
        (["--output", "x", "--no-hooks", "t.py"], ["--output", "x", "--no-hooks"], ["t.py"]),
        (["-q", "-m", "package"], ["-q"], ["-m", "package"]),
        (["-c", "code", "--help"], [], ["-c", "code", "--help"]),
        (["--bogus", "t.py"], ["--bogus"], ["t.py"]),
        (["--help"], ["--help"], []),
        (["-o"], ["-o"], []),
        ([], [], []),
    ],
)
def test_the_command_line_is_cut_where_the_job_begins(arguments: list[str], own: list[str], command: list[str]) -> None:
    assert run_module.split(parser(), arguments) == (own, command)


def parser() -> _Parser:
    made = _Parser(prog="gpuperf run", allow_abbrev=False)
    run_module.add_arguments(made)
    return made


OWN = st.sampled_from([["-q"], ["-f"], ["-o", "x"], ["-ox"], ["--no-hooks"], ["--ring-bytes", "1M"], ["--log=debug"]])
WORDS = st.lists(st.text(min_size=1), max_size=4)


@given(st.lists(OWN, max_size=5), WORDS)
def test_whatever_follows_the_two_dashes_is_the_jobs(own: list[list[str]], command: list[str]) -> None:
    ours = [word for group in own for word in group]
    assert run_module.split(parser(), [*ours, "--", *command]) == (ours, command)
    parser().parse_args(ours)


@given(st.lists(OWN, max_size=5), st.text(min_size=1).filter(lambda word: not word.startswith("-")), WORDS)
def test_the_first_word_that_is_no_flag_begins_the_job(own: list[list[str]], program: str, rest: list[str]) -> None:
    ours = [word for group in own for word in group]
    assert run_module.split(parser(), [*ours, program, *rest]) == (ours, [program, *rest])


# --- What the job is told ------------------------------------------------------------------------------------------


def test_the_variables_of_a_plain_run(tmp_path: Path) -> None:
    before = time.time_ns()
    seen = job_environment(cwd=tmp_path)
    start_ns = int(seen.pop("GPUPERF_RUN_START_NS"))
    assert before - 100_000_000 <= start_ns <= time.time_ns()
    assert seen == {
        "CUDA_INJECTION64_PATH": _libpath.library(),
        "GPUPERF_OUTPUT": str(tmp_path / "gpuperf-%s-r%r-%p.gpuperf"),
    }


def test_flags_become_variables_and_beat_them(tmp_path: Path) -> None:
    seen = job_environment(
        "-q", "-f", "-o", "run.gpuperf", "--no-hooks", "--no-cmdline", "--ring-bytes", "1M",
        cwd=tmp_path, GPUPERF_RING_BYTES="4096", GPUPERF_FLUSH_MS="50", GPUPERF_OUTPUT="/elsewhere/x.gpuperf",
    )  # fmt: skip
    del seen["GPUPERF_RUN_START_NS"], seen["CUDA_INJECTION64_PATH"]
    assert seen == {
        "GPUPERF_OUTPUT": str(tmp_path / "run.gpuperf"),
        "GPUPERF_QUIET": "1",
        "GPUPERF_FORCE": "1",
        "GPUPERF_HOOKS": "0",
        "GPUPERF_CMDLINE": "0",
        "GPUPERF_RING_BYTES": "1048576",
        "GPUPERF_FLUSH_MS": "50",
    }


@pytest.mark.parametrize("none", ["", "/dev/null"])
def test_no_output_is_told_in_a_way_that_a_variable_can(none: str, tmp_path: Path) -> None:
    assert job_environment("-f", "-o", none, cwd=tmp_path)["GPUPERF_OUTPUT"] == "/dev/null"
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("variable", [option.env for option in options.table()])
def test_an_empty_variable_is_none(variable: str, tmp_path: Path) -> None:
    plain = job_environment(cwd=tmp_path)
    seen = job_environment(cwd=tmp_path, **{variable: ""})
    ours = ("GPUPERF_OUTPUT", "GPUPERF_RUN_START_NS", "CUDA_INJECTION64_PATH")
    assert seen.keys() == plain.keys() | {variable}
    assert seen["GPUPERF_OUTPUT"] == plain["GPUPERF_OUTPUT"]
    assert int(seen["GPUPERF_RUN_START_NS"]) > 0
    if variable not in ours:
        assert seen[variable] == ""  # the library's to read, which says the same (tests/cpp/options_test.cc)


def test_a_folder_with_a_percent_sign_is_not_read_as_a_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "50%power"
    folder.mkdir()
    assert job_environment("-o", "x.gpuperf", cwd=folder)["GPUPERF_OUTPUT"] == f"{tmp_path}/50%%power/x.gpuperf"
    (folder / "x.gpuperf").touch()
    assert "50%power/x.gpuperf exists" in refused("-o", "x.gpuperf", *JOB, cwd=folder, code=2)
    gpuperf("run", "-f", "-o", "x.gpuperf", *JOB, cwd=folder)
    assert [path.name for path in folder.iterdir()] == ["ran"]


@pytest.mark.parametrize("value", ["", "none"])
def test_an_empty_injection_counts_as_unset(value: str, tmp_path: Path) -> None:
    assert job_environment(cwd=tmp_path, CUDA_INJECTION64_PATH=value)["CUDA_INJECTION64_PATH"] == _libpath.library()


def test_a_run_inside_a_run_is_fine(tmp_path: Path) -> None:
    done = gpuperf(
        "run", "-o", "outer.gpuperf", sys.executable, "-m", "gpuperf", "run", "-o", "inner.gpuperf", "-c", SHOW,
        cwd=tmp_path,
    )  # fmt: skip
    assert json.loads(done.stdout)[1]["GPUPERF_OUTPUT"] == str(tmp_path / "inner.gpuperf")


def test_disabled_wins(tmp_path: Path) -> None:
    (tmp_path / "old.gpuperf").touch()
    seen = job_environment("-f", "-o", "old.gpuperf", cwd=tmp_path, GPUPERF_DISABLE="1")
    assert seen == {"GPUPERF_DISABLE": "1"}
    assert (tmp_path / "old.gpuperf").exists()


def test_disabled_is_silent_about_all_else(tmp_path: Path) -> None:
    wrong = {"GPUPERF_FLUSH_MS": "soon", "GPUPERF_HOOKS": "maybe", "GPUPERF_OUTPT": "x", "GPUPERF_OUTPUT": "/no/where"}
    done = gpuperf("run", "echo", "ran", cwd=tmp_path, GPUPERF_DISABLE="1", **wrong)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"ran\n", b"")


def test_an_unknown_variable_is_named_once_and_the_job_runs(tmp_path: Path) -> None:
    done = gpuperf("run", "echo", "ran", cwd=tmp_path, GPUPERF_OUTPT="x")
    assert (done.returncode, done.stdout) == (0, b"ran\n")
    assert done.stderr.decode().splitlines() == [
        "gpuperf: there is no variable GPUPERF_OUTPT; did you mean GPUPERF_OUTPUT? (ignored)"
    ]


# --- What is refused before the job starts -------------------------------------------------------------------------


def refused(*arguments: str | Path, cwd: Path, code: int, **environment: str) -> str:
    """The one line that `gpuperf run ARGUMENTS` says; the job `touch ran` must not have run."""
    done = gpuperf("run", *arguments, cwd=cwd, **environment)
    assert done.returncode == code, done.stderr
    assert done.stdout == b""
    assert not (cwd / "ran").exists()
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


JOB = ("--", "touch", "ran")


def test_another_tool_in_the_job_is_named(tmp_path: Path) -> None:
    other = "/opt/nvidia/libToolsInjection64.so"
    line = refused(*JOB, cwd=tmp_path, code=6, CUDA_INJECTION64_PATH=other)
    assert other in line
    assert "unset CUDA_INJECTION64_PATH" in line


def test_a_file_that_stands_before_the_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old.gpuperf").write_text("precious")
    line = refused("-o", "old.gpuperf", *JOB, cwd=tmp_path, code=2)
    assert str(tmp_path / "old.gpuperf") in line
    assert "-f" in line
    assert (tmp_path / "old.gpuperf").read_text() == "precious"


def test_a_link_to_nowhere_is_a_file_that_stands_there(tmp_path: Path) -> None:
    (tmp_path / "link.gpuperf").symlink_to(tmp_path / "gone")
    assert "link.gpuperf exists" in refused("-o", "link.gpuperf", *JOB, cwd=tmp_path, code=2)


def test_force_removes_the_old_trace_with_its_parts_and_nothing_else(tmp_path: Path) -> None:
    for name in (
        "old.gpuperf",
        "old.gpuperf.0001",
        "old.gpuperf.0002",
        "old.gpuperf.txt",
        "old.gpuperf.00011",
        "other",
    ):
        (tmp_path / name).touch()
    done = gpuperf("run", "-f", "-o", "old.gpuperf", *JOB, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.gpuperf.00011", "old.gpuperf.txt", "other", "ran"]


def test_parts_alone_are_a_trace_that_stands_there(tmp_path: Path) -> None:
    (tmp_path / "old.gpuperf.0002").write_text("precious")
    (tmp_path / "a-r3.gpuperf.0001").write_text("precious")
    assert "old.gpuperf.0002 exists" in refused("-o", "old.gpuperf", *JOB, cwd=tmp_path, code=2)
    assert "a-r3.gpuperf.0001 exists" in refused("-o", "a-r%r.gpuperf", *JOB, cwd=tmp_path, code=2)
    assert (tmp_path / "old.gpuperf.0002").read_text() == "precious"
    assert gpuperf("run", "-f", "-o", "old.gpuperf", *JOB, cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-r3.gpuperf.0001", "ran"]


def test_force_removes_files_only(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gpuperf")
    (tmp_path / "x.gpuperf.0001").mkdir()
    for name, said in (("pipe.gpuperf", "pipe.gpuperf: it is no file"), ("x.gpuperf", "x.gpuperf.0001: it is no file")):
        assert said in refused("-f", "-o", name, *JOB, cwd=tmp_path, code=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe.gpuperf", "x.gpuperf.0001"]
    run_module._remove(str(tmp_path / "gone"))  # by a sibling that was faster: nothing is left to do


@pytest.mark.parametrize("bad", ["nosuchprogram", "./nosuchprogram"])
def test_force_removes_nothing_if_the_job_cannot_start(bad: str, tmp_path: Path) -> None:
    (tmp_path / "old.gpuperf").touch()
    line = refused("-f", "-o", "old.gpuperf", bad, cwd=tmp_path, code=127)
    assert line == f"gpuperf: {bad}: command not found"
    assert (tmp_path / "old.gpuperf").exists()


def test_a_pattern_is_looked_at_as_far_as_it_is_known(tmp_path: Path) -> None:
    for name in ("a-r3.gpuperf", f"b-{socket.gethostname()}.gpuperf", "c-r0-12.gpuperf", "d-rx.gpuperf"):
        (tmp_path / name).touch()
    assert "a-r3.gpuperf exists" in refused("-o", "a-r%r.gpuperf", *JOB, cwd=tmp_path, code=2)
    assert "exists" in refused("-o", "b-%h.gpuperf", *JOB, cwd=tmp_path, code=2)
    for free in ("c-r%r-%p.gpuperf", "d-r%r.gpuperf", "e-%h.gpuperf"):
        assert job_environment("-o", free, cwd=tmp_path)["GPUPERF_OUTPUT"] == str(tmp_path / free)
    # Which of them this run replaces is known only in its processes: nothing is removed beforehand.
    assert job_environment("-f", "-o", "a-r%r.gpuperf", cwd=tmp_path)["GPUPERF_FORCE"] == "1"
    assert (tmp_path / "a-r3.gpuperf").exists()


def test_ranks_of_one_launcher_do_not_refuse_each_others_files(tmp_path: Path) -> None:
    """torchrun --no-python gpuperf run -o x.gpuperf …: the file of a sibling that was faster is no old file."""
    launcher = (
        "import subprocess, sys, time; time.sleep(0.1); open('x.gpuperf', 'w').close(); time.sleep(0.1);"
        "sys.exit(subprocess.call([sys.executable, '-m', 'gpuperf', 'run', '-o', 'x.gpuperf', '--', 'touch', 'ran']))"
    )
    command = [sys.executable, "-c", launcher]
    done = subprocess.run(command, env=CLEAN | {"WORLD_SIZE": "2"}, cwd=tmp_path, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr.replace(NO_DRIVER, b"")) == (0, b"")
    (tmp_path / "ran").unlink()
    (tmp_path / "x.gpuperf").unlink()
    (tmp_path / "x.gpuperf").touch()
    os.utime(tmp_path / "x.gpuperf", ns=(0, 0))
    done = subprocess.run(
        [sys.executable, "-m", "gpuperf", "run", "-o", "x.gpuperf", *JOB],
        env=CLEAN | {"WORLD_SIZE": "2"}, cwd=tmp_path, capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2


def test_an_output_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    assert "no such folder" in refused("-o", "no/where/x.gpuperf", *JOB, cwd=tmp_path, code=2)
    assert "is a folder" in refused("-o", ".", *JOB, cwd=tmp_path, code=2)
    if os.geteuid() != 0:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        assert "no permission" in refused("-o", "locked/x.gpuperf", *JOB, cwd=tmp_path, code=2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "which job?"),
        (["-q"], "which job?"),
        (["--"], "which job?"),
        (["-m"], "-m needs a module"),
        (["-c"], "-c needs"),
        (["--rng-bytes", "1", "true"], "did you mean --ring-bytes?"),
        (["--ring-bytes", "lots", "--", "touch", "ran"], "'lots' does not fit"),
        (["-o"], "expected one argument"),
        (["--ring-bytes", "5000", "--", "touch", "ran"], "power of two"),
        (["--log", "loud", "--", "touch", "ran"], "'loud'"),
    ],
)
def test_usage_errors_are_one_line(arguments: list[str], said: str, tmp_path: Path) -> None:
    assert said in refused(*arguments, cwd=tmp_path, code=2)


def test_a_variable_that_does_not_fit_is_found_before_the_job_starts(tmp_path: Path) -> None:
    assert "GPUPERF_HOOKS" in refused(*JOB, cwd=tmp_path, code=2, GPUPERF_HOOKS="maybe")


def test_what_cannot_be_run_has_the_codes_of_a_shell(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    (tmp_path / "script").write_text("#!/no/such/interpreter\n")
    (tmp_path / "script").chmod(0o755)
    assert "no permission" in refused("./text", cwd=tmp_path, code=126)
    assert "it is a folder" in refused("./", cwd=tmp_path, code=126)
    assert "interpreter in its first line" in refused("./script", cwd=tmp_path, code=127)
