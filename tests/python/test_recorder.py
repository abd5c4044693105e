"""The recorder of CUPTI record streams (tools/recorder), itself recorded: in front of the stand-in libcupti."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDER = ROOT / "tools" / "recorder"
sys.path.insert(0, str(RECORDER))
sys.path.insert(0, str(ROOT / "tools"))

import describe  # noqa: E402
import gen_call_tables  # noqa: E402

BUILD = Path(os.environ.get("GPUPERF_TEST_BUILD", ROOT / "build" / "release"))
REPLAY = BUILD / "fakes" / "gpuperf-replay"


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorder, built with the one line that record.sh has."""
    include = gen_call_tables.toolkit_include()
    if include is None:
        pytest.skip("no CUDA toolkit with CUPTI headers is installed")
    if not REPLAY.exists():
        pytest.skip(f"{REPLAY} is not built (make test builds it)")
    library = tmp_path_factory.mktemp("recorder") / "libgpuperf_recorder.so"
    sources = [str(RECORDER / "recorder.cc"), str(ROOT / "csrc" / "cupti" / "call_table.cc")]
    flags = ["-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{ROOT / 'csrc'}", f"-I{include}"]
    command = [os.environ.get("CXX", "g++"), *flags, "-o", str(library), *sources, "-ldl", "-lpthread"]
    subprocess.run(command, check=True, timeout=240)
    return library


def record(
    recorder: Path, capture: Path, arguments: list[str], **options: str
) -> tuple[dict[str, Any], describe.Capture]:
    """Plays with the recorder injected: the replay's JSON and what was recorded."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GPUPERF_", "CUDA_"))} | {
        "LD_LIBRARY_PATH": str(BUILD / "fakes"),
        "CUDA_INJECTION64_PATH": str(recorder),
        "GPUPERF_RECORD": str(capture),
        "GPUPERF_RECORD_META": '{"card": "none"}',
    }
    done = subprocess.run([str(REPLAY), *arguments], check=True, capture_output=True, text=True, timeout=240,
                          env=environment | options)  # fmt: skip
    return json.loads(done.stdout), describe.Capture(capture)


def test_everything_delivered_is_recorded(recorder: Path, tmp_path: Path) -> None:
    replay, capture = record(recorder, tmp_path / "a.gpcap", ["--threads", "3", "--speed", "1"])
    assert describe.check(capture) == []
    assert replay["violations"] == []
    calls = sum(thread["enters"] + thread["exits"] for thread in replay["threads"])
    assert len(capture.callbacks) == calls
    counts = {str(kind): sum(r.kind == kind for r in capture.records) for kind in (1, 2, 10, 22)}
    assert counts == replay["stored"]
    assert {r.name for r in capture.records if r.kind == 10} > {"_Z18synthetic_kernel_0Pf"}
    assert capture.metadata[0]["given"] == {"card": "none"}
    summary = describe.summary(capture, tmp_path / "a.gpcap")
    assert summary["calls"]["cudaLaunchKernel"] == replay["dispatched"]["runtime:cudaLaunchKernel"]
    assert summary["driver_calls_inside_runtime_calls"] > 0


def test_a_recording_plays_again_as_it_was(recorder: Path, tmp_path: Path) -> None:
    _, first = record(recorder, tmp_path / "first.gpcap", ["--speed", "1"])
    _, second = record(recorder, tmp_path / "second.gpcap", [str(tmp_path / "first.gpcap"), "--speed", "1"])

    def outline(capture: describe.Capture) -> tuple[list[Any], list[Any]]:
        calls = [(c.thread, c.site, c.function, c.symbol, c.correlation, c.pointed_value, c.return_value)
                 for c in capture.callbacks]  # fmt: skip
        first_start = min(r.start for r in capture.records)
        return calls, [(r.kind, r.name, r.correlation, r.start - first_start, r.end - r.start) for r in capture.records]

    assert outline(first) == outline(second)


def test_warm_up_is_left_out_at_a_clean_cut(recorder: Path, tmp_path: Path) -> None:
    """Recording begins at the first device synchronize after the skipped launches, and ends at a later one."""
    arguments = ["--threads", "1", "--operations", "300", "--loops", "5", "--speed", "1"]
    replay, _ = record(recorder, tmp_path / "all.gpcap", arguments)
    loop = replay["pushed"]["10"] // 5
    _, capture = record(recorder, tmp_path / "some.gpcap", arguments, GPUPERF_RECORD_SKIP_LAUNCHES=str(loop),
                        GPUPERF_RECORD_LAUNCHES=str(2 * loop))  # fmt: skip
    assert describe.check(capture) == []
    assert sum(r.kind == 10 for r in capture.records) == 2 * loop


def test_damage_is_found(recorder: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.gpcap"
    record(recorder, path, ["--threads", "1", "--operations", "300", "--speed", "1"], GPUPERF_RECORD_MAX="400")
    assert any("GPUPERF_RECORD_MAX" in problem for problem in describe.check(describe.Capture(path)))
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(describe.CaptureError, match="ends in the middle"):
        describe.Capture(path)
    path.write_bytes(b"something else")
    with pytest.raises(describe.CaptureError, match="not a capture"):
        describe.Capture(path)
