"""`gpuperf.Trace`: a trace file (with its parts) as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from gpuperf import _reader, regions
from gpuperf.errors import RegionError
from gpuperf.tables.filters import Filter, Name, Numbers
from gpuperf.tables.source import File, Source
from gpuperf.tables.table import Table

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from gpuperf import _analysis
    from gpuperf.regions import Bounds


class Damage(NamedTuple):
    """A stretch of a file that could not be read.

    Attributes:
        file: which of the trace's files.
        offset: of the first byte.
        bytes: how many are stepped over; 0: a rule of the format is broken.
        what: what is wrong.
        after_host_ns: between this time and `before_host_ns` events are missing; None: not known.
        before_host_ns: see `after_host_ns`.
    """

    file: str
    offset: int
    bytes: int
    what: str
    after_host_ns: int | None
    before_host_ns: int | None


class Trace:
    """A trace, opened.

    Opening reads headers and indexes only. A table is read when its rows are first asked for, and kept until the trace
    goes; `filter` gives the same trace with fewer rows in its tables. Pickled as the path and the filters.

    Raises:
        TraceError: the file cannot be read, is no trace, or was made by a newer gpuperf. Damage inside a trace is no
            error: all whole chunks are read, and `complete` and `damages` tell.
    """

    TABLES: ClassVar[tuple[str, ...]] = (
        "kernels",
        "copies",
        "memsets",
        "calls",
        "launches",
        "syncs",
        "allocations",
        "steps",
        "annotations",
        "marks",
        "counters",
        "names",
        "resources",
        "losses",
        "outages",
        "clock_pairs",
    )

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._source = Source(File(str(Path(path).absolute())), Filter())
        self._tables: dict[str, Table] = {}

    # ----------------------------------------------------------------------------------------------------- tables

    @property
    def kernels(self) -> Table:
        """Kernels, with the calls that launched them."""
        return self.table("kernels")

    @property
    def copies(self) -> Table:
        """Copies, with their calls."""
        return self.table("copies")

    @property
    def memsets(self) -> Table:
        """Memory sets, with their calls."""
        return self.table("memsets")

    @property
    def calls(self) -> Table:
        """All traced CUDA calls, with the device work that came of them."""
        return self.table("calls")

    @property
    def launches(self) -> Table:
        """The calls that launch kernels and graphs."""
        return self.table("launches")

    @property
    def syncs(self) -> Table:
        """The calls that wait for the device."""
        return self.table("syncs")

    @property
    def allocations(self) -> Table:
        """The calls that allocate, free and pin memory."""
        return self.table("allocations")

    @property
    def steps(self) -> Table:
        """Training steps, as gpuperf.step() told them."""
        return self.table("steps")

    @property
    def annotations(self) -> Table:
        """Named ranges of gpuperf.annotate() and of NVTX."""
        return self.table("annotations")

    @property
    def marks(self) -> Table:
        """Instants of gpuperf.mark() and of NVTX."""
        return self.table("marks")

    @property
    def counters(self) -> Table:
        """Values of gpuperf.counter()."""
        return self.table("counters")

    @property
    def names(self) -> Table:
        """Names that the job gave to threads, streams, categories and the like through NVTX."""
        return self.table("names")

    @property
    def resources(self) -> Table:
        """Contexts and streams as CUDA made and destroyed them."""
        return self.table("resources")

    @property
    def losses(self) -> Table:
        """Records that existed and are not in the trace, by reason, kind and time."""
        return self.table("losses")

    @property
    def outages(self) -> Table:
        """Time that was not captured."""
        return self.table("outages")

    @property
    def clock_pairs(self) -> Table:
        """Host and device times of the same instants."""
        return self.table("clock_pairs")

    def table(self, name: str) -> Table:
        """The table of that name, one of TABLES.

        Raises:
            KeyError: there is no such table.
        """
        if name not in self.TABLES:
            raise KeyError(f"a trace has no table {name!r}, only {', '.join(self.TABLES)}")
        _ = self._native
        return self._tables.setdefault(name, Table(self._source, name))

    # ---------------------------------------------------------------------------------------------------- filters

    def filter(
        self,
        *,
        time: str | Bounds | None = None,
        steps: int | str | slice | tuple[int | None, int | None] | None = None,
        annotation: str | None = None,
        nvtx: str | None = None,
        stream: Numbers | None = None,
        device: Numbers | None = None,
        name: Name | None = None,
    ) -> Trace:
        """The same trace with only those rows in its tables that all filters want.

        Args:
            time: from … to, `("1s", "2s")` or `"1s:2s"` since the session's start (negative: to its end), or integers
                on the host clock.
            steps: as a Python slice of the steps, `slice(10, 20)` or `"10:20"`, or one step's number.
            annotation: while an annotation of that name was open.
            nvtx: `NAME`, `NAME@DOMAIN` or `NAME@` (the default domain): while such an NVTX range was open.
            stream: ids of CUDA streams, as the column `stream` tells them.
            device: CUDA ordinals.
            name: a glob for the whole name, or a compiled regular expression to search for. Kernels are known by their
                demangled and mangled names, calls by function and by the kernel that they launch.

        Rows that reach over an edge of a time are wanted, and are not cut. A table without such a column stays whole.

        Raises:
            RegionError: an argument is no such thing. What the trace does not have is found out when rows are read.
        """
        return _of(
            self._source.restricted(
                time=time, steps=steps, annotation=annotation, nvtx=nvtx, stream=stream, device=device, name=name
            )
        )

    # ------------------------------------------------------------------------------------------------------ facts

    @property
    def path(self) -> str:
        """The first file, absolute."""
        return self._source.file.path

    @property
    def parts(self) -> int:
        """Files of this trace that were read."""
        return int(self._facts["parts"])

    @property
    def bytes(self) -> int:
        """Size of all parts."""
        return int(self._facts["bytes"])

    @property
    def uuid(self) -> str:
        """The same in all parts, different in every run."""
        return str(self._facts["uuid"])

    @property
    def producer(self) -> str:
        """Who wrote it: "gpuperf 0.1.0"."""
        return str(self._facts["producer"])

    @property
    def pid(self) -> int | None:
        """The job's process id."""
        return cast("int | None", self._facts["pid"])

    @property
    def host(self) -> str:
        """The machine's name."""
        return str(self._facts["host"])

    @property
    def command_line(self) -> tuple[str, ...]:
        """The job's, secrets redacted."""
        return tuple(self._facts["command_line"])

    @property
    def rank(self) -> int | None:
        """The process's rank, if a launcher told it."""
        return cast("int | None", self._completeness["rank"])

    @property
    def world_size(self) -> int | None:
        """The number of ranks, if a launcher told it."""
        return cast("int | None", self._completeness["world_size"])

    @property
    def begin_host_ns(self) -> int:
        """When the session started; what `"1s"` counts from."""
        return int(self._completeness["begin_host_ns"])

    @property
    def end_host_ns(self) -> int:
        """When the last chunk was cut: all that was seen up to then is in the trace."""
        return int(self._completeness["end_host_ns"])

    @property
    def cleanly_closed(self) -> bool:
        """The session ended in order. False: the process was killed, or still runs."""
        return bool(self._facts["cleanly_closed"])

    @property
    def complete(self) -> bool:
        """Cleanly closed, nothing damaged, no record known to be lost. Of the whole trace, whatever is filtered."""
        return bool(self._completeness["complete"])

    @property
    def damages(self) -> tuple[Damage, ...]:
        """Stretches that could not be read, the first 1,000 of them."""
        return tuple(Damage(*damage) for damage in self._completeness["damages"])

    def summary(self) -> dict[str, Any]:
        """What `gpuperf report --json` says of this trace, or of the region that it is restricted to (docs/report.md).

        Raises:
            RegionError: the trace is restricted by stream, device or name, which a report knows nothing of.
        """
        _ = self._native
        wanted = self._source.wanted
        if wanted._replace(region=regions.Region()):
            raise RegionError(f"{self.path}: a summary can be of a region, and not of streams, devices or names")
        from gpuperf.report import summary

        return summary(self.path, region=wanted.region)

    # ---------------------------------------------------------------------------------------------------- closing

    def close(self) -> None:
        """Closes the files, also of what was filtered of this trace. Tables that have been read stay."""
        self._source.file.close()
        self._tables.clear()

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self, exception: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._source)

    def __reduce__(self) -> tuple[Any, ...]:
        return _of, (self._source,)

    @property
    def _native(self) -> _analysis.Trace:
        return self._source.file.native

    @property
    def _facts(self) -> dict[str, Any]:
        return self._native.facts

    @property
    def _completeness(self) -> dict[str, Any]:
        with _reader.errors():
            return self._native.completeness()


def _of(source: Source) -> Trace:
    trace = Trace.__new__(Trace)
    trace._source = source
    trace._tables = {}
    return trace
