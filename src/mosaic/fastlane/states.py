"""States of environments on their way to the process that draws them, and who that is.

A slot has at most one state. Its sequence is 2n - 1 while state n is written, and 2n when it is whole.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

from mosaic.fastlane import layout, slots
from mosaic.fastlane.segment import Segment

_SEQUENCE, _LENGTH, _CHECKSUM = range(3)
_HEAD_BYTES = 64
_FIXED = struct.Struct("=4dQ")


class State(NamedTuple):
    """What one picture follows from: how to make such an environment, its numbers, and what stands beside."""

    recipe: str
    values: Any
    max_dim: int
    last_reward: float
    rolling_return: float
    step_rate_hz: float

    def pack(self) -> bytes:
        recipe = self.recipe.encode()
        beside = (self.max_dim, self.last_reward, self.rolling_return, self.step_rate_hz)
        return _FIXED.pack(*beside, len(recipe)) + recipe + bytes(self.values.data)

    @classmethod
    def unpack(cls, data: bytes) -> State:
        max_dim, reward, rolling, rate, length = _FIXED.unpack_from(data)
        values_at = _FIXED.size + length
        recipe = data[_FIXED.size : values_at].decode()
        values = np.frombuffer(data[values_at:], np.float64)
        return cls(recipe, values, int(max_dim), reward, rolling, rate)


class StateSlot:
    """The state of one slot, for who writes it and for who draws it."""

    def __init__(self, segment: Segment, slot: int) -> None:
        self.slot = slot
        self.segment = segment
        self._base = slots.entry(slot)
        self._region = 0
        self._bytes: Any = None
        self._words: Any = None

    @property
    def number(self) -> int:
        """How many states there have been; the newest may still be on its way."""
        return (self._words[_SEQUENCE] + 1) // 2 if self._map() else 0

    @property
    def drawn(self) -> int:
        """The newest state that was drawn, or `NOT_DRAWABLE`."""
        return int(self.segment.words[self._base + layout.DRAWN])

    @drawn.setter
    def drawn(self, number: int) -> None:
        self.segment.words[self._base + layout.DRAWN] = number

    @property
    def drawn_outside(self) -> bool:
        """Whether pictures of this slot are the drawing process's; else the training process's own."""
        return bool(self.segment.words[self._base + layout.DRAWN_OUTSIDE])

    @drawn_outside.setter
    def drawn_outside(self, outside: bool) -> None:
        self.segment.words[self._base + layout.DRAWN_OUTSIDE] = int(outside)

    def write(self, state: State) -> int:
        """Leave a state, in place of the one before it; its number."""
        data = state.pack()
        self._make_room(_HEAD_BYTES + len(data))
        number = self.number + 1
        self._words[_SEQUENCE] = 2 * number - 1
        self._bytes[_HEAD_BYTES : _HEAD_BYTES + len(data)] = data
        self._words[_LENGTH] = len(data)
        self._words[_CHECKSUM] = zlib.crc32(data)
        self._words[_SEQUENCE] = 2 * number
        return number

    def read(self) -> tuple[int, State] | None:
        """The newest state and its number; None when there is none that is whole and was not drawn."""
        if not self._map():
            return None
        sequence = self._words[_SEQUENCE]
        if sequence % 2 or sequence // 2 == self.drawn:
            return None
        data = bytes(self._bytes[_HEAD_BYTES : _HEAD_BYTES + self._words[_LENGTH]])
        checksum = self._words[_CHECKSUM]
        if self._words[_SEQUENCE] != sequence or zlib.crc32(data) != checksum:
            return None
        return sequence // 2, State.unpack(data)

    def _make_room(self, size: int) -> None:
        if self._map() and len(self._bytes) >= size:
            return
        number = self.number
        pages = (2 * size + layout.PAGE - 1) // layout.PAGE * layout.PAGE
        with self.segment.locked():
            offset = self.segment.grow(pages)
        self.segment.words[self._base + layout.STATE] = layout.pack_region(offset, pages)
        self._map()
        self._words[_SEQUENCE] = 2 * number

    def _map(self) -> bool:
        """Have the region in sight, which may be a new one; False when there is none yet."""
        held = self.segment.words[self._base + layout.STATE]
        if held != self._region:
            offset, size = layout.unpack_region(held)
            self._bytes = memoryview(self.segment.map(offset, size))
            self._words = self._bytes.cast("Q")
            self._region = held
        return bool(held)


def drawer_of(segment: Segment) -> slots.Owner | None:
    """The process that draws for this run, which may have ended; None when there was none yet."""
    at = layout.HEAD_DRAWER // layout.WORD
    pid = segment.words[at]
    return slots.Owner(pid, segment.words[at + 1]) if pid else None


def appoint(segment: Segment, drawer: slots.Owner) -> None:
    """Let a process be the one that draws; called while the segment is locked."""
    at = layout.HEAD_DRAWER // layout.WORD
    segment.words[at + 1] = drawer.start
    segment.words[at] = drawer.pid
