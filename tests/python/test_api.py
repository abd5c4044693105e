"""import gpuperf: markers, annotations, start and stop, errors. No GPU is needed: what the library sees is recorded."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import textwrap
import types
from collections.abc import AsyncIterator, Iterator

import gpuperf
import pytest
from gpuperf import api, errors
from hypothesis import given
from hypothesis import strategies as st


class Recorded(gpuperf.annotate):
    """annotate() that also writes down when it opens and closes, in the order of the thread."""

    log: list[str] = []  # noqa: RUF012 - one for all on purpose: one thread has one stack

    def __enter__(self) -> Recorded:
        self.log.append(f"+{self.name}")
        return super().__enter__()

    def __exit__(self, *error: object) -> bool:
        self.log.append(f"-{self.name}")
        return super().__exit__(*error)


@pytest.fixture
def log() -> list[str]:
    Recorded.log.clear()
    return Recorded.log


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


# --- Markers -------------------------------------------------------------------------------------------------------


def test_markers_before_a_start_do_nothing() -> None:
    gpuperf.step()
    gpuperf.step(8)
    gpuperf.step(samples=8, tokens=4096)
    gpuperf.mark("checkpoint saved")
    gpuperf.counter("loss", 0.25)
    gpuperf.counter("loss", 1)
    with gpuperf.annotate("epoch"):
        pass
    gpuperf.stop()
    assert gpuperf.state == "idle"
    assert gpuperf.output_path is None
    assert gpuperf.stats() == api.Stats(*[0] * len(api.Stats._fields))
    assert gpuperf.flush(0) is False


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gpuperf.step(1, 2, 3), TypeError, "at most 2"),
        (lambda: gpuperf.step(batches=1), TypeError, "unexpected argument 'batches'"),
        (lambda: gpuperf.step(1, samples=2), TypeError, "'samples' twice"),
        (lambda: gpuperf.step("8"), TypeError, "integer"),
        (lambda: gpuperf.step(samples=-1), ValueError, "samples must not be negative"),
        (lambda: gpuperf.step(tokens=1 << 63), OverflowError, "int"),
        (lambda: gpuperf.mark(), TypeError, "takes 1 argument"),
        (lambda: gpuperf.mark(b"bytes"), TypeError, "must be a str"),
        (lambda: gpuperf.mark("\ud800"), UnicodeEncodeError, "surrogates"),
        (lambda: gpuperf.counter("loss"), TypeError, "takes 2 arguments"),
        (lambda: gpuperf.counter("loss", "low"), TypeError, "real number"),
        (lambda: gpuperf.annotate(), TypeError, "name"),
        (lambda: gpuperf.annotate("\ud800"), UnicodeEncodeError, "surrogates"),
        (lambda: gpuperf.flush(-1), ValueError, "timeout"),
        (lambda: gpuperf.flush(1e9), ValueError, "timeout"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(call: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@given(st.text(alphabet=st.characters(codec="utf-8")), st.floats())
def test_any_text_and_any_number_is_taken(name: str, value: float) -> None:
    gpuperf.mark(name)
    gpuperf.counter(name, value)
    with gpuperf.annotate(name) as annotation:
        assert annotation.name == name


def test_the_module_lists_its_names_and_no_others() -> None:
    assert set(gpuperf.__all__) <= set(dir(gpuperf))
    assert all(getattr(gpuperf, name, None) is not None for name in set(gpuperf.__all__) - {"output_path"})
    with pytest.raises(AttributeError, match="no attribute 'starrt'"):
        gpuperf.starrt  # noqa: B018


def test_markers_have_signatures_for_help_and_editors() -> None:
    assert str(inspect.signature(gpuperf.step)) == "(samples=None, tokens=None)"
    assert list(inspect.signature(gpuperf.mark).parameters) == ["name"]
    assert list(inspect.signature(gpuperf.counter).parameters) == ["name", "value"]


# --- annotate ------------------------------------------------------------------------------------------------------


def test_an_annotation_closes_after_an_exception_and_may_be_entered_again(log: list[str]) -> None:
    annotation = Recorded("a")
    with pytest.raises(KeyError), annotation, annotation:
        raise KeyError
    assert log == ["+a", "+a", "-a", "-a"]


def test_a_decorated_function_keeps_its_name_result_and_exception(log: list[str]) -> None:
    @Recorded("f")
    def function(x: int, *, y: int = 1) -> int:
        """Says so."""
        return x // y

    assert (function.__name__, function.__doc__) == ("function", "Says so.")
    assert function(6, y=2) == 3
    with pytest.raises(ZeroDivisionError):
        function(1, y=0)
    assert log == ["+f", "-f", "+f", "-f"]


def test_a_decorated_generator_is_annotated_only_while_it_runs(log: list[str]) -> None:
    @Recorded("g")
    def generator() -> Iterator[object]:
        received = yield "first"
        log.append(f"received {received}")
        try:
            yield "second"
        except ValueError as error:
            yield f"caught {error}"
        return "end"

    assert inspect.isgeneratorfunction(generator)
    iterator = generator()
    assert log == []
    assert next(iterator) == "first"
    log.append("outside")
    assert iterator.send("it") == "second"
    assert iterator.throw(ValueError("this")) == "caught this"
    with pytest.raises(StopIteration) as stop:
        next(iterator)
    assert stop.value.value == "end"
    assert log == ["+g", "-g", "outside", "+g", "received it", "-g", "+g", "-g", "+g", "-g"]


def test_a_closed_generator_cleans_up_inside_its_annotation(log: list[str]) -> None:
    @Recorded("g")
    def generator() -> Iterator[int]:
        try:
            yield 1
        finally:
            log.append("cleaned")

    iterator = generator()
    next(iterator)
    iterator.close()
    assert log == ["+g", "-g", "+g", "cleaned", "-g"]


def test_tasks_that_take_turns_do_not_close_each_others_annotations(log: list[str]) -> None:
    @Recorded("task")
    async def task(name: str) -> str:
        for turn in range(2):
            log.append(f"{name}{turn}")
            await asyncio.sleep(0)
        return name

    async def both() -> list[str]:
        return await asyncio.gather(task("a"), task("b"))

    assert inspect.iscoroutinefunction(task)
    assert asyncio.run(both()) == ["a", "b"]
    # Opened and closed around every piece, so never two open at once on this thread.
    assert all(log[i].startswith("+") and log[i + 1][0] in "-ab" for i in range(len(log) - 1) if log[i][0] == "+")
    depth = 0
    for entry in log:
        depth += {"+": 1, "-": -1}.get(entry[0], 0)
        assert 0 <= depth <= 1
    assert [entry for entry in log if entry[0] in "ab"] == ["a0", "b0", "a1", "b1"]


def test_a_decorated_async_function_raises_and_is_cancelled_as_before(log: list[str]) -> None:
    @Recorded("f")
    async def sleeper() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise

    async def cancel() -> None:
        job = asyncio.ensure_future(sleeper())
        await asyncio.sleep(0)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job

    asyncio.run(cancel())
    assert log == ["+f", "-f", "+f", "cancelled", "-f"]


def test_a_decorated_async_generator(log: list[str]) -> None:
    @Recorded("g")
    async def numbers(count: int) -> AsyncIterator[int]:
        try:
            for number in range(count):
                await asyncio.sleep(0)
                yield number
        finally:
            log.append("cleaned")

    async def collect() -> list[int]:
        return [number async for number in numbers(3)]

    async def leave_early() -> None:
        iterator = numbers(3)
        assert await iterator.__anext__() == 0
        await iterator.aclose()
        with pytest.raises(StopAsyncIteration):
            await iterator.__anext__()

    assert inspect.isasyncgenfunction(numbers)
    assert asyncio.run(collect()) == [0, 1, 2]
    asyncio.run(leave_early())
    assert log.count("cleaned") == 2
    assert [entry for entry in log if entry != "cleaned"] == ["+g", "-g"] * (log.count("+g"))


@given(st.recursive(st.just([]), lambda inner: st.lists(inner, max_size=3), max_leaves=12))
def test_decorated_generators_nest(tree: list[object]) -> None:
    """Nested generators of any shape leave the thread's stack balanced at each suspension."""
    depth = 0

    class Counted(gpuperf.annotate):
        def __enter__(self) -> Counted:
            nonlocal depth
            depth += 1
            return self

        def __exit__(self, *error: object) -> bool:
            nonlocal depth
            depth -= 1
            return False

    @Counted("level")
    def walk(node: list[object]) -> Iterator[int]:
        yield depth
        for child in node:
            yield from walk(child)

    def count(node: list[object]) -> int:
        return 1 + sum(map(count, node))

    seen = 0
    for inside in walk(tree):
        assert depth == 0
        assert inside >= 1
        seen += 1
    assert seen == count(tree)


