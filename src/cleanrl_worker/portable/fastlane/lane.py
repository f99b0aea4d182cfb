"""The run's segment, as the processes of its training side see it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from mosaic.fastlane import slots
from mosaic.fastlane.layout import MAKING
from mosaic.fastlane.segment import Segment, SegmentError

SEGMENT_VARIABLE = "CLEANRL_FASTLANE_SEGMENT"

_opened: dict[int, Segment | None] = {}
_unwatched: list[bool] = []
_ahead: list[bool] = []


def open_lane() -> Segment | None:
    """The segment that the environment variable names, opened once in each process; None without one."""
    pid = os.getpid()
    if pid not in _opened:
        # A forked child needs its own: what the parent had open is the parent's.
        _opened.clear()
        path = os.environ.get(SEGMENT_VARIABLE)
        try:
            _opened[pid] = Segment(Path(path)) if path else None
        except SegmentError as error:
            warn(str(error))
            _opened[pid] = None
    return _opened[pid]


@contextlib.contextmanager
def _noted(where: list[bool]) -> Iterator[None]:
    where.append(True)
    try:
        yield
    finally:
        where.pop()


def unwatched() -> contextlib.AbstractContextManager[None]:
    """Environments made in here are not for viewers: evaluations between two updates play in them."""
    return _noted(_unwatched)


def is_unwatched() -> bool:
    return bool(_unwatched)


def ahead() -> contextlib.AbstractContextManager[None]:
    """Environments made in here are shown ahead of those that train: with them training does not begin."""
    return _noted(_ahead)


def enter_making(segment: Segment) -> None:
    """Tell that the environments that train are being made."""
    if not _ahead:
        segment.enter_phase(MAKING)


def release_slot(segment: Segment, slot: int, owner: slots.Owner) -> None:
    """Give a slot back, unless this is a forked child that has only inherited the environment."""
    if os.getpid() == owner.pid:
        slots.release(segment, slot, owner)


def warn(text: str) -> None:
    """One line for the run's log; a live picture is never worth more than that."""
    print(f"FastLane: {text}", file=sys.stderr, flush=True)
