"""Several pictures in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


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
