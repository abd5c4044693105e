"""Which rows of a trace are wanted."""

from __future__ import annotations

import operator
import re
from fnmatch import translate
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex, TypeAlias

from gpuperf.errors import RegionError
from gpuperf.regions import Region, intersection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Name: TypeAlias = "str | re.Pattern[str]"
"""A glob, case-sensitive, that the whole name has to match (`*gemm*`), or a regular expression that is searched for."""

Numbers: TypeAlias = "int | Iterable[int]"


class Filter(NamedTuple):
    """What all parts of it want.

    Attributes:
        region: a part of the trace's time.
        streams: ids of CUDA streams as CUPTI tells them.
        devices: ordinals.
        names: tests that a name has to pass, every one.
    """

    region: Region = Region()
    streams: tuple[int, ...] | None = None
    devices: tuple[int, ...] | None = None
    names: tuple[Name, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.region or self.streams is not None or self.devices is not None or self.names)

    def __and__(self, other: Filter) -> Filter:
        return Filter(
            intersection(self.region, other.region),
            _common(self.streams, other.streams),
            _common(self.devices, other.devices),
            self.names + other.names,
        )

    def name_test(self) -> Callable[[str], bool] | None:
        """Says of a name whether all of `names` want it; None without any."""
        if not self.names:
            return None
        tests = [_test(name) for name in self.names]
        return lambda name: all(test(name) is not None for test in tests)

    def __repr__(self) -> str:
        region = self.region
        parts = [
            f"steps={_slice(region.steps)}" if region.steps is not None else "",
            f"annotation={region.annotation.decode(errors='replace')!r}" if region.annotation is not None else "",
            f"nvtx={_nvtx(*region.nvtx)!r}" if region.nvtx is not None else "",
            f"time={_slice(tuple(point and point[1] for point in region.time))} ns" if region.time is not None else "",
            f"stream={list(self.streams)}" if self.streams is not None else "",
            f"device={list(self.devices)}" if self.devices is not None else "",
            *(f"name={name if isinstance(name, str) else name.pattern!r}" for name in self.names),
        ]
        return ", ".join(filter(None, parts))


def numbers(told: Numbers | None, what: str) -> tuple[int, ...] | None:
    """One number or several, sorted.

    Raises:
        RegionError: one of them can be no such number.
    """
    if told is None:
        return None
    try:
        several = {operator.index(told)} if isinstance(told, SupportsIndex) else set(map(operator.index, told))
    except TypeError:
        several = {-1}
    if not all(0 <= number < 2**32 for number in several):
        raise RegionError(f"{what} is a number or several, and not {told!r}")
    return tuple(sorted(several))


def _common(first: tuple[int, ...] | None, second: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if first is None or second is None:
        return second if first is None else first
    return tuple(sorted(set(first) & set(second)))


def _test(name: Name) -> Callable[[str], object]:
    return re.compile(translate(name)).match if isinstance(name, str) else name.search


def _nvtx(name: bytes, domain: bytes | None) -> str:
    parts = (name,) if domain is None else (name, domain)
    return "@".join(part.decode(errors="replace").replace("@", r"\@") for part in parts)


def _slice(bounds: tuple[int | None, ...]) -> str:
    return ":".join("" if bound is None else str(bound) for bound in bounds)
