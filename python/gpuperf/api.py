"""The functions of `import gpuperf`.

Every one may be called from any thread, before start, after stop and in a forked child; there the markers do nothing.
Mistakes in the call raise (gpuperf.errors); a machine that cannot be captured, or another tool that holds CUPTI, costs
one warning line on stderr and the job runs on.
"""

from __future__ import annotations

import functools
import inspect
import os
import types
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from gpuperf import _libpath, errors, hooks, options
from gpuperf._env import injected_library, is_on

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from gpuperf import _core
else:
    _core = _libpath.load_core()

Output = str | os.PathLike[str]
_Function = TypeVar("_Function", bound="Callable[..., Any]")


class _Default:
    """The type of `DEFAULT`."""

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT = _Default()
"""As `output`: the name that GPUPERF_OUTPUT gives, else gpuperf-<script>-r<rank>-<pid>.gpuperf."""

_output: Output | _Default | None = DEFAULT
"""What the running session was started with."""

_STATES = ("idle", "running", "stopped", "yielded", "forked", "unwritable")

_own_session = False
"""Whether the session was begun here, and not for `gpuperf run`, whose capture lasts as long as the process."""

step = _core.step
mark = _core.mark
counter = _core.counter


class Stats(NamedTuple):
    """Counts since the session started.

    Attributes:
        kernels: kernels seen.
        copies: copies seen.
        memsets: memsets seen.
        calls: finished CUDA calls.
        steps: calls of step().
        lost: records that are known not to be in the trace, whatever the reason.
        unjoined: device records whose call is not in the trace; not part of `lost`.
        written_bytes: size of the trace so far.
        callback_ns: estimate of the time that the job's threads spent in gpuperf.
        collector_cpu_ns: CPU time of gpuperf's own threads.
        ring_bytes: memory of the threads' rings.
        buffer_bytes_peak: most memory that activity buffers took.
        opened_calls: CUDA calls entered; minus `calls`, those that threads are inside of now.
        finalize_ns: how long the last stop took to detach CUPTI; 0 if it did not.
    """

    kernels: int
    copies: int
    memsets: int
    calls: int
    steps: int
    lost: int
    unjoined: int
    written_bytes: int
    callback_ns: int
    collector_cpu_ns: int
    ring_bytes: int
    buffer_bytes_peak: int
    opened_calls: int
    finalize_ns: int


def start(
    output: Output | _Default | None = DEFAULT,
    *,
    force: bool | None = None,
    quiet: bool | None = None,
    **more: object,
) -> bool:
    """Begins a capture that lasts to the next stop(), or to the end of the process.

    While a session runs, another start() changes nothing. Under `gpuperf run` the capture is the run's: start() takes
    part in it, whatever it is given, and stop() does not end it: a script may serve both ways.

    Args:
        output: the trace file; `%h`, `%p`, `%r` and `%s` stand for host, pid, rank and script. None keeps live state
            only and writes nothing.
        force: replace an output file that stood before the run.
        quiet: no summary line at the end.
        **more: any other option of docs/options.md, with `_` for `-`.

    Returns:
        True if a session runs now. False if it cannot, with one warning line: no GPU, no CUPTI, another tool holds
        CUPTI, or an output or option that the environment chose cannot be used. False without a word for
        GPUPERF_DISABLE=1 or `disable=True`, and in a forked child of a captured process.

    Raises:
        OptionError: an option that does not exist or does not fit (a ValueError).
        OutputExistsError: `output` stood before the run and `force` is not set (a FileExistsError).
        OutputUnwritableError: `output` cannot be created (an OSError).
    """
    return _start(output, force=force, quiet=quiet, more=more) in (_core.OK, _core.ALREADY_RUNNING)


def _start(output: Output | _Default | None, *, force: bool | None, quiet: bool | None, more: dict[str, object]) -> int:
    """start(), but returns the library's status, OK only for a session that this call began."""
    global _output, _own_session
    if is_on("GPUPERF_DISABLE"):
        return _core.DISABLED
    given: dict[str, object] = dict(more)
    if not isinstance(output, _Default):
        given["output"] = output
    given.update((name, value) for name, value in (("force", force), ("quiet", quiet)) if value is not None)
    wanted = options.from_keywords(given)
    if ("disable", "1") in wanted:  # as the variable: without a word, whatever the environment says
        return _core.DISABLED
    of_run = _is_of_run()
    status = _core.start([] if of_run else wanted)
    if status in (_core.OK, _core.ALREADY_RUNNING):
        hooks.install(wanted=given.get("hooks"))
    if status in (_core.OK, _core.ALREADY_RUNNING) and of_run:
        return _core.ALREADY_RUNNING
    if status == _core.OK:
        _output = output
        _own_session = True
    if status in (_core.OK, _core.DISABLED):
        return status
    if status == _core.ALREADY_RUNNING:
        if isinstance(output, str | os.PathLike) and output != _output:
            errors.warn(f"start({os.fspath(output)!r}) changed nothing: a session runs already; stop() it first")
        return status
    message = _core.last_error() or f"start failed with status {status}"
    if status == _core.INVALID_OPTION and given.keys() - {"output", "force", "quiet"}:
        raise errors.OptionError(message)
    if status == _core.OUTPUT_EXISTS and "output" in given:
        raise errors.OutputExistsError(message)
    if status == _core.OUTPUT_UNWRITABLE and "output" in given:
        raise errors.OutputUnwritableError(message)
    errors.warn(f"not capturing: {message}")  # the machine's or the environment's fault, not the caller's
    return status


