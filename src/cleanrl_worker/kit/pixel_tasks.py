"""Small tasks in pictures of 84 × 84 bytes, on which an algorithm for images proves itself in minutes.

`mosaic/Catch-v0` needs what several frames show, `mosaic/Recall-v0` what an early frame showed. Importing
this module registers them; an id of theirs does so by itself. The mean return is the share of episodes that
went well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

SIZE = 84
_ZOOM = 4
"""How many times larger the picture is that people see."""
FAINT, DIM, BRIGHT = 48, 96, 255

Frame = NDArray[np.uint8]


def enlarge(picture: Frame) -> Frame:
    """A grey picture in colour, and large enough for people."""
    return picture.repeat(_ZOOM, axis=0).repeat(_ZOOM, axis=1).repeat(3, axis=2)


class PixelTask(gymnasium.Env[Frame, Any], ABC):
    """What the tasks share: a grey picture of `SIZE` × `SIZE`, and the same picture for people."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012
    observation_space = spaces.Box(0, 255, (SIZE, SIZE, 1), np.uint8)
    meanings: tuple[str, ...]
    """A word for each action."""

    def __init__(self, render_mode: str | None = None) -> None:
        self.action_space: Any = spaces.Discrete(len(self.meanings))
        self.render_mode = render_mode

    def get_action_meanings(self) -> list[str]:
        """A word for each action, as games of Atari have them."""
        return list(self.meanings)

    def render(self) -> Any:
        """The picture in colour, large enough to be looked at; None without a render mode."""
        if self.render_mode is None:
            return None
        return enlarge(self._look())

    @abstractmethod
    def _look(self) -> Frame:
        """What is seen now."""


class Catch(PixelTask):
    """A block falls at a slant and rebounds from the walls; a bat at the bottom has to be under it.

    Actions: 0 stay, 1 left, 2 right. The block is faster than the bat, so that following it is too late, and
    one frame does not show which way it goes. 1 for a block that is caught, 0 for one that is not. With
    `trail` a faint block stands where the block was, so that one frame is enough.
    """

    meanings = ("stay", "left", "right")
    BLOCK, BAT, BAT_HEIGHT = 6, 12, 4
    FALL, REACH = 4, 3
    """How far the block falls and how far the bat moves with each step."""
    SPEEDS = (4, 5, 6)

    def __init__(self, render_mode: str | None = None, trail: bool = False) -> None:
        super().__init__(render_mode)
        self._trail = trail
        self._x = self._y = self._drift = self._bat = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Frame, Any]:
        super().reset(seed=seed)
        drawn = self.np_random.integers(0, (SIZE - self.BLOCK + 1, len(self.SPEEDS), 2))
        self._x, self._y = int(drawn[0]), 0
        self._drift = self.SPEEDS[drawn[1]] * (1 if drawn[2] else -1)
        self._bat = (SIZE - self.BAT) // 2
        return self._look(), {}

    def step(self, action: int) -> tuple[Frame, float, bool, bool, dict[str, Any]]:
        self._bat += (0, -self.REACH, self.REACH)[action]
        self._bat = min(max(self._bat, 0), SIZE - self.BAT)
        self._y += self.FALL
        self._x += self._drift
        most = SIZE - self.BLOCK
        if not 0 <= self._x <= most:
            self._x = -self._x if self._x < 0 else 2 * most - self._x
            self._drift = -self._drift
        landed = self._y + self.BLOCK >= SIZE - self.BAT_HEIGHT
        caught = landed and self._bat - self.BLOCK < self._x < self._bat + self.BAT
        return self._look(), float(caught), landed, False, {}

    def _look(self) -> Frame:
        frame = np.zeros((SIZE, SIZE, 1), np.uint8)
        if self._trail:
            # What would lie beyond a wall, after a rebound, is cut off.
            before, above = max(self._x - self._drift, 0), max(self._y - self.FALL, 0)
            frame[above : self._y - self.FALL + self.BLOCK, before : before + self.BLOCK] = FAINT
        frame[self._y : self._y + self.BLOCK, self._x : self._x + self.BLOCK] = BRIGHT
        frame[SIZE - self.BAT_HEIGHT :, self._bat : self._bat + self.BAT] = DIM
        return frame


class Recall(PixelTask):
    """One of four corners lights up at first; after a dark while all four are shown and it must be named.

    Actions are the corners, and count only when all four are shown: 1 for the right one, 0 for another. The
    dark lasts for longer than a stack of four frames, and nothing else tells the corners apart.
    """

    meanings = ("top left", "top right", "bottom left", "bottom right")
    SQUARE, MARGIN = 24, 10
    SHOWN = 2
    """In how many frames the corner is lit."""
    DARK = (6, 10)
    """How many dark frames follow, at least and at most."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self._corner = self._time = self._asks_at = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Frame, Any]:
        super().reset(seed=seed)
        low, high = self.DARK
        drawn = self.np_random.integers((0, low), (len(self.meanings), high + 1))
        self._corner, self._asks_at = int(drawn[0]), self.SHOWN + int(drawn[1])
        self._time = 0
        return self._look(), {}

    def step(self, action: int) -> tuple[Frame, float, bool, bool, dict[str, Any]]:
        asked = self._time == self._asks_at
        right = asked and action == self._corner
        self._time += 1
        return self._look(), float(right), asked, False, {}

    def _look(self) -> Frame:
        frame = np.zeros((SIZE, SIZE, 1), np.uint8)
        if self._time < self.SHOWN:
            self._draw(frame, self._corner, BRIGHT)
        elif self._time == self._asks_at:
            for corner in range(len(self.meanings)):
                self._draw(frame, corner, DIM)
        return frame

    def _draw(self, frame: Frame, corner: int, shade: int) -> None:
        top, left = (SIZE - self.MARGIN - self.SQUARE if far else self.MARGIN for far in divmod(corner, 2))
        frame[top : top + self.SQUARE, left : left + self.SQUARE] = shade


for _task in (Catch, Recall):
    if f"mosaic/{_task.__name__}-v0" not in gymnasium.registry:
        gymnasium.register(f"mosaic/{_task.__name__}-v0", f"{__name__}:{_task.__name__}")
