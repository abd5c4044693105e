"""`gpuperf run [options] -- command …`: runs a job with the capture on.

The capture itself is `CUDA_INJECTION64_PATH`: the CUDA driver of the job loads libgpuperf.so when CUDA is initialised,
in each process of the job that uses CUDA. So all that is to do here is to set variables and to become the job (exec):
its exit code, signals, stdin, stdout and process id are its own, and nothing of gpuperf stays around it.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import glob
import os
import re
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gpuperf import _libpath, options
from gpuperf._env import INJECTION, NVTX_INJECTION, inject_nvtx, is_on, is_ours
from gpuperf.errors import (
    GpuperfError,
    OptionError,
    OutputExistsError,
    OutputUnwritableError,
    UnavailableError,
    warn,
)

if TYPE_CHECKING:
    from collections.abc import Callable

HELP = "run a job with the capture on: gpuperf run [options] -- python train.py"
DESCRIPTION = """\
Runs a job and records what its GPUs do, in each of its processes that uses CUDA. The job is not changed: its exit
code, signals and output are its own. `--` may be left out. A Python script, `-m MODULE` or `-c CODE` without `python`
in front runs with this Python.

  gpuperf run -- python train.py --epochs 3
  gpuperf run -o run-r%r.gpuperf -- torchrun --nproc-per-node 8 train.py
  gpuperf run -f -o run.gpuperf ./my_cuda_program"""

_PLACEHOLDER = re.compile(r"(%.)")
_LONGEST_NAME = 255  # bytes, on every file system in use
_LONGEST_ADDITION = len("-r999999-4194304-999.0001")  # what further processes and parts insert
_LEAST_SPACE = 4096
_PART = ".[0-9][0-9][0-9][0-9]"  # behind the name of a trace: a further part
_CLOCK_REALTIME_COARSE = 5  # of <time.h>: the clock that file systems stamp files with
# Set by launchers of several processes. Not Slurm's SLURM_NTASKS, which a batch script sees too.
_WORLD_SIZES = ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One flag an option of the table."""
    parser.usage = "gpuperf run [options] [--] COMMAND …"
    short = {"output": "-o", "force": "-f", "quiet": "-q"}
    for option in options.table():
        if option.name in options.NO_FLAG:
            continue
        flags = [short[option.name]] if option.name in short else []
        flags.append(f"--{option.name}")
        default = {"0": "off", "1": "on"}.get(option.default) if option.type == "bool" else option.default
        text = (option.help + (f" (default: {default})" if default else "")).replace("%", "%%")
        if option.type == "bool":
            parser.add_argument(*flags, dest=option.keyword, action=argparse.BooleanOptionalAction, help=text)
        else:
            kind = option.type.upper()
            parser.add_argument(*flags, dest=option.keyword, metavar=kind, type=_reader(option), help=text)


def _reader(option: options.Option) -> Callable[[str], str]:
    def read(text: str) -> str:
        try:
            return option.to_text(text)
        except OptionError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def split(parser: argparse.ArgumentParser, arguments: list[str]) -> tuple[list[str], list[str]]:
    """Cuts `arguments` into ours and the job's.

    The job begins after `--`, else at the first word that is no flag of ours.

    argparse cannot do that itself: it would take the job's `-m`, `-c` and `--help` for its own.
    """
    takes_value = {
        flag: action.nargs is None and not isinstance(action, argparse.BooleanOptionalAction)
        for action in parser._actions
        for flag in action.option_strings
    }
    takes_value["-h"] = takes_value["--help"] = False
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word == "--":
            return arguments[:position], arguments[position + 1 :]
        if word in ("-m", "-c") or not word.startswith("-") or word == "-":
            break
        position += 1
        if word.startswith("--"):
            if "=" not in word and takes_value.get(word):
                position += 1
        else:  # -q, -qf, -oFILE, -qo FILE
            letters = word[1:]
            valued = next((i for i, letter in enumerate(letters) if takes_value.get(f"-{letter}")), None)
            if valued == len(letters) - 1:
                position += 1
    return arguments[:position], arguments[position:]


