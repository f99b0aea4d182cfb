"""All pictures of a run as one, for whoever shows them: a terminal, a file, a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mosaic.fastlane.layout import segment_path
from mosaic.fastlane.reader import FastLaneReader, Frame, SlotStatus
from mosaic.fastlane.segment import SegmentError


def grid_shape(count: int) -> tuple[int, int]:
    """Rows and columns for so many pictures: few empty places, at least as wide as high: 8 are 2 × 4."""
    shapes = [(rows, columns) for rows in range(1, count + 1) for columns in range(rows, 2 * rows + 1)]
    rows, columns = min(
        (shape for shape in shapes if shape[0] * shape[1] >= count),
        key=lambda shape: (shape[0] * shape[1], shape[1] - shape[0]),
    )
    return rows, columns


def tile(pictures: Sequence[Any], gap: int = 2) -> Any:
    """RGB pictures side by side, each in the middle of a place that fits the largest."""
    rows, columns = grid_shape(len(pictures))
    height = max(picture.shape[0] for picture in pictures)
    width = max(picture.shape[1] for picture in pictures)
    canvas = np.zeros((rows * (height + gap) - gap, columns * (width + gap) - gap, 3), np.uint8)
    for index, picture in enumerate(pictures):
        top = index // columns * (height + gap) + (height - picture.shape[0]) // 2
        left = index % columns * (width + gap) + (width - picture.shape[1]) // 2
        canvas[top : top + picture.shape[0], left : left + picture.shape[1]] = as_rgb(picture)
    return canvas


def as_rgb(picture: Any) -> Any:
    """A picture with one, three or four channels as red, green and blue."""
    return np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture[:, :, :3]


_RANK = ("live", "waiting", "stale", "no picture", "ended")


@dataclass(frozen=True)
class Metrics:
    """What stands beside the pictures: means over the environments shown, and the run's steps per second."""

    last_reward: float
    rolling_return: float
    step_rate_hz: float


class LiveGrid:
    """The newest picture of each environment of a run. Looking at it is what makes them render.

    It may be made before the run has started, and goes on when the run is started again.
    """

    def __init__(self, run_id: str) -> None:
        self._path = segment_path(run_id)
        self._reader: FastLaneReader | None = None
        self._frames: dict[int, Frame] = {}
        self._trouble = SlotStatus("waiting", "it has not begun, or live frames are off or found no room")

    def look(self) -> bool:
        """Take in what is new; False when nothing is."""
        reader = self._open()
        if reader is None:
            return False
        changed = False
        try:
            shown = reader.slots()
            for slot in shown:
                frame = reader.read(slot)
                if frame is not None:
                    self._frames[slot] = frame
                    changed = True
        except SegmentError as error:
            self.close()
            self._trouble = SlotStatus("no picture", str(error))
            return False
        gone = self._frames.keys() - set(shown)
        if shown and gone:
            # A closed environment leaves its place; the last picture of a run that ends stays to be seen.
            for slot in gone:
                del self._frames[slot]
            changed = True
        return changed

    @property
    def shown(self) -> list[int]:
        """The slots of which there is a picture."""
        return sorted(self._frames)

    @property
    def awaited(self) -> list[int]:
        """The slots whose environment has drawn nothing yet and has not said that it never will."""
        reader = self._reader
        if reader is None or reader.ended:
            return []
        return [slot for slot in reader.slots() if reader.status(slot).state == "waiting"]

    def frames(self) -> dict[int, Frame]:
        """The newest frame of each slot that has one, for whoever lays them out otherwise."""
        return {slot: self._frames[slot] for slot in self.shown}

    def picture(self) -> Any:
        """The pictures as one, (height, width, 3); None when there is none yet."""
        frames = [self._frames[slot].pixels for slot in self.shown]
        if not frames:
            return None
        return as_rgb(frames[0]) if len(frames) == 1 else tile(frames)

    def missions(self) -> list[str]:
        """What each environment that is shown has to do, in its words; none where no environment has any."""
        found = [self._frames[slot].mission for slot in self.shown]
        return found if any(found) else []

    def metrics(self) -> Metrics | None:
        """The numbers that came with the newest pictures."""
        frames = list(self._frames.values())
        if not frames:
            return None
        newest = max(frames, key=lambda frame: frame.taken_at)
        return Metrics(
            sum(frame.last_reward for frame in frames) / len(frames),
            sum(frame.rolling_return for frame in frames) / len(frames),
            newest.step_rate_hz,
        )

    def status(self) -> SlotStatus:
        """The best that can be said of any of the environments."""
        reader = self._reader
        if reader is None:
            return self._trouble
        if reader.ended:
            return SlotStatus("ended", "the run has ended")
        found = [reader.status(slot) for slot in reader.slots()]
        if not found:
            return reader.beginning()
        return min(found, key=lambda status: _RANK.index(status.state))

    def _open(self) -> FastLaneReader | None:
        if self._reader is not None and self._reader.ended and self._path.exists():
            self._reader.close()
            self._reader = None
        if self._reader is None:
            try:
                self._reader = FastLaneReader(self._path)
            except SegmentError as error:
                if self._path.exists():
                    self._trouble = SlotStatus("no picture", str(error))
        return self._reader

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def __enter__(self) -> LiveGrid:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
