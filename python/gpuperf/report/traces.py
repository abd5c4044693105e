"""Trace files read by the native reader, for Python."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gpuperf import _reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpuperf.regions import Region

Summary: TypeAlias = dict[str, Any]  # one element of "traces" in docs/report.md

_PART = re.compile(r"(?P<first>.+)\.\d{4}")


def summary(
    path: str | os.PathLike[str], progress: Callable[[int], object] | None = None, region: Region | None = None
) -> Summary:
    """Reads a trace (with all its parts), or a region of it, and sums it up.

    Args:
        path: the trace's first file.
        progress: told the number of bytes read so far, again and again.
        region: what gpuperf.regions.region tells.

    Returns:
        The object that docs/report.md defines: times in ns, exact integers, None for what is not known.

    Raises:
        TraceError: the file cannot be read, is no trace, or was made by a newer gpuperf. Damage inside a trace is no
            error: see `completeness` in the result.
        RegionError: the trace has no such region.
    """
    with _reader.errors():
        return dict(json.loads(_reader.native().summary_json(os.fsencode(path), progress, region or None)))


def dump(path: str | os.PathLike[str], write: Callable[[str], object], *, chunks_only: bool = False) -> bool:
    """Hands every record of a trace as text (docs/dump.md) to `write`, whole lines, some at a time.

    Returns:
        False if the trace is damaged or was not closed.

    Raises:
        TraceError: as `summary`.
    """
    with _reader.errors():
        return bool(_reader.native().dump(os.fsencode(path), write, chunks_only=chunks_only))


def select(paths: Sequence[str]) -> list[str]:
    """The traces that `paths` name: each once, and without later parts whose first part is named too.

    So `gpuperf report *.gpuperf*` does what one expects.
    """
    return list(_select(paths))


def _select(paths: Sequence[str]) -> Iterator[str]:
    named = {Path(path).absolute() for path in paths}
    seen = set()
    for path in paths:
        absolute = Path(path).absolute()
        part = _PART.fullmatch(str(absolute))
        if absolute in seen or (part and Path(part["first"]) in named):
            continue
        seen.add(absolute)
        yield path