def run(args: argparse.Namespace) -> int:
    """Becomes the job; returns only if that fails."""
    command = _complete(args.command)
    _check_runnable(command[0])
    given = {option.keyword: getattr(args, option.keyword, None) for option in options.table()}
    environment = dict(os.environ)
    if not is_on("GPUPERF_DISABLE"):
        for sentence in options.unknown_variables(os.environ):
            warn(sentence)
        environment.update(_capture_environment(given))
        if not (given["quiet"] if given["quiet"] is not None else is_on("GPUPERF_QUIET")):
            _tell_of_no_driver()
    sys.stdout.flush()
    sys.stderr.flush()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a program inherits what is ignored
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - to run a command is what this is for
    except FileNotFoundError:
        raise _NotFound(f"{command[0]} cannot be run: the interpreter in its first line is not there") from None
    except OSError as error:
        raise _NotExecutable(f"{command[0]} cannot be run: {error.strerror}") from None


def _tell_of_no_driver() -> None:
    """The one reason for a missing trace that can be told before the job runs."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        warn(
            "no NVIDIA driver here (libcuda.so.1): the job runs, and there will be no trace (gpuperf doctor says more)"
        )


class _UsageError(GpuperfError):
    exit_code = 2


class _NotFound(GpuperfError):
    exit_code = 127  # as a shell says it


class _NotExecutable(GpuperfError):
    exit_code = 126


def _complete(command: list[str]) -> list[str]:
    """The command with this Python in front, where the caller left `python` out."""
    if not command:
        raise _UsageError("which job? gpuperf run [options] -- COMMAND …")
    first = command[0]
    if first in ("-m", "-c"):
        if len(command) < 2:
            raise _UsageError(f"{first} needs a {'module' if first == '-m' else 'piece of code'} behind it")
        return [sys.executable, *command]
    runs_itself = "/" in first and os.access(first, os.X_OK)
    is_script = first.endswith(".py") and os.path.isfile(first) and not runs_itself
    return [sys.executable, *command] if is_script else command


def _check_runnable(program: str) -> None:
    """Finds out that a program cannot be run before anything is done, above all before -f removes a file."""
    if shutil.which(program) is not None:
        return
    if "/" in program and os.path.exists(program):
        raise _NotExecutable(
            f"{program} cannot be run: {'it is a folder' if os.path.isdir(program) else 'no permission'}"
        )
    raise _NotFound(f"{program}: command not found")


# --- What the job's processes are told -----------------------------------------------------------------------------


def _capture_environment(given: dict[str, object]) -> dict[str, str]:
    """Variables to add to the job's environment.

    Raises:
        GpuperfError: the job would not be captured, or would overwrite a file; nothing has been started.
    """
    holder = os.environ.get(INJECTION, "")
    if holder not in ("", "none") and not is_ours(holder):
        raise UnavailableError(
            f"another tool is to be loaded into the job: {INJECTION}={holder}. CUDA loads one only; "
            f"unset {INJECTION}, or run the job without gpuperf"
        )
    library = _libpath.library()
    if not os.path.isfile(library):
        raise UnavailableError(f"{library} is missing: gpuperf is not installed whole; install it again")
    result = options.to_environment(given)
    options.check(given)
    start_ns = _run_start_ns()
    output, force = _output(given)
    if output != os.devnull:
        _claim(output, force=force, start_ns=start_ns)
    result["GPUPERF_OUTPUT"] = output
    result["GPUPERF_RUN_START_NS"] = str(start_ns)
    result[INJECTION] = library
    nvtx = {name: os.environ[name] for name in (NVTX_INJECTION,) if name in os.environ}
    if given.get("nvtx") is not False:
        inject_nvtx(nvtx, library)
    return result | nvtx


def _output(given: dict[str, object]) -> tuple[str, bool]:
    """The output name as the job gets it (/dev/null for no file), and whether it may replace a file.

    The job may change its folder before it uses CUDA, so the name is made absolute.
    """
    table = {option.keyword: option for option in options.table()}
    output, force = given["output"], given["force"]
    if output is None:
        output = os.environ.get("GPUPERF_OUTPUT") or table["output"].default
    if force is None:
        force = is_on("GPUPERF_FORCE")
    if not output:
        return os.devnull, bool(force)
    text = str(output)
    if text.endswith("/"):
        raise OutputUnwritableError(f"cannot write {_shown(text)}: it names a folder; name a file in it")
    output = os.path.normpath(os.path.join(os.getcwd().replace("%", "%%"), str(output)))
    return output, bool(force)


def _claim(output: str, *, force: bool, start_ns: int) -> None:
    """Refuses traces, and further parts of one, that stand before the run, or removes them if `force`.

    A pattern is looked at as far as it is known now: %p is a new one in each process, so such a name is always free. A
    file of a sibling, which the same launcher started (`torchrun --no-python gpuperf run …`), is no old file. With
    `force` a file behind a pattern is left to the process that will have its name.

    Raises:
        OutputExistsError: there is such a file.
        OutputUnwritableError: the folder is not there or not writable.
    """
    path, folder = _plain(output), _plain(os.path.dirname(output))
    if folder is not None and (fault := output_fault(folder)):
        raise OutputUnwritableError(f"cannot write {_shown(output)}: {folder}: {fault}; choose another place with -o")
    if len(os.fsencode(os.path.basename(output))) + _LONGEST_ADDITION > _LONGEST_NAME:
        raise OutputUnwritableError(
            f"cannot write {_shown(output)}: the name is too long; choose a shorter one with -o"
        )
    if path is not None and os.path.isdir(path):
        raise OutputUnwritableError(f"cannot write {path}: it is a folder; name a file in it")
    pieces = _PLACEHOLDER.split(output)
    if "%p" in pieces:
        return
    known = {"%%": "%", "%h": glob.escape(socket.gethostname()), "%r": "[0-9]*", "%s": "*"}
    pattern = "".join(known.get(piece, glob.escape(piece)) for piece in pieces)
    # Parts count without their trace, too: the new one may grow into their names.
    found = {*glob.glob(pattern), *glob.glob(pattern + _PART)}
    old = [name for name in sorted(found) if _is_old(name, start_ns)]
    if not old:
        return
    written = next((name for name in old if _is_being_written(name)), None)
    if written is not None:
        raise OutputExistsError(
            f"{_shown(written)} is still being written by a job that runs: name another file with -o"
        )
    if not force:
        more = f" and {len(old) - 1} more" if len(old) > 1 else ""
        raise OutputExistsError(
            f"{_shown(old[0])}{more} exists already: name another file with -o, or replace it with -f"
        )
    if path is not None:
        for name in old:
            _remove(name)


def output_fault(folder: str) -> str | None:
    """What keeps a trace from being written into a folder; None if nothing."""
    if not os.path.isdir(folder):
        return "there is no such folder"
    try:
        descriptor, name = tempfile.mkstemp(prefix=".gpuperf-", dir=folder)
        try:
            os.write(descriptor, bytes(_LEAST_SPACE))
        finally:
            os.close(descriptor)
            os.unlink(name)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _is_being_written(name: str) -> bool:
    """Whether the process that made a trace still holds it (csrc/trace/file_sink.h)."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(descriptor)
    return False


