"""Dependencies go one way: what each folder of csrc/ may include, and what `import gpuperf` may load.

The directions are those of docs/architecture.md. A folder that is not in the table fails the test: put it there with
what it may see.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"

# Folder -> the folders it may include, beside itself.
ALLOWED: dict[str, set[str]] = {
    "include": set(),
    "base": set(),
    "ring": {"base"},
    "cupti": {"base"},
    "source": {"ring", "cupti", "base"},
    "collector": {"ring", "cupti", "base"},
    "trace": {"collector", "cupti", "base"},  # of cupti only the table of functions
    "session": {"gpuperf", "trace", "collector", "source", "cupti", "ring", "base"},
    "reader": {"base"},
    "analysis": {"reader", "base"},
    "tables": {"analysis", "reader", "base"},
    "bindings": {"gpuperf", "tables", "analysis", "reader"},
}
# "gpuperf" is csrc/include/gpuperf, the C interface; the generated schema has a prefix of its own.
SCHEMA = "gpuperf/trace/v1/"

# Outside header -> the only folders that may include it.
OUTSIDE: dict[str, set[str]] = {
    r"protozero/": {"trace", "session"},
    r"google/protobuf|gpuperf/trace/v1/": {"reader", "analysis", "tables", "bindings"},
    r"absl/": {"reader", "analysis", "tables", "bindings"},
    r"pybind11/|Python\.h": {"bindings"},
    # libgpuperf.so is built without CUDA's headers: it knows CUPTI by record views and by dlsym.
    r"cuda|cupti|nvml|nvToolsExt|nvtx3/|generated_": set(),
}


def includes() -> list[tuple[str, str, str]]:
    """Every include of csrc/ as (folder, file, what it includes)."""
    found = []
    for path in sorted(CSRC.rglob("*")):
        if path.suffix not in {".h", ".cc", ".inc", ".def"}:
            continue
        relative = path.relative_to(CSRC)
        names = re.findall(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE)
        found += [(relative.parts[0], str(relative), name) for name in names]
    return found


def test_every_folder_is_in_the_table() -> None:
    folders = {path.name for path in CSRC.iterdir() if path.is_dir() and any(path.rglob("*.[ch]*"))}
    assert folders <= set(ALLOWED)


def test_folders_include_only_what_lies_below_them() -> None:
    wrong = []
    for folder, file, name in includes():
        target = name.split("/")[0]
        ours = target in ALLOWED or (target == "gpuperf" and not name.startswith(SCHEMA))
        if ours and "/" in name and target != folder and target not in ALLOWED[folder]:
            wrong.append(f"{file} includes {name}")
    assert wrong == []


def test_the_table_has_no_cycle() -> None:
    def below(folder: str, seen: tuple[str, ...] = ()) -> None:
        assert folder not in seen, " -> ".join((*seen, folder))
        for target in ALLOWED.get(folder, set()):
            below(target, (*seen, folder))

    for folder in ALLOWED:
        below(folder)


@pytest.mark.parametrize("pattern", OUTSIDE)
def test_outside_headers_stay_where_they_belong(pattern: str) -> None:
    outside = [found for found in includes() if not found[2].startswith(("cupti/", "gpuperf/gpuperf.h"))]
    wrong = [
        f"{file} includes {name}"
        for folder, file, name in outside
        if re.match(pattern, name) and folder not in OUTSIDE[pattern]
    ]
    assert wrong == []


def test_sources_include_by_folder() -> None:
    """Includes of our own files are written from csrc/ on, never relative to the file."""
    wrong = [f"{file} includes {name}" for _, file, name in includes() if name.startswith(".")]
    assert wrong == []


def test_import_loads_neither_the_offline_half_nor_its_libraries() -> None:
    script = "import sys, gpuperf; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert "gpuperf" in modules
    unwanted = {"gpuperf._analysis", "gpuperf.report", "gpuperf.tables", "rich", "torch", "numpy", "google.protobuf"}
    assert unwanted.isdisjoint(modules)


def test_reading_a_trace_loads_neither_the_runtime_half_nor_numpy() -> None:
    golden = ROOT / "tests" / "data" / "golden" / "format1.gpuperf"
    script = f"import sys, gpuperf; list(gpuperf.Trace({str(golden)!r}).kernels); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert "gpuperf._analysis" in modules
    unwanted = {"gpuperf._core", "gpuperf.api", "gpuperf.report", "rich", "torch", "numpy", "pyarrow"}
    assert unwanted.isdisjoint(modules)
