"""gpuperf stops before a torch.profiler session that asks for the GPU, because CUPTI has room for one client.

All of torch's ways to a session (torch.profiler.profile, torch.autograd.profiler.profile, with or without a schedule)
end in two functions that torch/autograd/profiler.py looks up in its own namespace: `_prepare_profiler(config,
activities)` and `_enable_profiler(config, activities)`, from torch 2.0 to 2.13. Both are wrapped there.
A session takes CUPTI if and only if its activities hold ProfilerActivity.CUDA; sessions on the CPU, emit_nvtx() and
emit_itt() do not, and gpuperf runs on.
"""

from __future__ import annotations

import sys

from gpuperf._libpath import load_core
from gpuperf.hooks.post_import import call_safely

TYPE_CHECKING = False  # typing costs start-up time
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_NAMES = ("_prepare_profiler", "_enable_profiler")
_MARK = "__gpuperf_wraps__"


def wrap() -> None:
    """Wraps the two functions of an imported torch. Once: a second call changes nothing."""
    module = sys.modules.get("torch.autograd.profiler")
    for name in _NAMES:
        original = getattr(module, name, None)
        if original is not None and not hasattr(original, _MARK):
            setattr(module, name, _stepping_aside(original))


def _stepping_aside(original: Callable[..., Any]) -> Callable[..., Any]:
    import functools  # not at the start of each process

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call_safely(lambda: _step_aside(*args, **kwargs))
        return original(*args, **kwargs)

    setattr(wrapper, _MARK, original)
    return wrapper


def _step_aside(_config: object = None, activities: Iterable[object] = (), *_: object, **__: object) -> None:
    if any(getattr(activity, "name", None) == "CUDA" for activity in activities):
        load_core().yield_("torch.profiler session")