# --- start, stop, profile: how a status becomes a return value, a warning or an exception ---------------------------


class Library(types.SimpleNamespace):
    """In the place of gpuperf._core: starts with the status it is told."""

    def __init__(self, status: str, message: str = "") -> None:
        from gpuperf import _core

        constants = {name: getattr(_core, name) for name in dir(_core) if name.isupper()}
        super().__init__(**constants, calls=[], status=constants[status], message=message, path="")

    def start(self, options: list[tuple[str, str | None]]) -> int:
        self.calls.append(("start", dict(options)))
        return self.status

    def stop(self) -> int:
        self.calls.append(("stop",))
        return self.OK

    def at_exit(self) -> None:
        self.calls.append(("at_exit",))

    def last_error(self) -> str:
        return self.message

    def output_path(self) -> str:
        return self.path


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> type[Library]:
    def install(status: str, message: str = "") -> Library:
        fake = Library(status, message)
        monkeypatch.setattr(api, "_core", fake)
        monkeypatch.setattr(api.hooks, "install", lambda wanted=None: None)
        monkeypatch.setattr(api, "_output", api.DEFAULT)
        return fake

    return install  # type: ignore[return-value]


def test_start_hands_on_what_was_given_and_nothing_else(library: type[Library]) -> None:
    fake = library("OK")
    assert gpuperf.start() is True
    assert gpuperf.start("a.gpuperf", force=True, quiet=False, ring_bytes="1M", flush_ms=50) is True
    assert gpuperf.start(None) is True
    assert [call[1] for call in fake.calls] == [
        {},
        {"output": "a.gpuperf", "force": "1", "quiet": "0", "ring-bytes": "1048576", "flush-ms": "50"},
        {"output": None},
    ]


