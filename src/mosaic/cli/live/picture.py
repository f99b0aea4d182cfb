"""A picture in a terminal: each character cell shows two pixels, one above the other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.segment import Segment
from rich.style import Style

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

UPPER_HALF = "▀"


class Picture:
    """Pixels as a renderable that keeps their shape and fits the width, and `most_rows` of the terminal."""

    def __init__(self, pixels: Any, most_rows: int) -> None:
        self._pixels = pixels
        self._most_rows = most_rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        small = shrink(self._pixels, options.max_width, 2 * self._most_rows)
        for upper, lower in zip(small[::2].tolist(), small[1::2].tolist(), strict=True):
            for above, below in zip(upper, lower, strict=True):
                yield Segment(UPPER_HALF, _style(*above, *below))
            yield Segment.line()


@lru_cache(maxsize=4096)
def _style(red: int, green: int, blue: int, red2: int, green2: int, blue2: int) -> Style:
    return Style.parse(f"rgb({red},{green},{blue}) on rgb({red2},{green2},{blue2})")


def shrink(pixels: Any, width: int, height: int) -> Any:
    """The picture within so many pixels, an even number of rows; each new pixel is a mean of old ones."""
    rows, columns = pixels.shape[:2]
    scale = min(width / columns, height / rows)
    new_columns = max(1, int(columns * scale))
    new_rows = max(2, int(rows * scale) // 2 * 2)
    sums = pixels.astype(np.float32)
    for axis, (old, new) in enumerate(((rows, new_rows), (columns, new_columns))):
        starts = np.arange(new) * old // new
        counts = np.maximum(1, np.diff(np.append(starts, old)))
        sums = np.add.reduceat(sums, starts, axis=axis) / counts.reshape(
            (-1, 1, 1) if axis == 0 else (1, -1, 1)
        )
    # Fewer shades look the same here and are cheaper to draw.
    return sums.astype(np.uint8) & 0xF8
