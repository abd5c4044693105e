"""One table of a trace: columns for NumPy, a stream for Arrow, rows for a loop."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, overload

from gpuperf.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    import numpy.typing as npt

    from gpuperf import _analysis
    from gpuperf.tables.source import Source

_ROWS_AT_ONCE = 4096
_ROW_TYPES = {"copies": "Copy", "launches": "Launch", "losses": "Loss", "clock_pairs": "ClockPair"}

Array: TypeAlias = "npt.NDArray[Any]"


class Texts(NamedTuple):
    """A column of texts as codes.

    Attributes:
        codes: for each row its place in `names`; -1 where the text is not known.
        names: the texts, each once.
    """

    codes: npt.NDArray[np.int32]
    names: tuple[str, ...]

    def decode(self) -> npt.NDArray[np.object_]:
        """The text of each row, None where it is not known."""
        import numpy

        return numpy.array([*self.names, None], dtype=object)[self.codes]


class Table:
    """Rows of one kind, read from the trace when they are first needed and kept while the table lives.

    `table["duration_ns"]` is a NumPy array on the reader's own memory: read-only, and masked (numpy.ma) if the kind of
    column may have unknown values. Columns of texts are `Texts`. `for row in table` gives named tuples, `table[5]` one,
    `table[5:8]` a list, with None for what is not known. Anything that takes Arrow's PyCapsule interface takes a table:
    `pyarrow.table(table)`, `polars.DataFrame(table)`, `duckdb.from_arrow(table)`.
    """

    def __init__(self, source: Source, name: str) -> None:
        self._source = source
        self._name = name
        self._loaded: _analysis.Table | None = None
        self._row_type: type | None = None

    @property
    def name(self) -> str:
        """Which table of the trace it is."""
        return self._name

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(name for name, _, _ in self._native.columns)

    def filter(self, **filters: Any) -> Table:
        """The rows that the filters want, as Trace.filter has them; reads the trace again."""
        return Table(self._source.restricted(**filters), self._name)

    def to_arrow(self) -> Any:
        """A pyarrow.Table on the same memory.

        Raises:
            UnavailableError: pyarrow is not installed.
        """
        try:
            import pyarrow
        except ImportError:
            raise UnavailableError("Table.to_arrow() needs pyarrow: pip install 'gpuperf[arrow]'") from None
        return pyarrow.table(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __len__(self) -> int:
        return self._native.rows

    def __contains__(self, column: object) -> bool:
        return column in self.columns

    def __iter__(self) -> Iterator[Any]:
        for begin in range(0, len(self), _ROWS_AT_ONCE):
            yield from self._rows(begin, min(begin + _ROWS_AT_ONCE, len(self)))

    @overload
    def __getitem__(self, key: str) -> Any: ...
    @overload
    def __getitem__(self, key: int) -> Any: ...
    @overload
    def __getitem__(self, key: slice) -> list[Any]: ...
    def __getitem__(self, key: str | int | slice) -> Any:
        if isinstance(key, str):
            return self._column(key)
        if isinstance(key, slice):
            wanted = range(len(self))[key]
            if wanted.step == 1:
                return self._rows(wanted.start, max(wanted.start, wanted.stop))
            return [self[at] for at in wanted]
        try:
            at = range(len(self))[key]
        except IndexError:
            raise IndexError(f"{self._name} has {len(self)} rows, and no row {key}") from None
        return self._rows(at, at + 1)[0]

    def __repr__(self) -> str:
        if self._loaded is None:
            return f"<gpuperf {self._name} of {self._source!r}, not read yet>"
        return f"<gpuperf {self._name} of {self._source!r}: {len(self):,} rows, {len(self.columns)} columns>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (self._source, self._name)

    @property
    def _native(self) -> _analysis.Table:
        if self._loaded is None:
            self._loaded = self._source.load(self._name)
        return self._loaded

    def _rows(self, begin: int, end: int) -> list[Any]:
        if self._row_type is None:
            name = _ROW_TYPES.get(self._name) or self._name.removesuffix("s").capitalize()
            self._row_type = namedtuple(name, self.columns)  # type: ignore[misc]
        make: Callable[[Any], Any] = self._row_type._make  # type: ignore[attr-defined]
        return list(map(make, zip(*self._native.lists(begin, end), strict=True)))

    def _column(self, name: str) -> Array | Texts:
        try:
            import numpy
        except ImportError:
            raise UnavailableError("columns need NumPy: pip install 'gpuperf[numpy]'") from None
        native = self._native
        try:
            at = self.columns.index(name)
        except ValueError:
            raise KeyError(f"{self._name} has no column {name!r}, only {', '.join(self.columns)}") from None
        _, kind, nullable = native.columns[at]
        values = numpy.asarray(native.data(at))
        mask = native.mask(at)
        if kind == "text":
            codes = values if mask is None else numpy.where(numpy.asarray(mask), numpy.int32(-1), values)
            return Texts(codes, tuple(native.names(at)))
        if not nullable:
            return values
        return numpy.ma.MaskedArray(values, mask=False if mask is None else numpy.asarray(mask))
