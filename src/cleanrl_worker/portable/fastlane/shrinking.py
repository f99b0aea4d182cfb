"""Smaller pictures, cheaper than picking pixels one by one."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np


class _Scratch(threading.local):
    """Memory for pictures on their way, for each thread its own: getting it anew costs more than the work."""

    def __init__(self) -> None:
        self._bytes = np.empty((3, 0), np.uint8)

    def of(self, height: int, width: int) -> Any:
        """Three tables of this size, with anything in them."""
        if self._bytes.shape[1] < height * width:
            self._bytes = np.empty((3, height * width), np.uint8)
        return self._bytes[:, : height * width].reshape(3, height, width)


_scratch = _Scratch()


def shrink(pixels: Any, step: int) -> Any:
    """Every `step`-th pixel of bytes, each mixed with its neighbours: thin lines would often be lost."""
    height, width = (side - side % step for side in pixels.shape[:2])
    if not (height and width):
        return pixels[::step, ::step]
    rows = pixels[:height, :width].reshape(height, -1)
    depth = rows.shape[1] // width
    mixed, across, spare = _scratch.of(height // step, rows.shape[1])
    _mean(rows[::step], rows[1::step], mixed, spare)
    # Each pixel with the next one. The last of a row has none; it is not taken below.
    across, spare = across[:, :-depth], spare[:, :-depth]
    _mean(mixed[:, :-depth], mixed[:, depth:], across, spare)
    small = np.empty((height // step, width // step, depth), np.uint8)
    for channel in range(depth):
        # By channels the loops are long; by pixels of three bytes it takes seven times as long.
        small[:, :, channel] = across[:, channel :: step * depth]
    return small if pixels.ndim == 3 else small[:, :, 0]


def _mean(one: Any, other: Any, out: Any, spare: Any) -> None:
    """The mean of bytes, without leaving them for a wider type."""
    np.bitwise_xor(one, other, out=out)
    np.right_shift(out, 1, out=out)
    np.bitwise_and(one, other, out=spare)
    np.add(out, spare, out=out)
