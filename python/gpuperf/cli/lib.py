"""`gpuperf lib`: the path of the library, for CUDA_INJECTION64_PATH."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpuperf import _libpath
from gpuperf.errors import UnavailableError

if TYPE_CHECKING:
    import argparse

HELP = "print the path of libgpuperf.so, for CUDA_INJECTION64_PATH=$(gpuperf lib)"


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """It takes none."""


def run(_args: argparse.Namespace) -> int:
    """Prints the path and nothing else."""
    path = _libpath.library()
    if not os.path.isfile(path):
        raise UnavailableError(f"{path} is missing: gpuperf is not installed whole; install it again")
    print(path)
    return 0
