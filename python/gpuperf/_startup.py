"""Runs at the start of each Python process whose environment asks for a capture; see docs/startup.md.

`gpuperf.pth` calls main() when CUDA_INJECTION64_PATH names a libgpuperf.so. Nothing here may fail or speak: the process
is somebody's training job, which does not know gpuperf.
"""

from __future__ import annotations

import os

_done = False


def main() -> None:
    """Installs the hooks, once, unless GPUPERF_DISABLE or GPUPERF_HOOKS=0 forbid it."""
    global _done
    if _done:
        return
    _done = True
    try:
        from gpuperf._env import is_on

        if not is_on("GPUPERF_DISABLE") and is_on("GPUPERF_HOOKS", default=True):
            from gpuperf import hooks

            hooks.install()
    except Exception as error:
        if os.environ.get("GPUPERF_LOG") == "debug":
            os.write(2, f"gpuperf: no Python hooks: {type(error).__name__}: {error}\n".encode())
