"""What a training process does first: it begins when it may, ends with its supervisor, finds the user's code.

`TrainingProcess` hands over both numbers, as `--parent` and `--go-fd`. A script that must run in any
interpreter cannot import this and does the same by itself, as `cleanrl_worker/portable/launcher.py` does.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from mosaic.worker.environment import FOLDER_VARIABLE

_PR_SET_PDEATHSIG = 1


def hold(parent: int, go_fd: int) -> None:
    """Return when the supervisor says go; from now on this process is killed when the supervisor ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It ended before we could ask for the signal.
        os._exit(1)
    word = os.read(go_fd, 1)
    os.close(go_fd)
    if not word:
        # A closed pipe means that this run is not to be.
        os._exit(1)
    if FOLDER_VARIABLE in os.environ:
        sys.path.append(os.environ[FOLDER_VARIABLE])
