"""Small tasks in vectors, each of which asks for one thing that a plain policy lacks.

`mosaic/Dial-v0` forbids most actions at each step, and only an action mask tells which; in
`mosaic/Corridor-v0` what decides is seen at the beginning and needed at the end. Importing this module
registers them; an id of theirs does so by itself. The mean return is the share of episodes that went well.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Vector = NDArray[np.float32]
Picture = NDArray[np.uint8]
_DRAWS = {"render_modes": ["rgb_array"], "render_fps": 5}
_PAPER, _LINE, _HERE, _GOAL = (246, 247, 249), (205, 210, 220), (36, 99, 214), (29, 138, 85)


def _paper(height: int, width: int) -> Picture:
    return np.full((height, width, 3), _PAPER, np.uint8)


def _put(picture: Picture, row: float, column: float, half: int, colour: tuple[int, int, int]) -> None:
    """A square of twice `half` around a place."""
    top, left = round(row) - half, round(column) - half
    picture[top : top + 2 * half, left : left + 2 * half] = colour


class Dial(gymnasium.Env[Vector, int]):
    """A dial is to be turned to 0 within ten turns, of which only three of eight are free at each step.

    Actions turn it by -4, -3, -2, -1, 1, 2, 3 or 4. Which are free is drawn anew at each step and stands in
    `info["action_mask"]`, nowhere else; any other breaks the dial. 1 when it comes to 0, 0 when it breaks or
    does not.
    """

    metadata = _DRAWS
    POSITIONS, TURNS, FREE, LIMIT = 32, (-4, -3, -2, -1, 1, 2, 3, 4), 3, 10
    observation_space = spaces.Box(0.0, 1.0, (POSITIONS + 1,), np.float32)
    action_space: Any = spaces.Discrete(len(TURNS))

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self._at = self._left = 0
        self._free: NDArray[np.int8] = np.ones(len(self.TURNS), np.int8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Vector, Any]:
        super().reset(seed=seed)
        quarter = self.POSITIONS // 4
        self._at, self._left = int(self.np_random.integers(quarter, 3 * quarter + 1)), self.LIMIT
        return self._look(), self._draw_free()

    def step(self, action: int) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        broken = not self._free[action]
        self._at = (self._at + self.TURNS[action]) % self.POSITIONS
        self._left -= 1
        opened = not broken and self._at == 0
        return self._look(), float(opened), broken or opened or not self._left, False, self._draw_free()

    def _draw_free(self) -> dict[str, Any]:
        self._free = np.zeros(len(self.TURNS), np.int8)
        self._free[self.np_random.permutation(len(self.TURNS))[: self.FREE]] = 1
        return {"action_mask": self._free}

    def _look(self) -> Vector:
        """Where the dial is, as one of its positions, and how much time is left."""
        seen = np.zeros(self.POSITIONS + 1, np.float32)
        seen[self._at], seen[-1] = 1.0, self._left / self.LIMIT
        return seen

    def render(self) -> Any:
        """The dial with its goal on top, and below it the time that is left; None without a render mode."""
        if self.render_mode is None:
            return None
        picture = _paper(180, 160)
        for position in range(self.POSITIONS):
            angle = 2.0 * math.pi * position / self.POSITIONS
            colour = _HERE if position == self._at else _GOAL if position == 0 else _LINE
            half = 7 if position in (0, self._at) else 3
            _put(picture, 80 - 60 * math.cos(angle), 80 + 60 * math.sin(angle), half, colour)
        picture[166:172, 20:140] = _LINE
        picture[166:172, 20 : 20 + 120 * self._left // self.LIMIT] = _HERE
        return picture


class Corridor(gymnasium.Env[Vector, int]):
    """A sign at the start of a corridor says where to turn at its end.

    Actions: 0 forward, 1 left, 2 right. The sign is seen in the first step only, the corridor looks the same
    everywhere and is 5 to 10 steps long, and a turn within it leads nowhere. 1 for the turn that the sign
    said, 0 for the other.
    """

    metadata = _DRAWS
    LENGTHS, LIMIT = (5, 10), 20
    observation_space = spaces.Box(0.0, 1.0, (4,), np.float32)
    """Sign left, sign right, corridor, end of the corridor."""
    action_space: Any = spaces.Discrete(3)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self._sign = self._ahead = self._length = self._time = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Vector, Any]:
        super().reset(seed=seed)
        low, high = self.LENGTHS
        drawn = self.np_random.integers((0, low), (2, high + 1))
        self._sign, self._ahead, self._time = int(drawn[0]), int(drawn[1]), 0
        self._length = self._ahead
        return self._look(), {}

    def step(self, action: int) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        turned = self._ahead == 0 and action != 0
        right = turned and action - 1 == self._sign
        if action == 0 and self._ahead:
            self._ahead -= 1
        self._time += 1
        return self._look(), float(right), turned or self._time == self.LIMIT, False, {}

    def _look(self) -> Vector:
        seen = np.zeros(4, np.float32)
        seen[self._sign if self._time == 0 else 2 if self._ahead else 3] = 1.0
        return seen

    def render(self) -> Any:
        """The corridor from above with the right turn at its end; None without a render mode."""
        if self.render_mode is None:
            return None
        picture = _paper(120, 240)
        left, step, middle = 20, 20, 60
        picture[middle - 9 : middle + 9, left - 9 : left + step * self._length + 9] = _LINE
        end = left + step * self._length
        picture[middle - 40 : middle + 40, end - 9 : end + 9] = _LINE
        _put(picture, middle + (-32, 32)[self._sign], end, 7, _GOAL)
        _put(picture, middle, end - step * self._ahead, 7, _HERE)
        return picture


for _task in (Dial, Corridor):
    if f"mosaic/{_task.__name__}-v0" not in gymnasium.registry:
        gymnasium.register(f"mosaic/{_task.__name__}-v0", f"{__name__}:{_task.__name__}")