def _shown(path: str) -> str:
    """A path as it may stand in a message: one that is no text is spelt."""
    return path if path.isprintable() else ascii(path)


def _is_old(name: str, start_ns: int) -> bool:
    try:
        return os.lstat(name).st_mtime_ns < start_ns
    except FileNotFoundError:  # a sibling was faster
        return False


def _remove(name: str) -> None:
    """Removes a file or a link, and nothing else: not a device, for example.

    Raises:
        OutputUnwritableError: it is something else, or cannot be removed.
    """
    try:
        mode = os.lstat(name).st_mode
        if is_file := stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            os.unlink(name)
    except FileNotFoundError:  # a sibling was faster
        return
    except OSError as error:
        raise OutputUnwritableError(f"cannot replace {name}: {error.strerror}") from None
    if not is_file:
        raise OutputUnwritableError(f"cannot replace {name}: it is no file")


def _plain(output: str) -> str | None:
    """The path that `output` stands for, None if it depends on the process."""
    pieces = _PLACEHOLDER.split(output)
    return None if {"%h", "%p", "%r", "%s"} & set(pieces) else "".join(pieces).replace("%%", "%")


def _run_start_ns() -> int:
    """When the run began. Started by a launcher as one of several ranks, we are part of the launcher's run."""
    if any(os.environ.get(variable, "1") not in ("", "0", "1") for variable in _WORLD_SIZES):
        started = _process_start_ns(os.getppid())
        if started is not None:
            return started
    return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)


def _process_start_ns(pid: int) -> int | None:
    """When process `pid` began, on CLOCK_REALTIME; None if it cannot be known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    after_boot_ns = int(fields[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + after_boot_ns
