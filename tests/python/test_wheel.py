"""What the wheel puts where, read from the installed distribution's own file list."""

from __future__ import annotations

import re
from importlib.metadata import files, metadata, version
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]


def contents() -> list[PurePosixPath]:
    return [PurePosixPath(path) for path in files("gpuperf") or []]


def test_version_comes_from_one_place() -> None:
    project = re.search(r"project\(gpuperf VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert project is not None
    assert version("gpuperf") == project[1]

    import gpuperf

    assert gpuperf.__version__ == project[1]


def test_the_start_up_file_lies_where_python_looks_for_it() -> None:
    assert PurePosixPath("gpuperf.pth") in contents()


def test_only_our_binaries_are_inside() -> None:
    binaries = sorted(re.split(r"\.", path.name)[0] for path in contents() if ".so" in path.suffixes)
    assert binaries == ["_analysis", "_core", "libgpuperf"]


def test_the_package_is_whole_and_brings_no_sources_of_the_build() -> None:
    names = {str(path) for path in contents()}
    assert {"gpuperf/__init__.py", "gpuperf/py.typed", "gpuperf/include/gpuperf/gpuperf.h"} <= names
    assert [name for name in names if name.endswith((".cc", ".proto", ".cmake", ".a", ".o"))] == []
    outside = {name.split("/")[0] for name in names} - {"gpuperf", "gpuperf.pth", "..", "__pycache__"}
    assert [name for name in outside if not name.endswith(".dist-info")] == []


def test_licence_and_summary_travel_with_it() -> None:
    meta = metadata("gpuperf")
    assert meta["License-Expression"] == "Apache-2.0"
    assert any(path.name == "LICENSE" for path in contents())
    assert meta["Requires-Python"] == ">=3.10"
