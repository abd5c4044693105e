"""The real libgpuperf.so in a program that plays captures through stand-ins for the CUDA libraries (tests/fakes).

What the trace holds is compared, field by field, with what the replay really dispatched and delivered. Runs for every
build that is there (build/release, asan, tsan), or for the one that GPUPERF_TEST_BUILD names.
"""

from __future__ import annotations

import collections
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "python"))

import trace_decode  # noqa: E402
from replay_oracle import Oracle  # noqa: E402

Row = dict[str, Any]
CAPTURES = sorted((ROOT / "tests" / "data" / "captures").glob("*.gpcap*"))
RING_FULL, POOL_EMPTY, DROPPED, ZERO_TIME, REVERSED_TIME, NO_LAUNCH, UNREADABLE = range(1, 8)
CAPTURE_UNKNOWN = 2
FULL_LEVEL, GRAPH_LEVEL = 1, 3
KERNEL, COPY, MEMSET, PEER_COPY = "10", "1", "2", "22"
# Pace at which nothing may be lost, on any machine and with any sanitizer.
CALM = ["--interval-ns", "60000", "--speed", "1"]


def builds() -> list[Path]:
    named = os.environ.get("GPUPERF_TEST_BUILD")
    if named:
        return [Path(named).resolve()]
    return [ROOT / "build" / name for name in ("release", "asan", "tsan")]


