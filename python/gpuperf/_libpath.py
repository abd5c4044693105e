"""Where libgpuperf.so is, and the one way to load the module that links it.

A process must hold one libgpuperf.so only: two would be two captures. Under `gpuperf run` the CUDA driver loads the one
that CUDA_INJECTION64_PATH names, which belongs to the gpuperf that ran the command and may be another installation than
the job's. So that one is loaded first here, and `_core` then binds to it by its SONAME.
"""

from __future__ import annotations

import os

from gpuperf._env import LIBRARY_NAME, injected_library

TYPE_CHECKING = False  # typing costs start-up time
if TYPE_CHECKING:
    from types import ModuleType


def library() -> str:
    """Path of this installation's libgpuperf.so: beside `_core`, which an editable installation keeps elsewhere."""
    from importlib.util import find_spec

    spec = find_spec("gpuperf._core")
    folder = os.path.dirname(spec.origin if spec is not None and spec.origin else os.path.abspath(__file__))
    return os.path.join(folder, LIBRARY_NAME)


def load_core() -> ModuleType:
    """Imports `gpuperf._core`, bound to the libgpuperf.so that captures in this process.

    Raises:
        ImportError: libgpuperf.so is missing or speaks another version of the interface.
    """
    injected = injected_library()
    own = os.path.join(os.path.dirname(__file__), LIBRARY_NAME)
    if injected is not None and injected != own and os.path.exists(injected):
        import _ctypes

        _ctypes.dlopen(injected, os.RTLD_NOW)  # a second time gives the same library; it is never unloaded
    from gpuperf import _core

    return _core
