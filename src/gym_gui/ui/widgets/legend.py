"""What the signs of a chart mean, in a row under it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from gym_gui.models.charting import Key
from gym_gui.theme import LABEL, number_font, theme
from gym_gui.ui.widgets.basics import tip
from gym_gui.ui.widgets.line_colours import line_colour
from gym_gui.ui.widgets.plot_lines import BAND_ALPHA, EXTREMES_ALPHA

SIGN = 14.0
_GAP, _BETWEEN, _ROW = 6.0, 16.0, 18


class Legend(QWidget):
    """Keys beside each other, in as many rows as they need, at most `most_rows`."""

    def __init__(self, most_rows: int, cuts: bool) -> None:
        """Where there is no room for all, it `cuts` some short, or says nothing."""
        super().__init__()
        self._cuts = cuts
        self._most_rows = most_rows
        self._keys: list[Key] = []
        self._more = 0
        self.setFixedHeight(0)

    def show_keys(self, keys: Sequence[Key]) -> None:
        """Explain these."""
        if list(keys) != self._keys:
            self._keys = list(keys)
            self._arrange()
            self.update()

    @property
    def texts(self) -> list[str]:
        """What it says."""
        return [key.text for key in self._keys]

    def _rows(self) -> list[list[tuple[Key, float]]]:
        """The keys row by row, each with the room that it takes."""
        metrics = QFontMetricsF(number_font(LABEL))
        rows: list[list[tuple[Key, float]]] = [[]]
        left = float(self.width())
        for key in self._keys:
            wide = min(SIGN + _GAP + metrics.horizontalAdvance(key.text) + 1, float(self.width()))
            if rows[-1] and wide > left:
                rows.append([])
                left = float(self.width())
            rows[-1].append((key, wide))
            left -= wide + _BETWEEN
        return rows

    def _widest(self) -> float:
        metrics = QFontMetricsF(number_font(LABEL))
        return max(SIGN + _GAP + metrics.horizontalAdvance(key.text) for key in self._keys)

    def _arrange(self) -> None:
        rows = self._rows() if self._keys else []
        if rows and not self._cuts and (len(rows) > self._most_rows or self._widest() > self.width()):
            rows = []
        hidden = [key.text for row in rows[self._most_rows :] for key, _ in row]
        self._more = len(hidden)
        self.setToolTip(tip("\n".join(hidden)))
        self.setFixedHeight(_ROW * min(len(rows), self._most_rows))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(number_font(LABEL))
        metrics = QFontMetricsF(painter.font())
        rows = self._rows()[: self._most_rows]
        for number, row in enumerate(rows):
            x, middle = 0.0, number * _ROW + _ROW / 2
            last = number + 1 == len(rows) and self._more
            for key, wide in row[: -1 if last and len(row) > 1 else None]:
                paint_key(painter, key, QPointF(x, middle))
                painter.setPen(theme.palette.colour("dim"))
                room = wide - SIGN - _GAP
                text = metrics.elidedText(key.text, Qt.TextElideMode.ElideRight, room + 1)
                place = QRectF(x + SIGN + _GAP, middle - _ROW / 2, room + 1, _ROW)
                painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, text)
                x += wide + _BETWEEN
            if last and len(row) > 1:
                painter.setPen(theme.palette.colour("faint"))
                place = QRectF(x, middle - _ROW / 2, self.width() - x, _ROW)
                painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, f"and {self._more + 1} more")
        painter.end()


def paint_key(painter: QPainter, key: Key, at: QPointF) -> None:
    """The sign of a key, its left end at a place: a stroke, or the shade of a band."""
    if key.kind == "line":
        painter.fillRect(QRectF(at.x(), at.y() - 1, SIGN, 2.0), line_colour(key.colour))
        return
    alpha = BAND_ALPHA if key.kind == "band" else EXTREMES_ALPHA
    shade = QRectF(at.x(), at.y() - 5, SIGN, 10)
    painter.fillRect(shade, line_colour(key.colour, alpha + 0.06))
