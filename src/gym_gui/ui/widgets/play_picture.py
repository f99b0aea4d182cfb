"""What the environment looks like, with a ribbon over it when an episode is over."""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent

from gym_gui.theme import SPACE, theme
from gym_gui.ui.widgets.frame_view import FrameView

_CORNER = 6
_RIBBON = 44


class PlayPicture(FrameView):
    """One picture at any size; words where there is none."""

    def __init__(self) -> None:
        super().__init__()
        self._pixels: Any = None
        self._number = 0
        self._words = ""
        self._ribbon = ""
        self.setMinimumSize(240, 180)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(600, 420)

    def show_picture(self, pixels: Any, words: str, ribbon: str) -> None:
        """Pixels (height, width, 3) or None, the words in place of them, and the ribbon's words."""
        if pixels is None:
            self.clear()
        elif pixels is not self._pixels:
            self._number += 1
            self.show_pictures([((0, self._number), np.ascontiguousarray(pixels))])
        self._pixels = pixels
        if (words, ribbon) != (self._words, self._ribbon):
            self._words, self._ribbon = words, ribbon
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect())
        if self.count:
            (place,) = self.places()
            area = QRectF(place.left, place.top, place.width, place.height)
        else:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.palette.colour("raised"))
            painter.drawRoundedRect(area, _CORNER, _CORNER)
            painter.setPen(theme.palette.colour("dim"))
            inner = area.adjusted(SPACE[4], SPACE[4], -SPACE[4], -SPACE[4])
            painter.drawText(inner, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self._words)
        if self._ribbon:
            self._paint_ribbon(painter, area)
        painter.end()

    def _paint_ribbon(self, painter: QPainter, area: QRectF) -> None:
        strip = QRectF(area.left(), area.bottom() - _RIBBON, area.width(), _RIBBON)
        painter.fillRect(strip, theme.palette.colour("panel", 0.94))
        painter.fillRect(QRectF(strip.left(), strip.top(), strip.width(), 2), theme.palette.colour("good"))
        painter.setPen(theme.palette.colour("text"))
        inner = strip.adjusted(SPACE[2], 0, -SPACE[2], 0)
        words = painter.fontMetrics().elidedText(
            self._ribbon, Qt.TextElideMode.ElideRight, int(inner.width())
        )
        painter.drawText(inner, Qt.AlignmentFlag.AlignCenter, words)