def test_a_second_start_changes_nothing_and_says_so(library: type[Library], capsys: pytest.CaptureFixture[str]) -> None:
    fake = library("OK")
    assert gpuperf.start("one.gpuperf") is True
    fake.status = fake.ALREADY_RUNNING
    assert gpuperf.start() is True
    assert gpuperf.start("one.gpuperf") is True
    assert capsys.readouterr().err == ""
    assert gpuperf.start("two.gpuperf") is True
    assert capsys.readouterr().err == (
        "gpuperf: start('two.gpuperf') changed nothing: a session runs already; stop() it first\n"
    )


@pytest.mark.parametrize("status", ["UNAVAILABLE", "BUSY", "UNEXPECTED"])
def test_a_machine_that_cannot_be_captured_costs_one_line(
    status: str, library: type[Library], capsys: pytest.CaptureFixture[str]
) -> None:
    library(status, "there is no GPU; run gpuperf doctor")
    assert gpuperf.start() is False
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "gpuperf: not capturing: there is no GPU; run gpuperf doctor\n"


def test_a_disabled_start_is_silent(library: type[Library], capsys: pytest.CaptureFixture[str]) -> None:
    library("DISABLED")
    assert gpuperf.start() is False
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("status", "error", "built_in"),
    [
        ("INVALID_OPTION", gpuperf.OptionError, ValueError),
        ("OUTPUT_EXISTS", gpuperf.OutputExistsError, FileExistsError),
        ("OUTPUT_UNWRITABLE", gpuperf.OutputUnwritableError, OSError),
    ],
)
def test_a_wrong_use_raises(
    status: str,
    error: type[Exception],
    built_in: type[Exception],
    library: type[Library],
    capsys: pytest.CaptureFixture[str],
) -> None:
    library(status, "what, why, what to do")
    with pytest.raises(error, match=r"^what, why, what to do$") as caught:
        gpuperf.start("x.gpuperf", ring_bytes=5)
    assert capsys.readouterr().err == ""
    # What the environment set is not the program's mistake: a line, and the job runs on.
    assert gpuperf.start() is False
    assert capsys.readouterr().err == "gpuperf: not capturing: what, why, what to do\n"
    assert isinstance(caught.value, built_in)
    assert isinstance(caught.value, gpuperf.GpuperfError)
    assert caught.value.exit_code == 2


def test_options_are_checked_before_anything_starts(library: type[Library]) -> None:
    fake = library("OK")
    with pytest.raises(gpuperf.OptionError, match="did you mean ring_bytes"):
        gpuperf.start(ring_byte=1)
    with pytest.raises(gpuperf.OptionError, match="ring-bytes: 'many' does not fit"):
        gpuperf.start(ring_bytes="many")
    with pytest.raises(gpuperf.OptionError, match="output: 3 does not fit"):
        gpuperf.start(3)  # type: ignore[arg-type]
    assert fake.calls == []


