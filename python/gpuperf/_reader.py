"""The native reader, with its errors made gpuperf's."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from gpuperf.errors import RegionError, TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


def native() -> ModuleType:
    """gpuperf._analysis, loaded when it is first needed."""
    from gpuperf import _analysis

    return _analysis


@contextmanager
def errors(path: str | None = None) -> Iterator[None]:
    """Errors of the native reader inside become TraceError and RegionError.

    Args:
        path: put before a message about a region, which does not name the trace by itself.
    """
    reader = native()
    try:
        yield
    except reader.TraceError as error:
        raise TraceError(str(error)) from None
    except reader.NoSuchRegion as error:
        raise RegionError(f"{path}: {error}" if path else str(error)) from None
