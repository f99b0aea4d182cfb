"""Where each picture of a grid goes, so that all are as large as they can be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_WORTH = 0.75
EDGE = 1.0
"""Room for a line around each picture, also at the border."""
SMALL = 96
"""A picture with fewer pixels to a side is made of blocks that should stay sharp."""


@dataclass(frozen=True)
class Place:
    """A rectangle inside a widget, in its pixels."""

    left: float
    top: float
    width: float
    height: float


def arrange(sizes: Sequence[tuple[int, int]], width: float, height: float, gap: float = 6.0) -> list[Place]:
    """A place for each picture of (width, height): rows and columns that leave them the most room."""
    width, height = width - 2 * EDGE, height - 2 * EDGE
    if not sizes or width <= 0 or height <= 0:
        return []
    wide, high = max(size[0] for size in sizes), max(size[1] for size in sizes)
    scales = {
        count: _scale(len(sizes), count, wide, high, width, height, gap) for count in range(1, len(sizes) + 1)
    }
    # A grid without holes looks better, and is worth somewhat smaller pictures.
    large = [count for count, scale in scales.items() if scale >= max(scales.values()) * _WORTH]
    columns = min(large, key=lambda count: (-len(sizes) % count, -scales[count]))
    rows = math.ceil(len(sizes) / columns)
    scale = scales[columns]
    left = (width - columns * wide * scale - (columns - 1) * gap) / 2
    top = (height - rows * high * scale - (rows - 1) * gap) / 2
    places = []
    for index, (own_width, own_height) in enumerate(sizes):
        row, column = divmod(index, columns)
        fit = scale * min(wide / own_width, high / own_height)
        x = left + column * (wide * scale + gap) + (wide * scale - own_width * fit) / 2
        y = top + row * (high * scale + gap) + (high * scale - own_height * fit) / 2
        places.append(Place(EDGE + x, EDGE + y, own_width * fit, own_height * fit))
    return places


def _scale(count: int, columns: int, wide: int, high: int, width: float, height: float, gap: float) -> float:
    rows = math.ceil(count / columns)
    return max(
        1e-3,
        min((width - (columns - 1) * gap) / columns / wide, (height - (rows - 1) * gap) / rows / high),
    )


def crisp(scale: float, wide: int, high: int) -> bool:
    """Whether pixels are drawn as blocks: enlarged ones of a small picture, and any that keep their size."""
    return scale >= 2.0 or (scale >= 1.0 and max(wide, high) <= SMALL) or abs(scale - 1.0) < 1e-6
