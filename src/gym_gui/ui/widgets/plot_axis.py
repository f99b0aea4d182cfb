"""The axes of a chart: few round numbers, no line, and a grid of one pixel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyqtgraph as pg
from PySide6.QtCore import QRectF

from gym_gui.models.scales import nice_ticks
from gym_gui.theme import LABEL, number_font, theme

Words = Callable[[Sequence[float], float], list[str]]
Ticks = Callable[[float, float, int], tuple[float, list[float]]]

_MOST_TICKS = 8
_BEYOND = 8


class PlotAxis(pg.AxisItem):  # type: ignore[misc]
    """An axis with numbers of our own; `pixels` is the room that one of them needs."""

    def __init__(self, orientation: str, words: Words, pixels: int) -> None:
        super().__init__(orientation)
        self._words = words
        self._ticks: Ticks = nice_ticks
        self._pixels = pixels
        self.setStyle(
            tickLength=0,
            tickTextOffset=7 if orientation == "left" else 3,
            tickAlpha=255,
            tickFont=number_font(LABEL - 1),
            hideOverlappingLabels=False,
        )
        self.setGrid(255 if orientation == "left" else False)
        self.recolour()

    def boundingRect(self) -> QRectF:
        # A number at the very end of the axis reaches beyond it, and would be left out.
        rect = QRectF(super().boundingRect())
        return rect.adjusted(0, -_BEYOND, 0, _BEYOND) if self.orientation == "left" else rect

    def set_words(self, words: Words, ticks: Ticks = nice_ticks) -> None:
        """Say the numbers otherwise from now on, and choose them otherwise."""
        if (words, ticks) == (self._words, self._ticks):
            return
        self._words, self._ticks = words, ticks
        self.picture = None
        self.update()

    def recolour(self) -> None:
        """Take the colours of the theme that is on."""
        self.setPen(pg.mkPen(None))
        self.setTickPen(pg.mkPen(theme.palette.colour("line")))
        self.setTextPen(pg.mkPen(theme.palette.colour("faint")))

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        return [self._ticks(minVal, maxVal, min(_MOST_TICKS, max(3, int(size / self._pixels))))]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        return self._words(values, spacing)