class Job:
    """Runs gpuperf-replay under gpuperf and reads what came of it."""

    def __init__(self, build: Path, folder: Path) -> None:
        self.build = build
        self.folder = folder
        self.trace_path = folder / "run.gpuperf"
        self.json_path = folder / "replay.json"
        self.violations = folder / "violations.txt"
        self.capture: Path | None = None
        self.stderr = ""

    def environment(self, options: dict[str, str]) -> dict[str, str]:
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("GPUPERF_", "CUDA_"))}
        return (
            keep
            | {
                "LD_LIBRARY_PATH": str(self.build / "fakes"),
                "CUDA_INJECTION64_PATH": str(self.build / "lib" / "libgpuperf.so"),
                "GPUPERF_OUTPUT": str(self.trace_path),
                "GPUPERF_FAKE_VIOLATIONS": str(self.violations),
                "ASAN_OPTIONS": "detect_leaks=0",
            }
            | options
        )

    def command(self, arguments: list[str]) -> list[str]:
        return [str(self.build / "fakes" / "gpuperf-replay"), "--json", str(self.json_path), *arguments]

    def save(self, *arguments: str) -> Path:
        """Writes a synthetic capture and plays that from now on."""
        self.capture = self.folder / "synthetic.gpcap"
        subprocess.run(
            self.command(["--save", str(self.capture), *arguments]), check=True, timeout=120, env=self.environment({})
        )
        return self.capture

    def run(self, *arguments: str, options: dict[str, str] | None = None, code: int = 0) -> Row:
        """Runs to the end; the exit code must be the job's own. Returns the replay's JSON."""
        played = [str(self.capture)] if self.capture else []
        done = subprocess.run(
            self.command([*played, *arguments]),
            capture_output=True,
            text=True,
            timeout=240,
            env=self.environment(options or {}),
            check=False,
        )
        self.stderr = done.stderr
        assert done.returncode == code, f"exit code {done.returncode}\n{done.stderr[-4000:]}"
        assert done.stdout == ""
        replay: Row = json.loads(self.json_path.read_text())
        assert replay["violations"] == []
        return replay

    def start(self, *arguments: str, options: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Starts and does not wait."""
        return subprocess.Popen(
            self.command(list(arguments)),
            env=self.environment(options or {}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def trace(self) -> trace_decode.Trace:
        return trace_decode.read(self.trace_path)


@pytest.fixture(params=builds(), ids=lambda build: build.name)
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Job:
    build: Path = request.param
    for needed in (build / "lib" / "libgpuperf.so", build / "fakes" / "gpuperf-replay"):
        if not needed.exists():
            pytest.skip(f"{needed} is not built (make test builds it)")
    return Job(build, tmp_path)


def table_rows(table: trace_decode.Table) -> list[Row]:
    names = list(table)
    return [
        dict(zip(names, values, strict=True)) for values in zip(*(table[name].tolist() for name in names), strict=True)
    ]


def by_stream(rows: list[Row]) -> dict[tuple[int, ...], list[Row]]:
    out = collections.defaultdict(list)
    for row in rows:
        out[tuple(int(row[n]) for n in ("device", "context", "stream", "channel"))].append(row)
    return dict(out)


def assert_records(table: trace_decode.Table, expected: list[Row], what: str, ordered: bool = True) -> None:
    """Every stream's rows equal the raw records in every field that the record has, in order of delivery or of time."""
    seen, wanted = by_stream(table_rows(table)), by_stream(expected)
    if not ordered:
        for rows in (*seen.values(), *wanted.values()):
            rows.sort(key=lambda row: (row["start"], row["correlation"]))
    assert {k: len(v) for k, v in seen.items()} == {k: len(v) for k, v in wanted.items()}, what
    for stream, rows in wanted.items():
        for i, (row, want) in enumerate(zip(seen[stream], rows, strict=True)):
            got = {name: row[name] if name == "name" else int(row[name]) for name in want}
            assert got == want, f"{what} {i} of stream {stream}"


def assert_calls(trace: trace_decode.Trace, oracle: Oracle) -> None:
    """Every thread's calls in order, each with what its parameters say."""
    expected = oracle.calls()
    seen = collections.defaultdict(list)
    for row in table_rows(trace.calls):
        seen[row["tid"]].append(row)
    for tid, calls in expected.items():
        rows = seen.pop(tid, [])
        names = [row["name"] for row in rows]
        assert names == [call["name"] for call in calls], f"thread {tid}"
        for i, (row, want) in enumerate(zip(rows, calls, strict=True)):
            got = {name: row.get(name, 0) if isinstance(want[name], str) else int(row.get(name, 0)) for name in want}
            if oracle.overlapping_captures and got.get("capture") == CAPTURE_UNKNOWN:
                want = want | {"capture": CAPTURE_UNKNOWN}
            assert got == want, f"call {i} of thread {tid}"
            assert row["enter"] <= row["exit"]
    # Threads that the replay did not play: only gpuperf's own, and those are not traced.
    assert dict(seen) == {}


def assert_whole(trace: trace_decode.Trace, oracle: Oracle) -> None:
    """The trace holds everything that was played, and says that nothing is missing."""
    assert_calls(trace, oracle)
    assert_records(trace.kernels, oracle.records(10), "kernel")
    assert_records(trace.copies, [*oracle.records(1), *oracle.records(22)], "copy", ordered=False)
    assert_records(trace.memsets, oracle.records(2), "memset")
    assert trace.lost() == {}
    launched = set(trace.calls["correlation"].tolist())
    for table in (trace.kernels, trace.copies, trace.memsets):
        if table:
            assert set(table["correlation"].tolist()) <= launched


# ------------------------------------------------------------------------------------------------------ nothing wrong


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name.split(".")[0])
def test_a_real_capture_comes_out_whole(job: Job, capture: Path) -> None:
    job.capture = capture
    replay = job.run("--speed", "0.5")
    trace = job.trace()
    assert trace.clean
    assert_whole(trace, Oracle(capture, replay))


def test_a_synthetic_capture_comes_out_whole(job: Job) -> None:
    capture = job.save("--threads", "3", "--operations", "3000", "--gpus", "2", *CALM[:2])
    replay = job.run(*CALM[2:], "--loops", "2")
    trace = job.trace()
    assert trace.clean
    assert_whole(trace, Oracle(capture, replay))


