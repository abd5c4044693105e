"""Regions: parts of a trace's time, told in steps, by annotations, or in times (docs/report.md defines them)."""

from __future__ import annotations

import operator
import re
from decimal import Decimal
from typing import NamedTuple, SupportsIndex, TypeAlias, TypeGuard

from gpuperf.errors import RegionError

Bounds: TypeAlias = "slice | tuple[int | str | None, int | str | None]"
"""`a:b`, half-open; None is where the trace begins or ends."""

_HOST_CLOCK, _START, _END = 0, 1, 2  # TimePoint::Origin of csrc/analysis/region.h
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_TIME = re.compile(r"(?P<sign>-?)(?P<amount>\d+(?:\.\d+)?)(?P<unit>ns|us|µs|ms|s|m|h)")
_INDEX = re.compile(r"-?\d+")
_AT = re.compile(r"(?<!\\)@")  # between name and domain: the last one
_FARTHEST = 2**62

_Point: TypeAlias = "tuple[int, int]"


class Region(NamedTuple):
    """What is asked for, as the native reader takes it. Several ways of telling it mean what lies in all of them.

    Attributes:
        steps: (begin, end) as of a Python slice.
        annotation: the name, as its bytes are in the trace.
        time: (begin, end), each (origin, ns).
        nvtx: (name, domain); domain b"": the default one, None: any.
    """

    steps: tuple[int | None, int | None] | None = None
    annotation: bytes | None = None
    time: tuple[_Point | None, _Point | None] | None = None
    nvtx: tuple[bytes, bytes | None] | None = None

    def __bool__(self) -> bool:
        return any(part is not None for part in self)


def region(
    steps: int | str | slice | tuple[int | None, int | None] | None = None,
    annotation: str | None = None,
    time: str | Bounds | None = None,
    nvtx: str | None = None,
) -> Region:
    r"""The region that the arguments tell.

    Args:
        steps: `slice(10, 20)`, `(10, 20)`, `"10:20"`, or one step's number. As in a Python slice a bound may be left
            out, and a negative one counts from the end.
        annotation: the name of an annotation, exactly: all time in which one of that name was open.
        time: `("1s", "2s")`, `"1s:2s"` or a slice. Texts with a unit count from the session's start, negative ones
            from its end; integers are ns on the host clock, as the columns `*_host_ns` are.
        nvtx: `NAME`, `NAME@DOMAIN` or `NAME@` (the default domain), exactly: all time in which an NVTX range of that
            name was open. An `@` in a name is written `\@`.

    Raises:
        RegionError: an argument is none of these.
    """
    return Region(
        None if steps is None else _steps(steps),
        None if annotation is None else _bytes(annotation),
        None if time is None else _times(time),
        None if nvtx is None else _nvtx(nvtx),
    )


def intersection(first: Region, second: Region) -> Region:
    """What lies in both.

    Raises:
        RegionError: both tell it in the same way.
    """
    for name, a, b in zip(Region._fields, first, second, strict=True):
        if a is not None and b is not None and a != b:
            raise RegionError(f"the trace is already restricted by {name}; filter the whole trace instead")
    return Region(
        first.steps if first.steps is not None else second.steps,
        first.annotation if first.annotation is not None else second.annotation,
        first.time if first.time is not None else second.time,
        first.nvtx if first.nvtx is not None else second.nvtx,
    )


def _steps(told: int | str | slice | tuple[int | None, int | None]) -> tuple[int | None, int | None]:
    wrong = RegionError(f"steps are A:B, as in a Python slice, or one number, and not {told!r}")
    if isinstance(told, str):
        first, colon, last = told.partition(":")
        if not all(_INDEX.fullmatch(part) for part in (first, last) if part) or not (first or colon):
            raise wrong
        told = slice(*(int(part) if part else None for part in (first, last))) if colon else int(first)
    if _is_index(told):
        number = operator.index(told)
        return _bounded(number), None if number == -1 else _bounded(number + 1)
    begin, end = _bounds(told, wrong)
    if not all(part is None or _is_index(part) for part in (begin, end)):
        raise wrong
    return _index(begin), _index(end)


def _nvtx(told: str) -> tuple[bytes, bytes | None]:
    if not isinstance(told, str) or not told:
        raise RegionError(f"an NVTX range is NAME or NAME@DOMAIN, and not {told!r}")
    *before, last = _AT.split(told)
    name = "@".join(before) if before else last
    return _bytes(name.replace(r"\@", "@")), _bytes(last.replace(r"\@", "@")) if before else None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _times(told: str | Bounds) -> tuple[_Point | None, _Point | None]:
    wrong = RegionError(f'times are A:B, each with its unit, for example "1s:2.5s", and not {told!r}')
    if isinstance(told, str):
        begin, colon, end = told.partition(":")
        if not colon:
            raise wrong
        told = (begin or None, end or None)
    first, last = _bounds(told, wrong)
    return _point(first, wrong), _point(last, wrong)


def _bounds(told: object, wrong: RegionError) -> tuple[int | str | None, int | str | None]:
    if isinstance(told, slice) and told.step is None:
        return told.start, told.stop
    if isinstance(told, tuple) and len(told) == 2:
        return told[0], told[1]
    raise wrong


def _point(told: int | str | None, wrong: RegionError) -> _Point | None:
    if told is None:
        return None
    if _is_index(told):
        return _HOST_CLOCK, _bounded(operator.index(told))
    match = _TIME.fullmatch(told) if isinstance(told, str) else None
    if match is None:
        raise wrong
    ns = Decimal(match["amount"]) * _UNITS[match["unit"]]
    if ns != int(ns):
        raise RegionError(f"{told!r} is not a whole number of ns")
    if match["sign"]:
        return _END, -_bounded(int(ns))
    return _START, _bounded(int(ns))


def _index(value: object) -> int | None:
    return _bounded(operator.index(value)) if _is_index(value) else None


def _is_index(value: object) -> TypeGuard[SupportsIndex]:
    """An integer, also NumPy's; True is none."""
    return isinstance(value, SupportsIndex) and not isinstance(value, bool)


def _bounded(value: int) -> int:
    return max(-_FARTHEST, min(value, _FARTHEST))
