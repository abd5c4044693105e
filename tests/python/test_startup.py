"""The start-up file: does nothing unless it is asked to, and never breaks a Python that it is in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import gpuperf
import pytest
from gpuperf import _libpath

ROOT = Path(__file__).resolve().parents[2]
LINE = ROOT / "python/gpuperf.pth"
REPORT = "import sys; print('gpuperf' in sys.modules, 'gpuperf.hooks' in sys.modules)"


def start_python(folder: Path, code: str = REPORT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `code` in a Python whose only site folder is `folder`, read as site-packages is."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GPUPERF_", "PYTHON", "CUDA_INJECTION"))
    }
    return subprocess.run(
        [sys.executable, "-S", "-c", f"import site; site.addsitedir({str(folder)!r})\n{code}"],
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site folder with the start-up file and the installed package."""
    folder = tmp_path / "site"
    folder.mkdir()
    shutil.copy(LINE, folder)
    (folder / "gpuperf").mkdir()
    binaries = Path(_libpath.library()).parent.glob("*.so")  # an editable installation keeps them elsewhere
    for path in {path.name: path for path in (*Path(gpuperf.__file__).parent.iterdir(), *binaries)}.values():
        (folder / "gpuperf" / path.name).symlink_to(path)
    return folder


INJECTED = {"CUDA_INJECTION64_PATH": _libpath.library()}


def test_the_file_is_one_line_that_python_executes() -> None:
    lines = LINE.read_text().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("import ")


def test_the_page_shows_the_line_word_for_word() -> None:
    assert LINE.read_text() in (ROOT / "docs/startup.md").read_text()


@pytest.mark.parametrize("value", ["", "none", "/opt/nsight/libToolsInjection64.so", None])
def test_without_a_capture_nothing_is_imported(site: Path, value: str | None) -> None:
    environment = {} if value is None else {"CUDA_INJECTION64_PATH": value}
    done = start_python(site, **environment)
    assert (done.stdout.split(), done.stderr) == (["False", "False"], "")


def test_with_a_capture_the_hooks_are_there(site: Path) -> None:
    done = start_python(site, **INJECTED)
    assert (done.stdout.split(), done.stderr) == (["True", "True"], "")


def test_the_hooks_import_neither_torch_nor_what_is_slow(site: Path) -> None:
    done = start_python(site, "import sys; print(*sys.modules)", **INJECTED)
    slow = {"torch", "rich", "json", "typing", "pathlib", "argparse", "dataclasses", "inspect", "gpuperf.api"}
    assert "gpuperf._core" in done.stdout.split()
    assert not set(done.stdout.split()) & slow


@pytest.mark.parametrize("switch", [{"GPUPERF_DISABLE": "1"}, {"GPUPERF_HOOKS": "0"}])
def test_the_switches_turn_it_off(site: Path, switch: dict[str, str]) -> None:
    done = start_python(
        site, "import sys; print('gpuperf.hooks' in sys.modules, sys.meta_path[0])", **INJECTED, **switch
    )
    assert done.stdout.split()[0] == "False"
    assert "gpuperf" not in done.stdout
    assert done.stderr == ""


BROKEN = {
    "missing": None,
    "syntax": "def (",
    "import": "import a_module_that_is_not_there",
    "raises": "raise RuntimeError('broken')",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_installation_never_breaks_python(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    shutil.copy(LINE, folder)
    if BROKEN[kind] is not None:
        (folder / "gpuperf").mkdir()
        (folder / "gpuperf/__init__.py").write_text(BROKEN[kind])
    done = start_python(folder, "print('the job ran')", **INJECTED)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the job ran\n", "")
    said = start_python(folder, "print('the job ran')", **INJECTED, GPUPERF_LOG="debug")
    assert (said.returncode, said.stdout) == (0, "the job ran\n")
    assert len(said.stderr.splitlines()) == 1
    assert said.stderr.startswith("gpuperf: no Python hooks: ")


def test_a_missing_library_never_breaks_python(site: Path, tmp_path: Path) -> None:
    for binary in (site / "gpuperf").glob("*.so"):
        binary.unlink()
    gone = {"CUDA_INJECTION64_PATH": str(tmp_path / "libgpuperf.so")}
    done = start_python(site, "print('the job ran')", **gone)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the job ran\n", "")
    said = start_python(site, "print('the job ran')", **gone, GPUPERF_LOG="debug")
    assert len(said.stderr.splitlines()) == 1
    assert "_core" in said.stderr


def test_the_installed_python_reads_the_file() -> None:
    """The wheel has put the file where this interpreter looks."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT], env=os.environ | INJECTED, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout.split(), done.stderr) == (["True", "True"], "")


def test_an_import_in_a_job_without_the_file_installs_the_hooks(site: Path) -> None:
    (site / "gpuperf.pth").unlink()
    done = start_python(site, "import gpuperf, sys; print('gpuperf.hooks' in sys.modules)", **INJECTED)
    assert (done.stdout.split(), done.stderr) == (["True"], "")


def test_one_library_in_a_process_though_two_are_installed(site: Path, tmp_path: Path) -> None:
    """The job's own gpuperf binds to the library of the gpuperf that runs the job."""
    other = tmp_path / "other/libgpuperf.so"
    other.parent.mkdir()
    shutil.copy(_libpath.library(), other)
    code = """
import gpuperf
gpuperf.step()
print(*sorted({line.split()[-1] for line in open("/proc/self/maps") if line.endswith("libgpuperf.so\\n")}))
"""
    done = start_python(site, code, CUDA_INJECTION64_PATH=str(other))
    assert (done.stdout.split(), done.stderr) == ([str(other)], "")
