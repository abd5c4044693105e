"""The modes that are measured against each other in one process: nothing, the bare CUPTI client, gpuperf.

Each mode is started before a block and stopped after it; stop detaches CUPTI, so nothing of it is left for the next.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from built import find_built

FLUSH_MS = 200


@dataclass(frozen=True)
class Mode:
    """What happens before and after a block."""

    name: str
    start: Callable[[], None]
    stop: Callable[[], None]


def nothing() -> Mode:
    """No CUPTI at all."""
    return Mode("none", lambda: None, lambda: None)


class Baseline:
    """The bare client (baseline/bare_client.cc)."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(str(find_built("libgpuperf_baseline.so")))
        self._library.bare_error.restype = ctypes.c_char_p
        for name in ("bare_completed_bytes", "bare_refused", "bare_pool_bytes"):
            getattr(self._library, name).restype = ctypes.c_uint64

    def mode(self) -> Mode:
        """The client as a mode."""
        return Mode("baseline", self.start, self.stop)

    def start(self) -> None:
        """Subscribes and enables."""
        self._check(self._library.bare_start(ctypes.c_uint32(FLUSH_MS)))

    def stop(self) -> None:
        """Detaches. Raises if CUPTI delivered nothing: then the client was not subscribed and measured nothing."""
        self._check(self._library.bare_stop())
        if self.completed_bytes() == 0:
            raise RuntimeError("baseline: CUPTI delivered no record")

    def completed_bytes(self) -> int:
        """Bytes of records delivered so far."""
        return int(self._library.bare_completed_bytes())

    def pool_bytes(self) -> int:
        """Host memory of its pool."""
        return int(self._library.bare_pool_bytes())

    def _check(self, status: int) -> None:
        if status != 0:
            raise RuntimeError(f"baseline: {self._library.bare_error().decode()}")


class Gpuperf:
    """Full capture to a file on disk; keeps count of what was recorded and lost."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sessions = 0
        self.kernels = 0
        self.bytes = 0
        self.lost = 0

    def mode(self) -> Mode:
        """The capture as a mode."""
        return Mode("gpuperf", self.start, self.stop)

    def path(self) -> Path:
        """The file of the session that runs or ran last."""
        return self._folder / f"block-{os.getpid()}-{self._sessions}.gpuperf"

    def start(self) -> None:
        """Starts a session with the defaults."""
        import gpuperf

        self._sessions += 1
        if not gpuperf.start(self.path(), quiet=True):
            raise RuntimeError("gpuperf could not start")

    def stop(self) -> None:
        """Ends it. Raises if nothing was recorded."""
        import gpuperf

        gpuperf.stop()
        stats = gpuperf.stats()
        if stats.kernels == 0:
            raise RuntimeError("gpuperf recorded no kernel")
        self.kernels += stats.kernels
        self.lost += stats.lost
        self.bytes += self.path().stat().st_size
        self.path().unlink()
