"""CUDA's headers and libcupti of many versions, out of NVIDIA's wheels on PyPI; downloaded once into a cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

# The last release of CUPTI and of the runtime (for cuda.h) of each CUDA version.
VERSIONS = {
    "12.0": ("12.0.146", "12.0.146"),
    "12.1": ("12.1.105", "12.1.105"),
    "12.2": ("12.2.142", "12.2.140"),
    "12.3": ("12.3.101", "12.3.101"),
    "12.4": ("12.4.127", "12.4.127"),
    "12.5": ("12.5.82", "12.5.82"),
    "12.6": ("12.6.80", "12.6.77"),
    "12.8": ("12.8.90", "12.8.90"),
    "12.9": ("12.9.79", "12.9.79"),
    "13.0": ("13.0.85", "13.0.96"),
    "13.1": ("13.1.115", "13.1.80"),
    "13.2": ("13.2.86", "13.2.86"),
    "13.3": ("13.3.75", "13.3.29"),
    "13.4": ("13.4.92", "13.4.92"),
    "13.5": ("13.5.25", "13.5.37"),
}


def fetch(version: str) -> Path:
    """The folder with a version's headers and libcupti. Skips the test where the wheels cannot be had."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gpuperf-cuda-wheels"
    folder = cache / version
    if not folder.is_dir():
        scratch = cache / f"{version}.{os.getpid()}"
        scratch.mkdir(parents=True)
        suffix = "-cu12" if version.startswith("12.") else ""
        cupti, runtime = VERSIONS[version]
        wheels = [f"nvidia-cuda-cupti{suffix}=={cupti}", f"nvidia-cuda-runtime{suffix}=={runtime}"]
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(scratch), *wheels]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        except subprocess.TimeoutExpired:
            shutil.rmtree(scratch)
            pytest.skip(f"the wheels of CUDA {version} could not be fetched in time")
        if done.returncode:
            shutil.rmtree(scratch)
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            pytest.skip(f"the wheels of CUDA {version} cannot be fetched: {reason}")
        for wheel in scratch.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                wanted = [n for n in archive.namelist() if n.endswith((".h", ".hpp")) or "/libcupti.so." in n]
                archive.extractall(scratch, wanted)
            wheel.unlink()
        try:
            scratch.rename(folder)
        except OSError:  # another run was faster
            shutil.rmtree(scratch)
    return folder


def headers(version: str) -> list[Path]:
    """Its header folders."""
    return sorted(path for path in fetch(version).glob("nvidia/*/include") if path.is_dir())


def libcupti(version: str) -> Path:
    """Its libcupti."""
    (library,) = fetch(version).glob("nvidia/*/lib/libcupti.so.*")
    return library