def test_profile_stops_what_it_started_also_after_an_exception(library: type[Library]) -> None:
    fake = library("OK")
    fake.path = "/data/run.gpuperf"
    session = gpuperf.profile("run.gpuperf", quiet=True)
    with pytest.raises(KeyError), session:
        raise KeyError
    assert session.capturing
    assert session.output_path == "/data/run.gpuperf"
    assert [call[0] for call in fake.calls] == ["start", "stop"]


def test_profile_inside_a_session_leaves_that_session_running(library: type[Library]) -> None:
    fake = library("ALREADY_RUNNING")
    with gpuperf.profile() as session:
        assert session.capturing
    assert [call[0] for call in fake.calls] == ["start"]


def test_profile_without_a_gpu_runs_the_body(library: type[Library], capsys: pytest.CaptureFixture[str]) -> None:
    fake = library("UNAVAILABLE", "no GPU")
    with gpuperf.profile() as session:
        assert not session.capturing
        assert session.output_path is None
    assert [call[0] for call in fake.calls] == ["start"]
    assert capsys.readouterr().err == "gpuperf: not capturing: no GPU\n"


def test_a_warning_survives_a_closed_stderr() -> None:
    done = run_python("import sys; from gpuperf import errors; sys.stderr = None; errors.warn('heard')")
    assert (done.returncode, done.stderr) == (0, "gpuperf: heard\n")


def test_errors_are_told_apart_by_their_exit_codes() -> None:
    assert errors.GpuperfError("x").exit_code == 1
    assert errors.UnavailableError("x").exit_code == 6
    assert str(errors.OutputExistsError("x exists")) == "x exists"


# --- In a process of its own ---------------------------------------------------------------------------------------


def test_importing_loads_neither_the_library_nor_torch() -> None:
    done = run_python(
        "import sys; before = set(sys.modules); import gpuperf; print(*sorted(set(sys.modules) - before))",
        CUDA_INJECTION64_PATH="",
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "gpuperf" in loaded
    assert not loaded & {"gpuperf._core", "gpuperf.api", "gpuperf._analysis", "torch", "rich", "json", "argparse"}


def test_disabled_wins_over_a_start() -> None:
    code = "import gpuperf; print(gpuperf.start('never.gpuperf'), gpuperf.state)"
    done = run_python(code, GPUPERF_DISABLE="1")
    assert (done.stdout.split(), done.stderr) == (["False", "idle"], "")


@pytest.mark.parametrize(("argument", "variable"), [("", "1"), ("disable=True", ""), ("disable=False", "1")])
def test_disabled_is_silent_about_wrong_variables(argument: str, variable: str) -> None:
    code = f"import gpuperf; print(gpuperf.start({argument}))"
    done = run_python(code, GPUPERF_DISABLE=variable, GPUPERF_FLUSH_MS="soon", GPUPERF_LOG="loud", GPUPERF_OUTPT="x")
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_job_without_a_gpu_gets_one_warning_and_runs_on(tmp_path: object) -> None:
    code = """
        import gpuperf, os
        os.chdir(os.environ["FOLDER"])
        started = gpuperf.start()
        gpuperf.step(samples=4)
        gpuperf.stop()
        print(started, gpuperf.state, os.listdir("."))
    """
    done = run_python(code, FOLDER=str(tmp_path), LD_LIBRARY_PATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "idle", "[]"]
    lines = done.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("gpuperf: not capturing: ")


def test_a_forked_child_is_silent_and_may_call_everything() -> None:
    done = run_python(
        """
        import multiprocessing, warnings
        warnings.simplefilter("ignore")
        import gpuperf

        def child(queue):
            gpuperf.step(); gpuperf.mark("x"); gpuperf.counter("x", 1)
            with gpuperf.annotate("a"):
                pass
            gpuperf.stop()
            queue.put(gpuperf.state)

        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        gpuperf.step()
        process = context.Process(target=child, args=(queue,))
        process.start()
        print(queue.get())
        process.join()
        print(process.exitcode)
        """
    )
    assert done.stderr == ""
    assert done.stdout.split()[1] == "0"
    assert done.stdout.split()[0] in ("idle", "forked")
