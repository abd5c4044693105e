"""What gpuperf does in Python unasked: tells versions, steps aside for torch.profiler, stops in time.

Installed by `gpuperf.start()` and, in jobs that do not know gpuperf, by the start-up file (docs/startup.md). Nothing of
torch is imported here: a hook runs when the job has imported torch.
"""

from __future__ import annotations

import atexit

from gpuperf._env import is_on
from gpuperf._libpath import load_core
from gpuperf.hooks import torch_profiler, versions
from gpuperf.hooks.post_import import when_imported

_installed = False


def install(wanted: object = None) -> None:
    """Installs all hooks, once. The stop at exit is always installed; the others only if the option `hooks` is on.

    Args:
        wanted: the option `hooks`, if the caller gave it; None asks GPUPERF_HOOKS.
    """
    global _installed
    _stop_at_exit()
    hooks_on = is_on("GPUPERF_HOOKS", default=True) if wanted is None else wanted not in (False, 0, "0")
    if _installed or not hooks_on:
        return
    _installed = True
    versions.tell_python()
    when_imported("torch", _torch_imported)


def _torch_imported() -> None:
    versions.tell_torch()
    torch_profiler.wrap()
    _stop_at_exit()


def _stop_at_exit() -> None:
    """Exit functions run last in, first out: registered after torch's own, ours runs while CUDA still works."""
    at_exit = load_core().at_exit
    atexit.unregister(at_exit)
    atexit.register(at_exit)
