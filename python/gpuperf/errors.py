"""What gpuperf raises: for mistakes in how it is used. That a GPU is missing or busy is no exception, but a warning.

Each class is also the built-in exception that one would expect, and carries the exit code of the command line.
"""

from __future__ import annotations

import errno
import os
import sys


class GpuperfError(Exception):
    """Base of all errors of gpuperf."""

    exit_code = 1

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else type(self).__name__


class OptionError(GpuperfError, ValueError):
    """An option that does not exist, or a value that does not fit it."""

    exit_code = 2


class OutputExistsError(GpuperfError, FileExistsError):
    """The output file stood before the run."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.errno = errno.EEXIST


class OutputUnwritableError(GpuperfError, OSError):
    """The output file cannot be created."""

    exit_code = 2


class TraceError(GpuperfError, ValueError):
    """A trace that cannot be read, is none, was made by a newer gpuperf, or has been closed."""

    exit_code = 3


class RegionError(GpuperfError, ValueError):
    """A part of a trace that is told wrongly, or that the trace does not have."""

    exit_code = 2


class UnavailableError(GpuperfError, RuntimeError):
    """What the command needs is not here: a GPU, CUPTI, an extra, CUPTI's slot."""

    exit_code = 6


def warn(message: str) -> None:
    """Writes one line of ours to stderr, also where Python's own stderr is closed or replaced by something broken."""
    line = f"gpuperf: {message}\n"
    try:
        sys.stderr.write(line)
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        try:
            os.write(2, line.encode(errors="replace"))
        except OSError:
            pass  # nowhere to say it, and a job never fails because of us
