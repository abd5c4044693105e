"""What the three binaries export, need and reserve: held against the installed files."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import files
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def binary(stem: str) -> Path:
    """Path of the installed shared object whose name starts with `stem`."""
    found = [path for path in files("gpuperf") or [] if path.name.startswith(stem) and ".so" in path.suffixes]
    assert len(found) == 1, f"{stem}: {found}"
    return Path(str(found[0].locate()))


def run(*command: str | Path) -> str:
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def exported(path: Path) -> set[str]:
    """Names (without versions) that the dynamic linker finds in `path`."""
    lines = run("nm", "-D", "--defined-only", path).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.split()[-2] != "A"}


def needed(path: Path) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", path)))


def declared() -> set[str]:
    """Functions that the C header promises."""
    header = (ROOT / "csrc/include/gpuperf/gpuperf.h").read_text()
    return set(re.findall(r"^GPUPERF_API [^;(]*?\b(\w+)\(", header, re.MULTILINE))


def test_the_library_exports_the_c_interface_and_nothing_else() -> None:
    assert exported(binary("libgpuperf")) == declared()
    assert "InitializeInjection" in declared()


def test_the_library_needs_only_the_c_library() -> None:
    # libm, libpthread and libdl are part of glibc, and files of their own before 2.34.
    libc = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    assert needed(binary("libgpuperf")) <= libc


def test_the_library_takes_no_symbol_of_another_cpp_runtime() -> None:
    """An undefined C++ name would be bound to whatever libstdc++, Protobuf or Abseil the process holds."""
    undefined = [line.split()[-1] for line in run("nm", "-D", "--undefined-only", binary("libgpuperf")).splitlines()]
    foreign = [name for name in undefined if name.startswith("_Z") or "absl" in name or "protobuf" in name]
    # Weak references of libstdc++.a to transactional clones, which exist only in programs built with -fgnu-tm.
    assert [name for name in foreign if not name.startswith("_ZGTt")] == []


def test_the_library_is_never_unloaded_and_takes_little_static_tls() -> None:
    library = binary("libgpuperf")
    assert "NODELETE" in run("readelf", "-dW", library)
    segments = [line.split() for line in run("readelf", "-lW", library).splitlines() if line.split()[:1] == ["TLS"]]
    # glibc keeps ~1.6 KB of static TLS for libraries that are loaded late, shared by all of them.
    assert sum(int(fields[5], 16) for fields in segments) <= 256


@pytest.mark.parametrize("module", ["_core", "_analysis"])
def test_a_module_exports_its_init_function_only(module: str) -> None:
    assert exported(binary(module)) == {f"PyInit_{module}"}


def test_core_carries_no_offline_half() -> None:
    libraries = needed(binary("_core"))
    assert "libgpuperf.so" in libraries
    assert [name for name in libraries if "protobuf" in name or "absl" in name] == []


@pytest.mark.parametrize("name", ["libgpuperf", "_core", "_analysis"])
def test_no_binary_needs_a_cuda_library(name: str) -> None:
    assert [library for library in needed(binary(name)) if re.match(r"lib(cu|nv)", library)] == []


def test_core_finds_the_library_beside_itself() -> None:
    assert re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.+)\]", run("readelf", "-dW", binary("_core"))) == ["$ORIGIN"]
