"""Publishing the frames of one environment. A writer never waits for anybody who looks."""

from __future__ import annotations

import time
import zlib
from typing import Any

import numpy as np

from mosaic.fastlane import layout, slots
from mosaic.fastlane.segment import Segment


class SlotWriter:
    """One claimed slot, to publish frames in."""

    def __init__(self, segment: Segment, slot: int) -> None:
        self.slot = slot
        self._segment = segment
        self._base = slots.entry(slot)
        self._region: slots.Region | None = None

    @property
    def mark(self) -> Any:
        """The viewer's mark, as a view of one number: the cheapest thing to look at in every step."""
        return self._view(layout.VIEWER_MARK, self._segment.floats)

    @property
    def steps(self) -> Any:
        """The count of steps, as a view of one number."""
        return self._view(layout.STEPS, self._segment.words)

    def _view(self, word: int, words: Any) -> Any:
        return words[self._base + word : self._base + word + 1]

    def publish(
        self, frame: Any, last_reward: float, rolling_return: float, step_rate_hz: float, mission: str = ""
    ) -> None:
        """Show a frame of one, three or four channels; SegmentError when there is no room for it.

        `mission` is what is to be done, in words; of a long one the beginning is shown.
        """
        pixels = np.ascontiguousarray(frame, dtype=np.uint8)
        if pixels.ndim == 2:
            pixels = pixels[:, :, None]
        height, width, channels = pixels.shape
        region = self._room_for(pixels.nbytes)
        stride = layout.frame_stride(len(region.bytes))
        words, base = self._segment.words, self._base
        number = words[base + layout.NEWEST] + 1
        start = (number % layout.DEPTH) * stride
        head = start // layout.WORD
        region.words[head + layout.SEQUENCE] = 2 * number - 1
        flat = pixels.reshape(-1)
        payload = start + layout.FRAME_HEAD
        region.pixels[payload : payload + flat.size] = flat
        region.words[head + layout.WIDTH] = width
        region.words[head + layout.HEIGHT] = height
        region.words[head + layout.CHANNELS] = channels
        region.words[head + layout.CHECKSUM] = zlib.crc32(flat.data)
        region.floats[head + layout.TAKEN_AT] = time.monotonic()
        region.floats[head + layout.LAST_REWARD] = last_reward
        region.floats[head + layout.ROLLING_RETURN] = rolling_return
        region.floats[head + layout.STEP_RATE] = step_rate_hz
        words_at = start + layout.MISSION * layout.WORD
        text = layout.pack_text(mission, layout.MISSION_BYTES)
        region.bytes[words_at : words_at + layout.MISSION_BYTES] = text
        region.words[head + layout.SEQUENCE] = 2 * number
        words[base + layout.NEWEST] = number
        words[base + layout.PICTURE] = layout.HAS_PICTURE

    def draw_here(self) -> None:
        """Have no other process draw for this slot any more."""
        self._segment.words[self._base + layout.DRAWN_OUTSIDE] = 0

    def no_picture(self, reason: str) -> None:
        """Say why there is nothing to see."""
        start = (self._base + layout.REASON) * layout.WORD
        text = layout.pack_text(reason, layout.REASON_BYTES)
        self._segment.bytes[start : start + layout.REASON_BYTES] = text
        self._segment.words[self._base + layout.PICTURE] = layout.NO_PICTURE

    def _room_for(self, frame_bytes: int) -> slots.Region:
        """A region that is large enough, which may be a new one."""
        held = self._segment.words[self._base + layout.REGION]
        _, size = layout.unpack_region(held)
        if size == 0 or layout.frame_stride(size) < layout.FRAME_HEAD + frame_bytes:
            # At least twice the old one, so that frames that grow and grow leave little behind.
            held = self._segment.grow(max(layout.region_size(frame_bytes), 2 * size))
            self._segment.words[self._base + layout.REGION] = held
        if self._region is None or self._region.held != held:
            self._region = slots.Region(self._segment, held)
        return self._region