def test_a_long_run_goes_on_in_parts(job: Job) -> None:
    """Each part is a whole file of at most the size allowed, and together they hold everything once."""
    job.save("--threads", "2", "--operations", "3000", *CALM[:2])
    limit = 1 << 20
    replay = job.run(*CALM[2:], "--loops", "40", options={"GPUPERF_MAX_PART_BYTES": str(limit)})
    paths = sorted(job.folder.glob("run.gpuperf*"))
    assert len(paths) >= 2
    assert [path.name for path in paths[1:]] == [f"run.gpuperf.{part:04}" for part in range(1, len(paths))]
    parts = [trace_decode.read(path) for path in paths]
    assert all(part.clean for part in parts)
    assert all(path.stat().st_size <= limit for path in paths)
    assert sum(trace_decode.rows(part.kernels) for part in parts) == replay["pushed"][KERNEL]
    correlations = [set(part.calls["correlation"].tolist()) for part in parts]
    assert sum(map(len, correlations)) == len(set.union(*correlations))


def test_threads_that_run_freely(job: Job) -> None:
    capture = job.save("--threads", "8", "--operations", "1500", *CALM[:2])
    replay = job.run(*CALM[2:], "--concurrent")
    assert_whole(job.trace(), Oracle(capture, replay))


def test_correlation_ids_pass_2_to_the_32(job: Job) -> None:
    capture = job.save("--threads", "3", "--operations", "1500", *CALM[:2])
    replay = job.run(*CALM[2:], "--wrap-correlation", "--loops", "2")
    trace = job.trace()
    assert_whole(trace, Oracle(capture, replay))
    assert int(trace.calls["correlation"].min()) < 2**32 <= int(trace.calls["correlation"].max())


def test_records_of_cuda_12(job: Job) -> None:
    capture = job.save("--threads", "1", "--operations", "1500", *CALM[:2])
    replay = job.run(*CALM[2:], "--scenario", "cupti-12")
    assert_whole(job.trace(), Oracle(capture, replay))


def test_calls_without_parameters(job: Job) -> None:
    """A driver newer than the headers may give a function no parameter struct: the call is still a call."""
    capture = job.save("--operations", "1500", *CALM[:2])
    replay = job.run(*CALM[2:], "--scenario", "no-parameters")
    trace = job.trace()
    expected = Oracle(capture, replay).calls()
    assert trace_decode.rows(trace.calls) == sum(map(len, expected.values()))
    assert trace_decode.rows(trace.kernels) == replay["pushed"][KERNEL]
    assert trace.lost() == {}


def test_graphs_as_a_whole_end_with_the_first_launch_of_an_older_graph(job: Job) -> None:
    """CUDA would crash in that launch: the level is given up before, once, and the trace says from when on."""
    capture = job.save("--threads", "3", "--operations", "1500", *CALM[:2])
    replay = job.run(*CALM[2:], options={"GPUPERF_GRAPHS": "graph"})
    trace = job.trace()
    assert_whole(trace, Oracle(capture, replay))
    assert [row["level"] for row in trace.level_changes] == [GRAPH_LEVEL, FULL_LEVEL]
    assert trace.level_changes[0]["host_ns"] < trace.level_changes[1]["host_ns"]
    assert len([line for line in job.stderr.splitlines() if "CUDA graph from before this session" in line]) == 1


def test_steps_are_marked(job: Job) -> None:
    job.run("--steps", "--threads", "2", "--loops", "5", "--speed", "1", "--operations", "200")
    assert [step["index"] for step in job.trace().steps] == list(range(10))


# ------------------------------------------------------------------------------------------------- losses are counted


@pytest.mark.parametrize(
    ("fault", "counter", "reason", "missing"),
    [
        ("zero-timestamps:7", "zero_timestamps", ZERO_TIME, True),
        ("reversed-timestamps:11", "reversed_timestamps", REVERSED_TIME, True),
        ("dropped:13", "dropped", DROPPED, True),
        ("no-launch:17", "no_launch", NO_LAUNCH, False),
        ("unknown-kind:101", "unknown_records", UNREADABLE, False),
    ],
)
def test_each_loss_is_counted_exactly(job: Job, fault: str, counter: str, reason: int, missing: bool) -> None:
    replay = job.run("--operations", "2000", *CALM, "--scenario", fault)
    trace = job.trace()
    injected = replay[counter]
    assert injected > 0
    assert trace.lost() == {reason: injected}
    kernels = replay["pushed"][KERNEL] - (injected if missing else 0)
    assert trace_decode.rows(trace.kernels) == kernels
    assert trace_decode.rows(trace.copies) == replay["pushed"][COPY] + replay["pushed"][PEER_COPY]
    assert trace_decode.rows(trace.memsets) == replay["pushed"][MEMSET]
    for loss in trace.losses:
        assert 0 < loss["first_host_ns"] <= loss["last_host_ns"]