def stop() -> None:
    """Ends the session: waits for the GPU, writes the rest of the trace, detaches CUPTI, prints the summary line.

    Does nothing if none runs, and under `gpuperf run`, whose capture goes on to the end of the process. At the end of
    the interpreter it is called for you.
    """
    global _own_session
    if _is_of_run():
        return
    _own_session = False
    _core.stop()


def _is_of_run() -> bool:
    """Whether the session that runs, or would run now, is that of `gpuperf run` or of whoever had us injected."""
    library = injected_library()
    if library is None or _own_session or not os.path.isfile(library):  # CUDA passes over one that is not there
        return False
    return get_state() in ("idle", "running", "unwritable")


def flush(timeout: float = 5.0) -> bool:
    """Waits until everything that happened up to now is in the trace file.

    Args:
        timeout: seconds to wait at most.

    Returns:
        False if no session runs, if the time was too short, or if the disk refuses the trace.
    """
    if not isinstance(timeout, int | float):
        raise TypeError(f"timeout must be a number of seconds, not {type(timeout).__name__}")
    if not 0 <= timeout < (1 << 32) / 1000:  # nor is nan
        raise ValueError(f"timeout must be seconds, 0 or more, not {timeout!r}")
    milliseconds = int(timeout * 1000)
    return _core.flush(milliseconds) == _core.OK


def stats() -> Stats:
    """Counts since the session started; all 0 before the first."""
    return Stats(**_core.stats())


def get_state() -> str:
    """`gpuperf.state`: "idle", "running", "stopped", "yielded" (to torch.profiler), "forked", or "unwritable".

    "unwritable": a session runs, but the disk refuses its trace, which has ended; counts go on.
    """
    return _STATES[_core.state()]


def get_output_path() -> str | None:
    """`gpuperf.output_path`: the trace being written or last written, None before the first CUDA event."""
    return _core.output_path() or None


def version() -> str:
    """`gpuperf.__version__`."""
    return _core.version()


class profile:  # noqa: N801 - used as a verb, as torch.profiler.profile is
    """Captures the body of a `with` statement: start() before it, stop() after it, also after an exception.

    Takes the arguments of start(). If a session runs already, the body is part of that one, and it goes on afterwards.

        with gpuperf.profile("run.gpuperf") as session:
            train()
        print(session.output_path)

    Attributes:
        capturing: whether a session ran when the body began.
        output_path: the trace, None if there is none (yet).
    """

    def __init__(
        self,
        output: Output | _Default | None = DEFAULT,
        *,
        force: bool | None = None,
        quiet: bool | None = None,
        **more: object,
    ) -> None:
        self._start = functools.partial(_start, output, force=force, quiet=quiet, more=more)
        self._owner = False
        self.capturing = False

    def __enter__(self) -> profile:
        status = self._start()
        self._owner = status == _core.OK
        self.capturing = status in (_core.OK, _core.ALREADY_RUNNING)
        return self

    def __exit__(self, *_: object) -> None:
        if self._owner:
            self._owner = False
            stop()

    @property
    def output_path(self) -> str | None:
        """The trace, None if there is none (yet)."""
        return get_output_path() if self.capturing else None


class annotate(_core.Annotation):  # noqa: N801 - used as a verb
    """A named range: a context manager and a decorator.

        with gpuperf.annotate("checkpoint"):
            save()

        @gpuperf.annotate("forward")
        def forward(x): ...

    Annotations of one thread nest. A decorated generator or async function carries the annotation while its own code
    runs and not while it is suspended, so that tasks which take turns on a thread do not end each other's. For the same
    reason do not `await` or `yield` inside a `with` block of this class: decorate the function instead.

    Args:
        name: the annotation's name.
    """

    __slots__ = ()

    def __call__(self, function: _Function, /) -> _Function:
        """Decorates `function`."""
        if not callable(function) or inspect.isclass(function):
            raise TypeError(f"annotate decorates functions, not {function!r}; decorate the methods of a class")
        wrapper: Callable[..., Any]
        if inspect.iscoroutinefunction(function):

            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                return await _annotated(self, function(*args, **kwargs))

        elif inspect.isasyncgenfunction(function):

            async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
                iterator = function(*args, **kwargs)
                advance = iterator.asend(None)
                while True:
                    try:
                        item = await _annotated(self, advance)
                    except StopAsyncIteration:
                        return
                    try:
                        sent = yield item
                    except GeneratorExit:
                        await _annotated(self, iterator.aclose())
                        raise
                    except BaseException as error:
                        advance = iterator.athrow(error)
                    else:
                        advance = iterator.asend(sent)

        elif inspect.isgeneratorfunction(function):

            def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
                return (yield from _in_pieces(self, function(*args, **kwargs)))

        else:

            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return function(*args, **kwargs)

        return cast("_Function", functools.wraps(function)(wrapper))


def _in_pieces(annotation: annotate, inner: Any) -> Generator[Any, Any, Any]:
    """Runs a generator or coroutine; `annotation` is open from each resumption of it to its next suspension."""
    resume: Callable[[], Any] = functools.partial(inner.send, None)
    while True:
        try:
            with annotation:
                item = resume()
        except StopIteration as end:
            return end.value
        try:
            sent = yield item
        except GeneratorExit:
            with annotation:
                inner.close()
            raise
        except BaseException as error:
            resume = functools.partial(inner.throw, error)
        else:
            resume = functools.partial(inner.send, sent)


@types.coroutine
def _annotated(annotation: annotate, awaitable: Any) -> Generator[Any, Any, Any]:
    """`await awaitable`, in pieces."""
    inner = awaitable if isinstance(awaitable, types.CoroutineType) else awaitable.__await__()
    return (yield from _in_pieces(annotation, inner))
