"""The command `gpuperf`. One module a verb, imported when that verb is used.

A verb's module has `HELP` (one line), `add_arguments(parser)` and `run(args) -> int`, which returns the exit code or
raises a `gpuperf.errors.GpuperfError`, which carries one. `DESCRIPTION` (longer text of `--help`) and
`split(parser, arguments) -> (own, command)` (for a verb that takes a whole command line) may be there.

Exit codes: 0 done, 1 unexpected, 2 usage, 3 input cannot be read or is no trace, 4 damaged or incomplete trace, 5 a
threshold or a difference, 6 what the command needs is not here. `gpuperf run` returns the job's own code.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import re
import sys
from typing import TYPE_CHECKING, NoReturn

from gpuperf.errors import GpuperfError

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = ("run", "report", "dump", "doctor", "lib")

EXIT_UNEXPECTED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130  # as a shell reports SIGINT
EXIT_PIPE_CLOSED = 141  # as a shell reports SIGPIPE

_EXIT_CODES = """\
exit codes: 0 done, 1 unexpected, 2 usage, 3 input cannot be read or is no trace, 4 damaged or incomplete trace,
5 a threshold or a difference, 6 what the command needs is not here. `gpuperf run` returns the job's own code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `gpuperf ARGUMENTS`, by default of this process, and returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _make_writable()
    try:
        try:
            code = _main(given)
        except SystemExit as end:  # argparse, after --help or a mistake
            code = end.code if isinstance(end.code, int) else EXIT_UNEXPECTED if end.code else 0
        sys.stdout.flush()
    except GpuperfError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone (`gpuperf report … | head`); Python must not fail once more at its own flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE_CLOSED
    except OSError as error:
        if error.errno != errno.ENOSPC or os.environ.get("GPUPERF_LOG") == "debug":
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _fail("the output cannot be written: its disk is full", EXIT_UNEXPECTED)
    except Exception as error:
        if os.environ.get("GPUPERF_LOG") == "debug":
            raise
        return _fail(f"{type(error).__name__}: {error} (GPUPERF_LOG=debug shows where)", EXIT_UNEXPECTED)
    return code


def _make_writable() -> None:
    """Output to a closed stream goes nowhere, and characters that the terminal's encoding lacks become "?"."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as the process lives
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(errors="replace")


def _main(given: list[str]) -> int:
    if not given or given[0] in ("-h", "--help", "help"):
        print(_usage())
        return 0 if given else EXIT_USAGE
    if given[0] in ("-V", "--version"):
        from gpuperf.api import version

        print(f"gpuperf {version()}")
        return 0
    verb, rest = given[0], given[1:]
    if verb not in VERBS:
        from difflib import get_close_matches

        close = get_close_matches(verb, VERBS, n=1, cutoff=0.7)
        hint = f"did you mean `gpuperf {close[0]}`?" if close else "`gpuperf --help` lists all."
        return _fail(f"there is no command {verb!r}; {hint}", EXIT_USAGE)
    module = importlib.import_module(f"gpuperf.cli.{verb}")
    parser = _Parser(
        prog=f"gpuperf {verb}",
        description=getattr(module, "DESCRIPTION", module.HELP),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    if hasattr(module, "split"):
        own, command = module.split(parser, rest)
        args = parser.parse_args(own)
        args.command = command
    else:
        args = parser.parse_args(rest)
    return int(module.run(args))


class _Parser(argparse.ArgumentParser):
    """Says a usage error in one line, with a guess at what was meant."""

    def error(self, message: str) -> NoReturn:
        from difflib import get_close_matches

        wrong = re.match(r"unrecognized arguments: (--?[\w-]+)", message)
        close = get_close_matches(wrong[1], self._option_string_actions, n=1, cutoff=0.7) if wrong else []
        hint = f"; did you mean {close[0]}?" if close else ""
        self.exit(EXIT_USAGE, f"{self.prog}: {message}{hint} (`{self.prog} --help` says more)\n")


def _usage() -> str:
    lines = ["usage: gpuperf COMMAND …", "", "Records what a training job's GPUs do, and reports it.", ""]
    width = max(map(len, VERBS))
    lines += [f"  {verb:{width}}  {importlib.import_module(f'gpuperf.cli.{verb}').HELP}" for verb in VERBS]
    lines += ["", "`gpuperf COMMAND --help` says more; `gpuperf --version`.", "", _EXIT_CODES]
    return "\n".join(lines)


def _fail(message: str, code: int) -> int:
    print(f"gpuperf: {message}", file=sys.stderr)
    return code
