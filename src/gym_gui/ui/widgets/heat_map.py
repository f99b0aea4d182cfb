"""Histograms over the steps of a run, as a map and as bars."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFont, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from gym_gui.theme import LABEL, SPACE, number_font, theme
from mosaic.analytics.scales import value_text


@dataclass(frozen=True, eq=False)
class Heat:
    """The histograms of a track beside each other: a row for each, from the first step to the last."""

    steps: list[int]
    edges: NDArray[np.float64]
    counts: NDArray[np.float64]


class HeatMap(QWidget):
    """Histograms over the steps, dark where many values lie, and beside them the one that is chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.heat: Heat | None = None
        self.step = 0
        self._image = QImage()
        self.setMinimumSize(240, 160)
        self.setAccessibleName("Histograms over the steps")
        theme.changed.connect(self._recolour)

    def sizeHint(self) -> QSize:
        return QSize(640, 400)

    def show_heat(self, heat: Heat | None) -> None:
        self.heat = heat
        self._recolour()

    def show_step(self, step: int) -> None:
        """Mark a step."""
        self.step = step
        self.update()

    @property
    def chosen(self) -> int:
        """The histogram that stands nearest to the step."""
        assert self.heat is not None
        return int(np.argmin(np.abs(np.array(self.heat.steps) - self.step)))

    def _recolour(self) -> None:
        if self.heat is None or not self.heat.counts.size:
            self._image = QImage()
        else:
            most = self.heat.counts.max(axis=1, keepdims=True)
            # The root shows the thin ends of a distribution, too.
            share = np.sqrt(self.heat.counts / np.where(most > 0, most, 1.0)).T[::-1]
            empty, full = map(_rgb, ("panel", "accent"))
            pixels = np.ascontiguousarray(empty + (full - empty) * share[..., None], np.uint8)
            height, width, _ = pixels.shape
            self._image = QImage(pixels.data, width, height, 3 * width, QImage.Format.Format_RGB888).copy()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        heat = self.heat
        if heat is None or self._image.isNull():
            return
        painter = QPainter(self)
        painter.setFont(number_font(LABEL, QFont.Weight.Normal))
        ends = [value_text(float(edge)) for edge in heat.edges[[0, -1]]]
        metrics = painter.fontMetrics()
        left = max(map(metrics.horizontalAdvance, ends)) + SPACE[2]
        below = metrics.height() + SPACE[1]
        aside = min(160.0, self.width() / 4)
        map_ = QRectF(left, 1, self.width() - left - aside - SPACE[3], self.height() - below - 2)
        painter.drawImage(map_, self._image)
        painter.setPen(theme.palette.colour("line"))
        painter.drawRect(map_)
        painter.setPen(theme.palette.colour("dim"))
        right = Qt.AlignmentFlag.AlignRight
        room = left - SPACE[1]
        painter.drawText(QRectF(0, map_.top(), room, below), right | Qt.AlignmentFlag.AlignTop, ends[1])
        painter.drawText(
            QRectF(0, map_.bottom() - below, room, below), right | Qt.AlignmentFlag.AlignBottom, ends[0]
        )
        foot = QRectF(map_.left(), map_.bottom() + SPACE[0], map_.width(), below)
        painter.drawText(foot, Qt.AlignmentFlag.AlignLeft, f"{heat.steps[0]:,}")
        painter.drawText(foot, right, f"{heat.steps[-1]:,}")
        self._paint_chosen(painter, map_, aside)
        painter.end()

    def _paint_chosen(self, painter: QPainter, map_: QRectF, aside: float) -> None:
        """A line where the chosen one stands, and its bars beside the map, on the same axis."""
        assert self.heat is not None
        place, counts = self.chosen, self.heat.counts[self.chosen]
        width = map_.width() / len(self.heat.steps)
        painter.setPen(theme.palette.colour("warn"))
        painter.drawRect(QRectF(map_.left() + place * width, map_.top(), max(1.0, width), map_.height()))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.palette.colour("accent"))
        high, most = map_.height() / len(counts), max(1e-300, float(counts.max()))
        for at, count in enumerate(counts):
            long = aside * float(count) / most
            painter.drawRect(QRectF(map_.right() + SPACE[3], map_.bottom() - (at + 1) * high, long, high))


def _rgb(role: str) -> NDArray[np.int64]:
    colour = theme.palette.colour(role)
    return np.array([colour.red(), colour.green(), colour.blue()])
