"""The baseline of the overhead figures subscribes exactly what gpuperf subscribes: shown on a replayed capture."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

BUILD = Path(os.environ.get("GPUPERF_TEST_BUILD", Path(__file__).resolve().parents[2] / "build" / "release"))
BASELINE = BUILD / "benchmarks" / "libgpuperf_baseline.so"
GPUPERF = BUILD / "lib" / "libgpuperf.so"
REPLAY = BUILD / "fakes" / "gpuperf-replay"


def replay(library: Path, folder: Path) -> dict[str, Any]:
    told = folder / "told.json"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GPUPERF_")} | {
        "LD_LIBRARY_PATH": str(BUILD / "fakes"),
        "CUDA_INJECTION64_PATH": str(library),
        "GPUPERF_OUTPUT": str(folder / "trace.gpuperf"),
    }
    command = [str(REPLAY), "--operations", "3000", "--json", str(told)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert finished.returncode == 0, finished.stderr
    answer: dict[str, Any] = json.loads(told.read_text())
    return answer


@pytest.mark.skipif(not BASELINE.exists(), reason=f"{BASELINE} is not built (make test builds it)")
def test_same_subscriptions(tmp_path: Path) -> None:
    answers = [replay(library, tmp_path) for library in (BASELINE, GPUPERF)]
    for what in ("callbacks", "dispatched", "stored", "subscribes", "violations"):
        assert answers[0][what] == answers[1][what]
    assert answers[0]["callbacks"] > 10_000
    assert answers[0]["stored"]["10"] > 1000
    assert answers[0]["not_enabled"] == answers[1]["not_enabled"]
    assert answers[0]["violation_count"] == 0