@pytest.mark.parametrize("version", ["", "cupti-12"])
def test_an_empty_pool_is_counted_and_crashes_no_cupti(job: Job, version: str) -> None:
    """Far more records at once than the pool holds: what CUPTI cannot store it drops and counts."""
    faults = ["--scenario", version] if version else []
    options = {"GPUPERF_POOL_BYTES": "65536", "GPUPERF_RING_BYTES": "16777216"}
    replay = job.run("--operations", "20000", "--threads", "1", *faults, options=options)
    trace = job.trace()
    lost = trace.lost()
    held = sum(trace_decode.rows(table) for table in (trace.kernels, trace.copies, trace.memsets))
    assert lost.get(POOL_EMPTY, 0) == replay["null_buffers"]
    assert lost.get(DROPPED, 0) == replay["dropped"]
    assert held + replay["dropped"] == sum(replay["pushed"].values())
    if version:
        assert replay["null_buffers"] == 0  # 12.6 would have died: it is given a buffer beyond the limit
    else:
        assert replay["null_buffers"] > 0, "the pool was never empty: the test proves nothing"


def test_a_full_ring_is_counted(job: Job) -> None:
    capture = job.save("--operations", "20000", "--threads", "2")
    replay = job.run(options={"GPUPERF_RING_BYTES": "4096", "GPUPERF_POOL_BYTES": "268435456"})
    trace = job.trace()
    played = sum(map(len, Oracle(capture, replay).calls().values()))
    missing = sum(loss["count"] for loss in trace.losses if loss["reason"] == RING_FULL)
    assert missing > 0, "the ring was never full: the test proves nothing"
    assert trace_decode.rows(trace.calls) + missing == played
    # Their records are in the trace, and each says that its call is not.
    device = [trace.kernels, trace.copies, trace.memsets]
    assert sum(map(trace_decode.rows, device)) == sum(replay["pushed"].values())
    called = set(trace.calls["correlation"].tolist())
    unjoined = sum(c not in called for table in device for c in table["correlation"].tolist())
    assert trace.lost()[NO_LAUNCH] == unjoined


# ------------------------------------------------------------------------------------------- no GPU, a busy slot, …


def one_line(job: Job) -> str:
    lines = [line for line in job.stderr.splitlines() if line.startswith("gpuperf:") or "gpuperf" in line.split()[:1]]
    ours = [line for line in job.stderr.splitlines() if "gpuperf-replay:" not in line and "fake" not in line]
    assert len(ours) == 1, job.stderr
    return (lines or ours)[0]


def test_a_busy_slot_is_said_and_the_job_goes_on(job: Job) -> None:
    job.run("--scenario", "busy", "--exit-with", "7", code=7)
    assert "CUPTI is in use" in one_line(job)
    assert not job.trace_path.exists()


def test_without_a_driver_the_job_goes_on(job: Job) -> None:
    job.run("--scenario", "no-driver", "--exit-with", "7", code=7)
    one_line(job)
    assert not job.trace_path.exists()


def test_a_job_that_finds_no_gpu_writes_no_file(job: Job) -> None:
    job.run("--operations", "1", "--exit-with", "3", code=3, options={"GPUPERF_FAKE_CUINIT": "100"})
    assert not job.trace_path.exists()


