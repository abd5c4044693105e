"""The size of a trace: a recorded training, replayed at its own pace by the stand-in CUDA libraries. Needs no GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from built import ROOT, Unavailable, find_built
from figures import Row, row

CAPTURE = ROOT / "tests" / "data" / "captures" / "stress.gpcap.gz"
KERNELS = 100_000  # about 100 steps of stress


def library() -> str:
    """Path of the installed libgpuperf.so."""
    told = subprocess.run([sys.executable, "-m", "gpuperf", "lib"], capture_output=True, text=True, timeout=60)
    if told.returncode != 0:
        raise Unavailable("gpuperf is not installed in this Python (pip install .)")
    return told.stdout.strip()


def replay(loops: int, output: Path) -> int:
    """Replays the capture with gpuperf injected; returns the number of kernel records that gpuperf was given."""
    if not CAPTURE.exists():
        raise Unavailable(f"{CAPTURE.relative_to(ROOT)} is not there")
    program = find_built("gpuperf-replay", "fakes")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GPUPERF_")} | {
        "LD_LIBRARY_PATH": str(program.parent),
        "CUDA_INJECTION64_PATH": library(),
        "GPUPERF_OUTPUT": str(output),
        "GPUPERF_QUIET": "1",
    }
    command = [str(program), str(CAPTURE), "--loops", str(loops), "--speed", "1"]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300, env=environment, check=True).stdout
    return int(json.loads(told)["delivered"]["10"])


def trace_size() -> list[Row]:
    """Bytes of file per kernel: dictionary, launches and footer included."""
    with tempfile.TemporaryDirectory() as folder:
        per_loop = replay(1, Path(folder) / "once.gpuperf")
        output = Path(folder) / "trace.gpuperf"
        kernels = replay(-(-KERNELS // per_loop), output)
        size = output.stat().st_size
    return [
        row("trace_size.bytes_per_kernel", size / kernels),
        row("trace_size.kernels", kernels, "kernels", better="higher"),
    ]
