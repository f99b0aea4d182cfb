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
        self._region: slots.Region | None = None

    @property
    def number(self) -> int:
        """How many states there have been; the newest may still be on its way."""
        region = self._map()
        return 0 if region is None else (int(region.words[_SEQUENCE]) + 1) // 2

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
        region = self._room_for(_HEAD_BYTES + len(data))
        number = self.number + 1
        region.words[_SEQUENCE] = 2 * number - 1
        region.bytes[_HEAD_BYTES : _HEAD_BYTES + len(data)] = data
        region.words[_LENGTH] = len(data)
        region.words[_CHECKSUM] = zlib.crc32(data)
        region.words[_SEQUENCE] = 2 * number
        return number

    def read(self) -> tuple[int, State] | None:
        """The newest state and its number; None when there is none that is whole and was not drawn."""
        region = self._map()
        if region is None:
            return None
        sequence = region.words[_SEQUENCE]
        if sequence % 2 or sequence // 2 == self.drawn:
            return None
        data = bytes(region.bytes[_HEAD_BYTES : _HEAD_BYTES + region.words[_LENGTH]])
        checksum = region.words[_CHECKSUM]
        if region.words[_SEQUENCE] != sequence or zlib.crc32(data) != checksum:
            return None
        return sequence // 2, State.unpack(data)

    def _room_for(self, size: int) -> slots.Region:
        region = self._map()
        if region is None or len(region.bytes) < size:
            number, held = self.number, self.segment.grow(-(-2 * size // layout.PAGE) * layout.PAGE)
            region = self._region = slots.Region(self.segment, held)
            self.segment.words[self._base + layout.STATE] = held
            region.words[_SEQUENCE] = 2 * number
        return region

    def _map(self) -> slots.Region | None:
        """The region in sight, which may be a new one; None when there is none yet."""
        held = self.segment.words[self._base + layout.STATE]
        if held and (self._region is None or self._region.held != held):
            self._region = slots.Region(self.segment, held)
        return self._region


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
