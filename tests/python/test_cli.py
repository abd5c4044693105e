"""The command line as a whole: verbs, help, exit codes, output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gpuperf
import pytest
from gpuperf import _libpath, cli, errors


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpuperf", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_lib_prints_the_path_and_nothing_else() -> None:
    done = run("lib")
    assert (done.returncode, done.stdout, done.stderr) == (0, _libpath.library() + "\n", "")
    assert Path(done.stdout.strip()).is_file()


def test_the_version() -> None:
    assert run("--version").stdout == f"gpuperf {gpuperf.__version__}\n"


def test_help_names_every_verb_and_every_exit_code() -> None:
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for verb in cli.VERBS:
        assert f"\n  {verb} " in done.stdout
        own = run(verb, "--help")
        assert (own.returncode, own.stderr) == (0, "")
        assert own.stdout.startswith(f"usage: gpuperf {verb}")
    for code in range(7):
        assert f"{code} " in done.stdout


def test_without_a_verb_it_says_how_to_use_it() -> None:
    done = run()
    assert done.returncode == 2
    assert done.stdout.startswith("usage: gpuperf ")


def test_an_unknown_verb_is_a_usage_error_with_a_guess() -> None:
    done = run("reprot", "x.gpuperf")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gpuperf: there is no command 'reprot'; did you mean `gpuperf report`?\n"


def test_a_verb_loads_only_what_it_needs() -> None:
    code = "import sys; from gpuperf import cli; cli.main(['lib']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert not set(done.stderr.split()) & {"rich", "torch", "gpuperf._analysis", "gpuperf.cli.report"}


def raising(error: BaseException) -> object:
    def fail(given: list[str]) -> int:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (errors.UnavailableError("no GPU here"), 6, "gpuperf: no GPU here\n"),
        (errors.OptionError("bad"), 2, "gpuperf: bad\n"),
        (KeyError("x"), 1, "gpuperf: KeyError: 'x' (GPUPERF_LOG=debug shows where)\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_error_is_one_line_and_a_code(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GPUPERF_LOG", raising=False)
    monkeypatch.setattr(cli, "_main", raising(error))
    assert cli.main([]) == code
    assert capsys.readouterr() == ("", said)


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = "import sys; from gpuperf import cli; sys.exit(cli.main(['run', '--help']))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) in (0, cli.EXIT_PIPE_CLOSED)


GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden" / "format1.gpuperf"


@pytest.mark.parametrize("verb", ["report", "dump", "doctor"])
@pytest.mark.parametrize("place", ["full disk", "closed", "no reader"])
def test_an_output_that_takes_nothing(verb: str, place: str) -> None:
    command = [sys.executable, "-m", "gpuperf", verb, *([] if verb == "doctor" else [str(GOLDEN)])]
    if place == "closed":
        command = ["sh", "-c", '"$@" >&-', "sh", *command]
        output = subprocess.DEVNULL
    elif place == "full disk":
        output = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, output = os.pipe()
        os.close(reader)
    done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, timeout=120)
    if output >= 0:
        os.close(output)
    says = "gpuperf: the output cannot be written: its disk is full\n" if place == "full disk" else ""
    codes = {"closed": (0, 6), "full disk": (1,), "no reader": (141,)}  # 6: a machine without a GPU
    assert done.stderr == says
    assert done.returncode in codes[place]


@pytest.mark.parametrize("verb", ["report", "dump", "doctor"])
def test_a_terminal_that_lacks_characters(verb: str) -> None:
    arguments = [] if verb == "doctor" else [str(GOLDEN)]
    done = subprocess.run(
        [sys.executable, "-m", "gpuperf", verb, *arguments],
        env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, timeout=120,
    )  # fmt: skip
    assert done.stderr == b""
    assert done.stdout.isascii()
    assert done.stdout
