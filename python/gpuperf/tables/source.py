"""Open trace files, and which of their rows are wanted: shared by traces and tables, so neither holds the other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuperf import _reader, regions
from gpuperf.errors import TraceError
from gpuperf.tables.filters import Filter, Name, Numbers, numbers

if TYPE_CHECKING:
    from gpuperf import _analysis
    from gpuperf.regions import Bounds


class File:
    """The files of one trace, open until they are closed for all that share them."""

    def __init__(self, path: str) -> None:
        self.path = path
        with _reader.errors():
            self._native: _analysis.Trace | None = _reader.native().Trace(os.fsencode(path))

    @property
    def native(self) -> _analysis.Trace:
        """The native trace.

        Raises:
            TraceError: it has been closed.
        """
        if self._native is None:
            raise TraceError(f"{self.path}: this trace has been closed")
        return self._native

    @property
    def is_closed(self) -> bool:
        """Nothing can be read any more."""
        return self._native is None

    def close(self) -> None:
        """Lets the files go."""
        self._native = None


class Source:
    """Rows of a trace. Pickled as the path and the filters."""

    def __init__(self, file: File, wanted: Filter) -> None:
        self.file = file
        self.wanted = wanted

    def load(self, table: str) -> _analysis.Table:
        """Reads a table."""
        native = self.file.native
        with _reader.errors(self.file.path):
            return native.load(
                table,
                region=self.wanted.region or None,
                streams=self.wanted.streams,
                devices=self.wanted.devices,
                name=self.wanted.name_test(),
            )

    def restricted(
        self,
        *,
        time: str | Bounds | None = None,
        steps: int | str | slice | tuple[int | None, int | None] | None = None,
        annotation: str | None = None,
        nvtx: str | None = None,
        stream: Numbers | None = None,
        device: Numbers | None = None,
        name: Name | None = None,
    ) -> Source:
        """Those of the rows that the filters want: see Trace.filter."""
        _ = self.file.native  # a closed trace says so now
        region = regions.region(steps, annotation, time, nvtx)
        more = Filter(region, numbers(stream, "stream"), numbers(device, "device"), () if name is None else (name,))
        return Source(self.file, self.wanted & more)

    def __repr__(self) -> str:
        name = Path(self.file.path).name
        if self.file.is_closed:
            return f"<gpuperf.Trace {name!r}, closed>"
        facts = self.file.native.facts
        parts = f"{facts['parts']} parts, " if facts["parts"] != 1 else ""
        events = "not closed" if facts["events"] is None else f"{facts['events']:,} events"
        only = f", only {self.wanted!r}" if self.wanted else ""
        return f"<gpuperf.Trace {name!r}: {parts}{facts['bytes']:,} bytes, {events}{only}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened, (self.file.path, self.wanted)


def _opened(path: str, wanted: Filter) -> Source:
    return Source(File(path), wanted)
