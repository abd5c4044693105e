"""gpuperf: an always-on GPU capture for training jobs.

    import gpuperf

    gpuperf.start()
    for batch in loader:
        ...
        gpuperf.step(samples=len(batch))
    gpuperf.stop()

Importing gpuperf loads next to nothing: the library comes with the first use of one of the names below.
"""

from __future__ import annotations

import os as _os

from gpuperf._env import inject_nvtx, injected_library
from gpuperf._libpath import library as _library

TYPE_CHECKING = False  # typing costs start-up time
if TYPE_CHECKING:
    from gpuperf.api import (
        Stats,
        annotate,
        counter,
        flush,
        mark,
        profile,
        start,
        stats,
        step,
        stop,
    )
    from gpuperf.errors import (
        GpuperfError,
        OptionError,
        OutputExistsError,
        OutputUnwritableError,
        RegionError,
        TraceError,
    )
    from gpuperf.tables import Trace

    __version__: str
    state: str
    output_path: str | None

__all__ = [
    "GpuperfError",
    "OptionError",
    "OutputExistsError",
    "OutputUnwritableError",
    "RegionError",
    "Stats",
    "Trace",
    "TraceError",
    "__version__",
    "annotate",
    "counter",
    "flush",
    "mark",
    "output_path",
    "profile",
    "start",
    "state",
    "stats",
    "step",
    "stop",
]

_ERRORS = (
    "GpuperfError",
    "OptionError",
    "OutputExistsError",
    "OutputUnwritableError",
    "RegionError",
    "TraceError",
)


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'gpuperf' has no attribute {name!r}")
    if name in _ERRORS:
        from gpuperf import errors

        value: object = getattr(errors, name)
    elif name == "Trace":  # needs the offline half only, neither libgpuperf.so nor a GPU
        from gpuperf import tables

        value = tables.Trace
    else:
        from gpuperf import api

        if name in ("state", "output_path"):  # read anew each time
            return api.get_state() if name == "state" else api.get_output_path()
        value = api.version() if name == "__version__" else getattr(api, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


# As early as possible: a library whose first NVTX call comes before this is not heard.
inject_nvtx(_os.environ, injected_library() or _library())

# A job under `gpuperf run` whose Python has no start-up file (a PYTHONPATH installation) gets its hooks here.
if injected_library() is not None:
    from gpuperf import _startup

    _startup.main()
