"""The slot table: which environment of which process has which place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mosaic.fastlane import layout
from mosaic.fastlane.segment import Segment


class Owner(NamedTuple):
    """The process that has a slot. `start` is in clock ticks since boot, so that a reused pid is another."""

    pid: int
    start: int

    @classmethod
    def myself(cls) -> Owner:
        me = cls.of(os.getpid())
        assert me is not None
        return me

    @classmethod
    def of(cls, pid: int) -> Owner | None:
        """A process that lives; None when there is none with this id."""
        fields = _stat_fields(pid)
        return None if fields is None else cls(pid, int(fields[19]))

    @property
    def state(self) -> str | None:
        """The kernel's letter for what the process does; None when it is gone."""
        fields = _stat_fields(self.pid)
        if fields is None or int(fields[19]) != self.start or fields[0] in ("Z", "X"):
            return None
        return fields[0]


def _stat_fields(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the state on; the command before it may hold anything."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def entry(slot: int) -> int:
    """The first word of a slot's entry."""
    return (layout.TABLE + slot * layout.SLOT_BYTES) // layout.WORD


class Region:
    """What a word of a slot's entry points to, in sight; `held` is that word."""

    def __init__(self, segment: Segment, held: int) -> None:
        self.held = held
        mapped = segment.map(*layout.unpack_region(held))
        self.bytes: Any = memoryview(mapped)
        self.words: Any = self.bytes.cast("Q")
        self.floats: Any = self.bytes.cast("d")
        self.pixels: Any = np.frombuffer(mapped, np.uint8)


def owner_of(segment: Segment, slot: int) -> Owner | None:
    """Who has the slot; None when it is free."""
    base = entry(slot)
    pid = segment.words[base + layout.OWNER_PID]
    return Owner(pid, segment.words[base + layout.OWNER_START]) if pid else None


def claim(segment: Segment, me: Owner) -> int | None:
    """The lowest slot that is free or whose process is gone, now ours; None when the table is full."""
    with segment.locked():
        for slot in range(layout.SLOTS):
            owner = owner_of(segment, slot)
            if owner == me or (owner is not None and owner.state is not None):
                continue
            base = entry(slot)
            segment.words[base + layout.PICTURE] = layout.NOTHING_YET
            segment.words[base + layout.DRAWN_OUTSIDE] = 0
            segment.words[base + layout.OWNER_START] = me.start
            segment.words[base + layout.OWNER_PID] = me.pid
            return slot
    return None


def release(segment: Segment, slot: int, me: Owner) -> None:
    """Give a slot back, if it is still ours.

    Without the lock: one word changes, and nobody else touches it while we live. The garbage collector may
    call this while this very thread holds the lock.
    """
    if owner_of(segment, slot) == me:
        segment.words[entry(slot) + layout.OWNER_PID] = 0