@pytest.mark.parametrize("thread", [1, 2])
def test_without_threads_the_job_goes_on(job: Job, thread: int) -> None:
    """The collector's thread, or the flush thread after it, cannot be made: no capture, nothing left behind."""
    preload = job.build / "fakes" / "libno-threads.so"
    if not preload.exists():
        pytest.skip("not built with sanitizers")
    options = {"LD_PRELOAD": str(preload), "GPUPERF_FAKE_THREAD_FAILS": str(thread)}
    job.run("--exit-with", "7", code=7, options=options)
    assert "could not start" in one_line(job)
    assert not job.trace_path.exists()


def test_a_second_cupti_client_is_refused_and_harms_nothing(job: Job) -> None:
    capture = job.save("--operations", "1500", *CALM[:2])
    replay = job.run(*CALM[2:], "--second-client")
    assert replay["second_client"] == 39
    assert_whole(job.trace(), Oracle(capture, replay))


# ------------------------------------------------------------------------------------------------------- sudden ends


def test_a_forked_child_is_silent(job: Job) -> None:
    capture = job.save("--operations", "1500", *CALM[:2])
    replay = job.run(*CALM[2:], "--fork-in-middle")
    assert replay["child_status"] == 0
    assert not job.violations.exists(), job.violations.read_text()
    assert [path.name for path in job.folder.glob("*.gpuperf*")] == ["run.gpuperf"]
    assert_whole(job.trace(), Oracle(capture, replay))


def test_os_exit_leaves_everything_but_the_last_second(job: Job) -> None:
    capture = job.save("--operations", "1500", *CALM[:2])
    replay = job.run(*CALM[2:], "--linger-ms", "2500", "--os-exit", "9", code=9)
    trace = job.trace()
    assert not trace.clean
    assert_whole(trace, Oracle(capture, replay))


def test_sigterm_leaves_everything_but_the_last_second(job: Job) -> None:
    capture = job.save("--operations", "1500", *CALM[:2])
    replay = job.run(*CALM[2:], "--linger-ms", "2500", "--kill-self", str(int(signal.SIGTERM)), code=-signal.SIGTERM)
    assert_whole(job.trace(), Oracle(capture, replay))


def read_progress(path: Path) -> list[tuple[int, ...]]:
    """Whole lines of what --progress writes: host time, callbacks, kernels."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [tuple(map(int, line.split())) for line in lines]


def test_kill_9_leaves_a_readable_file(job: Job) -> None:
    progress = job.folder / "progress.txt"
    process = job.start("--loops", "100000", *CALM, "--progress", str(progress))
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(read_progress(progress)) < 2:
        time.sleep(0.05)
    time.sleep(4)
    killed = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    process.kill()
    assert process.wait(timeout=60) == -signal.SIGKILL
    trace = job.trace()
    assert not trace.clean
    # A chunk is written every second; a machine under load gets another one for free.
    safe = [line for line in read_progress(progress) if line[0] < killed - 2_000_000_000]
    assert safe, "the job was killed too early"
    nested = 2  # every runtime call has a driver call inside; enter and exit each
    assert trace_decode.rows(trace.calls) >= safe[-1][1] // (2 * nested) - 8
    assert trace.lost() == {}


def test_a_limit_of_file_size_ends_the_trace_and_not_the_job(job: Job) -> None:
    # As a program of its own meets it: Python would ignore the signal, and its children with it.
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = subprocess.run(
        [str(job.build / "fakes" / "gpuperf-replay"), "--loops", "3", *CALM],
        capture_output=True,
        text=True,
        timeout=240,
        env=job.environment({}),
        preexec_fn=limit,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "File too large; tracing stops here, the job goes on" in done.stderr
    assert job.trace_path.stat().st_size <= 20_000


# --- the end ---------------------------------------------------------------------------------------------------------


def test_a_gpu_that_never_gets_done_does_not_hold_up_the_end(job: Job) -> None:
    started = time.monotonic()
    job.run(*CALM, options={"GPUPERF_FAKE_GPU_BUSY_MS": "100000", "GPUPERF_STOP_WAIT_MS": "300"})
    assert time.monotonic() - started < 60
    assert "the GPU was busy" in job.stderr
    trace = job.trace()
    assert trace.clean
    assert trace_decode.rows(trace.kernels) > 0
