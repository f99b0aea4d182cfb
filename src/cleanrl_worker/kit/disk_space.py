"""Writing that waits for space when the disk is full, so that a run goes on where it stood."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cleanrl_worker.kit import stopping
from mosaic.analytics.event_files import EventWriter
from mosaic.contract.atomic import insist, is_full
from mosaic.contract.phases import set_waiting

RUN_DIR_VARIABLE = "CLEANRL_RUN_DIR"

Result = TypeVar("Result")


def write_patiently(write: Callable[[], Result], again: Callable[[], Result] | None = None) -> Result:
    """Do `write`; while the disk is full, wait and do it again, until the process is asked to stop.

    The supervisor sees that from outside, and tells.
    """
    told = False

    def may_wait(error: OSError) -> bool:
        nonlocal told
        if not is_full(error):
            return False
        if not told:
            _tell(True)
            told = True
        return not stopping.asked

    try:
        return insist(write, may_wait, again)
    finally:
        if told:
            _tell(False)


def _tell(waits: bool) -> None:
    if RUN_DIR_VARIABLE in os.environ:
        set_waiting(Path(os.environ[RUN_DIR_VARIABLE]), waits)


class PatientEvents(EventWriter):
    """An event file that waits for space."""

    def flush(self) -> None:
        """Hands everything recorded so far to the operating system."""
        write_patiently(super().flush)
