"""Named points of a submit and of a state change at which a test may kill the daemon."""

from __future__ import annotations

import os
import signal

VARIABLE = "MOSAIC_CRASH_POINT"


def reach(name: str) -> None:
    """Be killed here, as by `kill -9`, when $MOSAIC_CRASH_POINT says so."""
    if os.environ.get(VARIABLE) == name:
        os.kill(os.getpid(), signal.SIGKILL)
