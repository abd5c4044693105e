"""The hooks in the job's Python, with the real torch: versions, and stepping aside for torch.profiler.

torch is imported in processes of its own. A CPU build has no sessions with CUDA activity, so those are made by giving
torch.autograd.profiler.profile the activities itself; all else is torch's own code.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from gpuperf.hooks import post_import

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch (CPU)")

# Stands in for gpuperf._core in the hooks, and prints in which order things happen.
RECORDER = """
import sys, types, warnings
warnings.simplefilter("ignore")
import gpuperf.hooks as hooks
from gpuperf.hooks import torch_profiler, versions
log = []
core = types.SimpleNamespace(
    yield_=lambda why: log.append(f"yield: {why}"),
    set_version=lambda key, value: log.append(f"{key} {value}"),
    at_exit=lambda: None,
)
for module in (hooks, torch_profiler, versions):
    module.load_core = lambda: core

def watch(name):
    # Between torch and the hooks, so installed before them.
    import torch.autograd.profiler as profiler
    original = getattr(profiler, name)
    def watched(*args, **kwargs):
        log.append(name)
        return original(*args, **kwargs)
    setattr(profiler, name, watched)

def cuda_session():
    from torch.autograd.profiler import profile
    from torch.profiler import ProfilerActivity
    session = profile(use_kineto=True)
    session.kineto_activities = {ProfilerActivity.CPU, ProfilerActivity.CUDA}
    return session
"""


def run_python(code: str, *, before: str = RECORDER, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", before + textwrap.dedent(code)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@needs_torch
def test_importing_torch_tells_its_version_and_leaves_the_import_system_as_it_was() -> None:
    lines = run_python(
        """
        finders = list(sys.meta_path)
        hooks.install()
        assert len(sys.meta_path) == len(finders) + 1 and "torch" not in sys.modules
        import torch
        assert sys.meta_path == finders
        assert "exec_module" not in vars(torch.__spec__.loader)
        assert type(torch.__loader__).__module__.startswith("_frozen")
        print(*log, sep="\\n")
        print(torch.__version__)
        """
    )
    version = lines.pop()
    assert lines[0] == f"python {sys.version.split()[0]}"
    assert f"torch {version}" in lines


@needs_torch
def test_torch_imported_before_gpuperf_is_hooked_too() -> None:
    lines = run_python(
        """
        import torch
        hooks.install()
        print(log[1])
        print(hasattr(torch.autograd.profiler._enable_profiler, "__gpuperf_wraps__"))
        """
    )
    assert lines[0].startswith("torch ")
    assert lines[1] == "True"


@needs_torch
def test_gpuperf_steps_aside_before_a_session_with_the_gpu_and_only_then() -> None:
    lines = run_python(
        """
        import torch
        from torch.profiler import ProfilerActivity, profile, schedule
        watch("_prepare_profiler"); watch("_enable_profiler")
        torch_profiler.wrap()
        torch_profiler.wrap()

        with profile(activities=[ProfilerActivity.CPU]) as session:
            torch.ones(3) + 1
        assert len(session.events()) > 0
        with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=1)) as session:
            for _ in range(3):
                torch.ones(3) + 1
                session.step()
        with torch.autograd.profiler.profile():
            torch.ones(3) + 1
        assert not any(entry.startswith("yield") for entry in log), log
        log.clear()

        with cuda_session() as session:
            torch.ones(3) + 1
        assert len(session.function_events) > 0
        print(*log, sep="\\n")
        """
    )
    why = "yield: torch.profiler session"
    assert lines == [why, "_prepare_profiler", why, "_enable_profiler"]


@needs_torch
def test_the_wrapped_functions_pass_on_arguments_results_and_exceptions() -> None:
    run_python(
        """
        import torch.autograd.profiler as profiler
        from torch.profiler import ProfilerActivity
        seen = []
        def original(config, activities, scopes=()):
            "Says so."
            seen.append((config, activities, scopes))
            if config == "bad":
                raise RuntimeError("torch's own")
            return "result"
        profiler._enable_profiler = original
        def broken(why):
            raise OSError("ours")
        core.yield_ = broken
        torch_profiler.wrap()
        gpu = {ProfilerActivity.CUDA}
        assert profiler._enable_profiler("a", gpu, [1]) == "result"
        assert profiler._enable_profiler(config="b", activities=gpu) == "result"
        assert profiler._enable_profiler.__doc__ == "Says so."
        for arguments in (("bad", gpu), ("bad", None)):
            try:
                profiler._enable_profiler(*arguments)
            except RuntimeError as error:
                assert str(error) == "torch's own"
            else:
                raise AssertionError
        assert seen == [("a", gpu, [1]), ("b", gpu, ()), ("bad", gpu, ()), ("bad", None, ())]
        """
    )


@needs_torch
def test_hooks_off_leaves_torch_alone() -> None:
    lines = run_python(
        """
        hooks.install()
        hooks.install(wanted=False)
        import torch
        print(log, hasattr(torch.autograd.profiler._enable_profiler, "__gpuperf_wraps__"))
        """,
        GPUPERF_HOOKS="0",
    )
    assert lines == ["[] False"]


@needs_torch
def test_the_stop_runs_before_what_torch_and_the_job_registered_earlier() -> None:
    lines = run_python(
        """
        import atexit
        core.at_exit = lambda: print("stop")
        hooks.install()
        atexit.register(print, "registered before torch was imported")
        import torch
        atexit.register(print, "registered after torch was imported")
        """
    )
    assert lines == ["registered after torch was imported", "stop", "registered before torch was imported"]


# --- The post-import hook by itself, on a module of our own --------------------------------------------------------


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "a_module_to_wait_for.py").write_text("ready = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "a_module_to_wait_for"  # type: ignore[misc]
    sys.modules.pop("a_module_to_wait_for", None)
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, post_import._Finder)]


def test_looking_for_a_module_is_no_import(module: str) -> None:
    calls: list[bool] = []
    post_import.when_imported(module, lambda: calls.append(sys.modules[module].ready))
    assert importlib.util.find_spec(module) is not None
    assert importlib.util.find_spec("a_module_that_is_not_there") is None
    assert calls == []
    importlib.import_module(module)
    assert calls == [True]
    post_import.when_imported(module, lambda: calls.append(False))
    assert calls == [True, False]


def test_a_failing_hook_does_not_fail_the_import(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUPERF_LOG", "debug")
    post_import.when_imported(module, lambda: 1 / 0)  # type: ignore[arg-type,return-value]
    assert importlib.import_module(module).ready
    assert capsys.readouterr().err == "gpuperf: hook failed: ZeroDivisionError: division by zero\n"


def test_a_module_that_fails_to_import_is_waited_for_again(module: str, tmp_path: Path) -> None:
    good = (tmp_path / f"{module}.py").read_text()
    (tmp_path / f"{module}.py").write_text("raise RuntimeError('not yet, and a longer line than the good one')\n")
    calls: list[str] = []
    post_import.when_imported(module, lambda: calls.append("imported"))
    with pytest.raises(RuntimeError, match="not yet"):
        importlib.import_module(module)
    assert calls == []
    (tmp_path / f"{module}.py").write_text(good)
    importlib.import_module(module)
    assert calls == ["imported"]


def test_two_hooks_wait_for_one_module(module: str) -> None:
    calls: list[str] = []
    post_import.when_imported(module, lambda: calls.append("first"))
    post_import.when_imported(module, lambda: calls.append("second"))
    importlib.import_module(module)
    assert sorted(calls) == ["first", "second"]
