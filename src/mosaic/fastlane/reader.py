"""Looking at the frames of a run. A reader never makes a writer wait, and never shows a torn frame."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mosaic.fastlane import layout, slots
from mosaic.fastlane.segment import Segment

STALE_SECONDS = 10.0
"""A picture that somebody waits for this long is called stale; an update between two steps may be long."""
_TRIES = 5
_ASK_SECONDS = 0.25


@dataclass(frozen=True)
class Frame:
    """One whole picture: (height, width, channels) of bytes, and what was true when it was taken."""

    pixels: Any
    number: int
    taken_at: float
    last_reward: float
    rolling_return: float
    step_rate_hz: float
    mission: str = ""
    """What is to be done, in the environment's words; empty where it has none."""


@dataclass(frozen=True)
class SlotStatus:
    """How a slot fares: `waiting`, `live`, `stale`, `no picture` or `ended`, and why."""

    state: str
    reason: str = ""


class _SlotView:
    """What a reader knows of one slot."""

    def __init__(self) -> None:
        self.region: slots.Region | None = None
        self.seen = 0
        self.taken_at = 0.0
        self.asked_at = -1.0
        self.owner_state: str | None = None
        self.watched_since = 0.0


class FastLaneReader:
    """The frames of one run. Reading a slot is what makes its environment render."""

    def __init__(self, path: Path) -> None:
        self._segment = Segment(path)
        self._views: dict[int, _SlotView] = {}
        self.retries = 0
        """How often a frame changed while it was read."""

    @property
    def ended(self) -> bool:
        return self._segment.ended

    def slots(self) -> list[int]:
        """The slots that an environment has and that show frames. Asking leaves word that somebody looks."""
        self._segment.look()
        return [slot for slot in self._segment.shown if slots.owner_of(self._segment, slot) is not None]

    def read(self, slot: int) -> Frame | None:
        """The newest whole frame, or None when there is nothing new. Leaves the viewer's mark."""
        view = self._views.setdefault(slot, _SlotView())
        base = slots.entry(slot)
        now = time.monotonic()
        if now - self._segment.floats[base + layout.VIEWER_MARK] > layout.WATCHED_SECONDS:
            view.watched_since = now
        self._segment.floats[base + layout.VIEWER_MARK] = now
        for _ in range(_TRIES):
            number = self._segment.words[base + layout.NEWEST]
            if number == view.seen:
                return None
            frame = self._take(base, view, number)
            if frame is not None:
                view.seen, view.taken_at = number, frame.taken_at
                return frame
            self.retries += 1
        return None

    def _take(self, base: int, view: _SlotView, number: int) -> Frame | None:
        """A copy of frame `number`, or None when it was written over meanwhile."""
        held = self._segment.words[base + layout.REGION]
        region = view.region
        if region is None or region.held != held:
            region = view.region = slots.Region(self._segment, held)
        stride = layout.frame_stride(len(region.bytes))
        start = (number % layout.DEPTH) * stride
        head = start // layout.WORD
        if region.words[head + layout.SEQUENCE] != 2 * number:
            return None
        height, width, channels = (
            region.words[head + field] for field in (layout.HEIGHT, layout.WIDTH, layout.CHANNELS)
        )
        length = height * width * channels
        if length > stride - layout.FRAME_HEAD:
            return None
        payload = start + layout.FRAME_HEAD
        pixels = region.pixels[payload : payload + length].copy()
        checksum = region.words[head + layout.CHECKSUM]
        taken_at, reward, rolling, rate = (
            region.floats[head + field]
            for field in (layout.TAKEN_AT, layout.LAST_REWARD, layout.ROLLING_RETURN, layout.STEP_RATE)
        )
        words_at = start + layout.MISSION * layout.WORD
        mission = bytes(region.bytes[words_at : words_at + layout.MISSION_BYTES])
        if region.words[head + layout.SEQUENCE] != 2 * number or zlib.crc32(pixels) != checksum:
            return None
        picture = pixels.reshape(height, width, channels)
        return Frame(picture, number, taken_at, reward, rolling, rate, layout.unpack_text(mission))

    def status(self, slot: int) -> SlotStatus:
        """Whether the slot is live; who looks at it meanwhile leaves marks by `read`."""
        if self.ended:
            return SlotStatus("ended", "the run has ended")
        owner = slots.owner_of(self._segment, slot)
        if owner is None:
            return self.beginning()
        view = self._views.setdefault(slot, _SlotView())
        now = time.monotonic()
        if now - view.asked_at > _ASK_SECONDS:
            view.owner_state, view.asked_at = owner.state, now
        base = slots.entry(slot)
        if view.owner_state is None:
            return SlotStatus("stale", "the training process is gone")
        if view.owner_state in ("T", "t"):
            return SlotStatus("stale", "training is paused")
        if self._segment.words[base + layout.PICTURE] == layout.NO_PICTURE:
            return SlotStatus("no picture", self._reason(base))
        if view.seen == 0 or self._segment.phase in layout.START_PHASES:
            return self.beginning()
        waited = now - max(view.taken_at, view.watched_since)
        if waited > STALE_SECONDS:
            return SlotStatus("stale", f"no new picture for {waited:.0f} s")
        return SlotStatus("live")

    def beginning(self) -> SlotStatus:
        """What is waited for before there is a picture that moves."""
        phase = self._segment.phase or layout.IMPORTING
        steps = phase == layout.FIRST_STEPS
        return SlotStatus("waiting", "its environments take their first steps" if steps else phase)

    def _reason(self, base: int) -> str:
        start = (base + layout.REASON) * layout.WORD
        return layout.unpack_text(bytes(self._segment.bytes[start : start + layout.REASON_BYTES]))

    def close(self) -> None:
        self._views.clear()
        self._segment.close()
