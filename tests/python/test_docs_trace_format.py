"""The example of docs/trace_format.md, run as a reader would run it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden"


def test_the_example_reads_the_golden_trace(tmp_path):
    pytest.importorskip("google.protobuf")
    if shutil.which("protoc") is None:
        pytest.skip("needs protoc")
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "trace_format.md").read_text(), re.DOTALL)
    protos = sorted((ROOT / "proto" / "gpuperf" / "trace" / "v1").glob("*.proto"))
    subprocess.run(["protoc", f"-I{ROOT / 'proto'}", f"--python_out={tmp_path}", *protos], check=True)
    (tmp_path / "gpuperf" / "__init__.py").touch()
    (tmp_path / "example.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "example.py", GOLDEN / "format1.gpuperf"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path)},
    )
    dump = (GOLDEN / "format1.dump").read_text()
    dumped = re.findall(r"^kernel begin_ns=(\d+) duration_ns=(\d+)", dump, re.MULTILINE)
    assert [tuple(line.split()[:2]) for line in done.stdout.splitlines()] == dumped
    assert len(dumped) == 3
