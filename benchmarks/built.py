"""Where the built benchmarks and the stand-in CUDA libraries lie: BENCH_BUILD_DIR, else the newest under build/."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class Unavailable(Exception):
    """What a benchmark needs is not here; the text says what, and what to do."""


def find_built(name: str, folder: str = "benchmarks") -> Path:
    """The newest built file of this name under a folder of a build: benchmarks, or fakes (the stand-ins)."""
    given = os.environ.get("BENCH_BUILD_DIR")
    roots = [Path(given)] if given else sorted((ROOT / "build").glob("*"))
    found = [path for root in roots for path in (root / folder).glob(f"**/{name}") if path.is_file()]
    if not found:
        where = given or ROOT / "build"
        raise Unavailable(f"{name} is not built in {where}: cmake --preset release && cmake --build --preset release")
    return max(found, key=lambda path: path.stat().st_mtime)
