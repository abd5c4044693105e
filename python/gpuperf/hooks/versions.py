"""Tells the trace which Python and which torch the job runs."""

from __future__ import annotations

import sys

from gpuperf._libpath import load_core


def tell_python() -> None:
    """Python's version, as "3.11.7"."""
    load_core().set_version("python", sys.version.split()[0])


def tell_torch() -> None:
    """The version of an imported torch, of the CUDA that it was built with, and its commit."""
    set_version = load_core().set_version
    torch = sys.modules["torch"]
    set_version("torch", str(torch.__version__))
    built_with = getattr(torch, "version", None)
    for key, attribute in (("torch_cuda", "cuda"), ("torch_git", "git_version")):
        value = getattr(built_with, attribute, None)
        if value:
            set_version(key, str(value))
