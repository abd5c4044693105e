"""Calls a function when a module has been imported, without importing it.

A finder at the head of `sys.meta_path` lets the other finders find the module, and gives the one loader object that
they return an `exec_module` that calls back afterwards. Both the finder and that attribute are gone once the module is
there, so nothing of gpuperf stays in the import system. A failing callback never fails the import.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing costs start-up time
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def when_imported(name: str, callback: Callable[[], None]) -> None:
    """Calls `callback` after the next import of the top-level module `name`, or now if it is imported already."""
    module = sys.modules.get(name)
    if module is None:
        sys.meta_path.insert(0, _Finder(name, callback))
    else:
        call_safely(callback)


def call_safely(callback: Callable[[], object]) -> None:
    """Calls `callback`; an exception becomes one line, and only under GPUPERF_LOG=debug."""
    try:
        callback()
    except Exception as error:
        if os.environ.get("GPUPERF_LOG") == "debug":
            from gpuperf.errors import warn

            warn(f"hook failed: {type(error).__name__}: {error}")


class _Finder:
    """Finds nothing itself: asks the others for the module it waits for, and wraps what they found."""

    def __init__(self, name: str, callback: Callable[[], None]) -> None:
        self._name = name
        self._callback = callback
        self._asking = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name or self._asking:
            return None
        self._asking = True  # another finder may ask all the others too, and so us
        try:
            others = (finder.find_spec(fullname, path, target) for finder in sys.meta_path)
            spec = next((found for found in others if found is not None), None)
        finally:
            self._asking = False
        loader = None if spec is None else spec.loader
        execute = getattr(loader, "exec_module", None)
        if loader is None or execute is None:
            return spec

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)  # the instance's; the class's own is visible again
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                call_safely(self._callback)

        # A loader that takes no attributes (none of Python's own) is left alone: no hook then.
        call_safely(lambda: setattr(loader, "exec_module", exec_module))
        return spec
