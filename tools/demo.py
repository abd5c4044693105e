#!/usr/bin/env python3
"""`make demo`: records a small job and shows the report.

On a machine with a GPU and PyTorch the job is `gpuperf.demo`, a small training. Elsewhere it is a program that plays
what CUPTI delivered on a real GPU through stand-ins for the CUDA libraries: the same library, trace and report.
"""

from __future__ import annotations

import gzip
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "build" / "demo" / "demo.gpuperf"
FAKES = ROOT / "build" / "release" / "fakes"
CAPTURES = ROOT / "tests" / "data" / "captures"


def say(text: str) -> None:
    """Prints one line of ours among those of the commands."""
    print(f"demo: {text}", flush=True)


def run(command: list[str], environment: dict[str, str] | None = None) -> None:
    """Shows and runs a command; a failure ends the demo with the command's own exit code."""
    shown = " ".join(command).replace(sys.executable, "python").replace(str(FAKES) + "/", "").replace(f"{ROOT}/", "")
    print(f"\n$ {shown}", flush=True)
    done = subprocess.run(command, env=environment, check=False, cwd=ROOT)
    if done.returncode != 0:
        sys.exit(done.returncode)


def has_gpu() -> bool:
    """True if this Python has a PyTorch that can use a GPU."""
    probe = "import torch; raise SystemExit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False).returncode == 0


def captured_job() -> tuple[list[str], str]:
    """The replaying job, and one sentence about what it plays."""
    replay = [str(FAKES / "gpuperf-replay"), "--json", str(OUTPUT.parent / "replay.json")]
    captures = sorted(CAPTURES.glob("*.gpcap*"), key=lambda path: ("gpt2" not in path.name, path.name))
    if not captures:
        return [*replay, "--interval-ns", "20000"], "a made-up job (no capture of a real GPU is in this tree)"
    return [*replay, "--speed", "1", "--steps", str(captures[0])], f"what CUPTI delivered of {describe(captures[0])}"


def describe(capture: Path) -> str:
    """What was captured where, from the capture's own first block."""
    content = gzip.decompress(capture.read_bytes()) if capture.suffix == ".gz" else capture.read_bytes()
    size = int.from_bytes(content[12:16], "little")  # magic, type of the block, its size
    metadata = json.loads(content[16 : 16 + size].rstrip(b"\0"))
    given = metadata["given"]
    return (
        f"{capture.name.split('.')[0]}, a PyTorch {given['torch']} training, on an {given['card']} "
        f"(driver {given['driver']}, {given['date'][:10]}),"
    )


def main() -> int:
    """Runs the demo."""
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ)
    if has_gpu():
        job = [sys.executable, "-m", "gpuperf.demo"]
    else:
        configure = ["cmake", "--preset", "release", *shlex.split(os.environ.get("CMAKE_ARGS", ""))]
        subprocess.run(configure, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        build = ["cmake", "--build", "--preset", "release", "-j", str(os.cpu_count()), "--target", "gpuperf-replay"]
        subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        job, what = captured_job()
        environment["LD_LIBRARY_PATH"] = f"{FAKES}:{environment.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        say("there is no GPU with PyTorch here. The job below is no real one: it plays")
        say(what)
        say("through stand-ins for the CUDA libraries.")
    os.environ["PATH"] = environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    run(["gpuperf", "run", "-f", "-o", str(OUTPUT), "--", *job], environment)
    run(["gpuperf", "report", str(OUTPUT)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
