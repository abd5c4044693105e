"""What the environment says, read without loading the library: this runs at the start of every process of a job.

No pathlib, typing, functools or json here and in what the start-up file imports: each costs milliseconds.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing's own costs the import of typing
if TYPE_CHECKING:
    from collections.abc import MutableMapping

INJECTION = "CUDA_INJECTION64_PATH"
NVTX_INJECTION = "NVTX_INJECTION64_PATH"
NVTX_CHAIN = "GPUPERF_NVTX_CHAIN"
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


def inject_nvtx(environment: MutableMapping[str, str], library: str) -> None:
    """Has NVTX's clients load `library` at their first NVTX call; what they would have loaded is chained behind it.

    A library that made its first NVTX call before this stays mute.
    """
    if is_on("GPUPERF_DISABLE") or not is_on("GPUPERF_NVTX", default=True):
        return
    holder = environment.get(NVTX_INJECTION, "")
    if is_ours(holder):
        return
    if holder:
        environment[NVTX_CHAIN] = holder
    environment[NVTX_INJECTION] = library
