"""What the environment says, read without loading the library: this runs at the start of every process of a job.

No pathlib, typing, functools or json here and in what the start-up file imports: each costs milliseconds.
"""

from __future__ import annotations

import os

INJECTION = "CUDA_INJECTION64_PATH"
LIBRARY_NAME = "libgpuperf.so"
TRUE = ("1", "true", "yes", "on")
FALSE = ("0", "false", "no", "off")


def is_on(variable: str, default: bool = False) -> bool:
    """A boolean GPUPERF_* variable as the library reads it; an empty one is none."""
    text = os.environ.get(variable)
    return text in TRUE if text else default


def is_ours(path: str) -> bool:
    """Whether a value of CUDA_INJECTION64_PATH names a libgpuperf.so."""
    return os.path.basename(path) == LIBRARY_NAME


def injected_library() -> str | None:
    """Path of the libgpuperf.so that the CUDA driver is told to load, None if it is told nothing or of another tool."""
    path = os.environ.get(INJECTION, "")
    return path if is_ours(path) else None
