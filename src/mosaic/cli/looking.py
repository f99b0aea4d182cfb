"""Waiting for live pictures of a run, with a sentence when there are none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mosaic.cli.program import program
from mosaic.contract.errors import MosaicError, UserError
from mosaic.contract.extras import install_advice
from mosaic.fastlane.layout import lacking_package

if TYPE_CHECKING:
    from mosaic.client import RunRecord
    from mosaic.fastlane.grid import LiveGrid
    from mosaic.fastlane.reader import SlotStatus

WAIT_SECONDS = 20.0
"""The first picture may take a while: a renderer has to start, and an update may lie between two steps."""
PATIENCE_SECONDS = 6.0
"""For the next environment's first: those of one process draw theirs one by one, at most 5 s apart."""
_PAUSE_SECONDS = 0.01


@contextmanager
def looking_at(run: RunRecord) -> Iterator[LiveGrid]:
    """The pictures of a run that trains now; for another one, UserError says what to do."""
    from mosaic.fastlane.grid import LiveGrid

    if run.status == "TERM":
        raise UserError(
            f"Run {run.run_id} has ended, so there is no live picture; "
            f"`{program()} show {run.run_id}` lists what it left."
        )
    with LiveGrid(run.run_id) as grid:
        yield grid


def reason_of(status: SlotStatus, python: str | None) -> str:
    """Why there is no live picture, and what to do where a package is missing in the run's interpreter."""
    package = lacking_package(status.reason)
    if not package:
        return status.reason
    return f"{status.reason}; {install_advice(package, python)}, then it comes by itself"


def first_picture(grid: LiveGrid, run: RunRecord) -> Any:
    """The picture of all environments, or of those that drew when no other comes any more."""
    deadline = time.monotonic() + WAIT_SECONDS
    seen = 0
    while time.monotonic() < deadline:
        grid.look()
        if len(grid.shown) > seen:
            seen, deadline = len(grid.shown), time.monotonic() + PATIENCE_SECONDS
        if seen and not grid.awaited:
            break
        status = grid.status()
        if status.state in ("no picture", "ended") and not seen:
            why = reason_of(status, run.python)
            raise MosaicError(f"There is no picture of run {run.run_id}: {why}.")
        time.sleep(_PAUSE_SECONDS)
    if seen:
        return grid.picture()
    status = grid.status()
    raise MosaicError(
        f"Run {run.run_id} gave no picture within {WAIT_SECONDS:.0f} s: {status.reason or status.state}."
    )
