"""What lies over a chart while the pointer is on it: the values there, and the piece that is being chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QHideEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from gym_gui.models.charting import Reading
from gym_gui.theme import LABEL, number_font, theme
from gym_gui.ui.widgets.plot_parts import line_colour
from mosaic.analytics.scales import value_text

MOST_READINGS = 12
_PADDING, _ROW, _DOT, _GAP = 8.0, 17.0, 7.0, 12.0
_AWAY = 12
"""Pixels between the place that is read and the values."""


class PlotHover(QWidget):
    """A see-through sheet over a plot; the plot under it keeps the pointer."""

    def __init__(self, parent: QWidget, crosses: Callable[[QRectF], bool]) -> None:
        """`crosses` says whether a line goes through a place of the plot."""
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._crosses = crosses
        self._readings: list[Reading] = []
        self._points: list[QPointF] = []
        self._area = QRectF()
        self._at = 0.0
        self._chosen: tuple[float, float] | None = None
        self.box: HoverBox | None = None

    def show_readings(
        self, area: QRectF, at: float, title: str, readings: Sequence[Reading], points: Sequence[QPointF]
    ) -> None:
        """Values at the place `at` of the plot's `area`, with a dot on each line."""
        self._area, self._at = area, at
        self._readings, self._points = list(readings[:MOST_READINGS]), list(points[:MOST_READINGS])
        if self.box is None:
            # Not inside the chart: it may have to stand beside it.
            self.box = HoverBox(self.window())
            self.destroyed.connect(self.box.deleteLater)
        self.box.show_readings(title, self._readings, max(0, len(readings) - MOST_READINGS))
        self.box.move(self._place(self.box.rect()))
        self.box.raise_()
        self.box.show()
        self.update()

    def _place(self, box: QRect) -> QPoint:
        """Where the values hide no line: beside the pointer, else beside the chart."""
        right, left = round(self._at) + _AWAY, round(self._at) - _AWAY - box.width()
        top, bottom = round(self._area.top()) + 2, round(self._area.bottom()) - box.height() - 2
        inside = QRectF(self.rect())
        for x, y in ((right, top), (left, top), (right, bottom), (left, bottom)):
            found = QRectF(x, y, box.width(), box.height())
            if inside.contains(found) and not self._crosses(found):
                return self.mapTo(self.window(), QPoint(x, y))
        card = QRect(self.mapTo(self.window(), QPoint(0, 0)), self.size())
        room = self.window().rect()
        for x in (card.right() + _AWAY, card.left() - _AWAY - box.width()):
            if room.left() <= x and x + box.width() <= room.right():
                return QPoint(x, min(card.top() + top, room.bottom() - box.height()))
        near = right if right + box.width() <= self.width() else max(0, left)
        return self.mapTo(self.window(), QPoint(near, top))

    def show_choice(self, area: QRectF, choice: tuple[float, float] | None) -> None:
        """The piece between two places that is being chosen."""
        self._area, self._chosen = area, choice
        self.update()

    def clear(self) -> None:
        """Nothing is pointed at."""
        if self.box is not None:
            self.box.hide()
        if self._readings or self._chosen:
            self._readings, self._points, self._chosen = [], [], None
            self.update()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.clear()

    @property
    def text(self) -> str:
        """What is shown, as text."""
        return self.box.text if self.box is not None and self._readings else ""

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._readings and self._chosen is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._chosen is not None:
            left, right = sorted(self._chosen)
            band = QRectF(left, self._area.top(), right - left, self._area.height())
            painter.fillRect(band, theme.palette.colour("accent", 0.18))
        if self._readings:
            painter.setPen(QPen(theme.palette.colour("faint"), 1.0, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(self._at, self._area.top()), QPointF(self._at, self._area.bottom()))
            painter.setPen(QPen(theme.palette.colour("panel"), 1.5))
            for reading, point in zip(self._readings, self._points, strict=False):
                if self._area.contains(point):
                    painter.setBrush(line_colour(reading.colour))
                    painter.drawEllipse(point, 4.0, 4.0)
        painter.end()


class HoverBox(QWidget):
    """Values with the names and colours of their lines, as large as they need."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()
        self._title = ""
        self._rows: list[tuple[Reading, str]] = []
        self._more = 0

    def show_readings(self, title: str, readings: Sequence[Reading], more: int) -> None:
        """Have these values, and say how many more there are."""
        self._title, self._more = title, more
        self._rows = [(reading, _words(reading)) for reading in readings]
        metrics, bold = QFontMetricsF(number_font(LABEL)), QFontMetricsF(self._strong())
        names = max((metrics.horizontalAdvance(row.label) for row, _ in self._rows), default=0.0)
        values = max((bold.horizontalAdvance(text) for _, text in self._rows), default=0.0)
        width = max(metrics.horizontalAdvance(title), _DOT + 6 + names + (_GAP if names else 0) + values)
        lines = len(self._rows) + 1 + bool(more)
        self.resize(int(width + 2 * _PADDING) + 2, int(lines * _ROW + 2 * _PADDING - 4))
        self.update()

    @property
    def text(self) -> str:
        """What is shown, as text."""
        return "\n".join([self._title, *(f"{reading.label} {text}".strip() for reading, text in self._rows)])

    def _strong(self) -> QFont:
        return number_font(LABEL, QFont.Weight.DemiBold)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        plain = number_font(LABEL)
        painter.setPen(QPen(theme.palette.colour("line"), 1.0))
        painter.setBrush(theme.palette.colour("raised", 0.96))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6.0, 6.0)
        row = QRectF(_PADDING, _PADDING - 2, self.width() - 2 * _PADDING, _ROW)
        side, middle = Qt.AlignmentFlag, Qt.AlignmentFlag.AlignVCenter
        painter.setFont(plain)
        painter.setPen(theme.palette.colour("dim"))
        painter.drawText(row, side.AlignLeft | middle, self._title)
        for reading, text in self._rows:
            row.translate(0, _ROW)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(line_colour(reading.colour))
            painter.drawEllipse(QPointF(row.left() + _DOT / 2, row.center().y()), _DOT / 2, _DOT / 2)
            painter.setPen(theme.palette.colour("text"))
            painter.setFont(plain)
            painter.drawText(row.adjusted(_DOT + 6, 0, 0, 0), side.AlignLeft | middle, reading.label)
            painter.setFont(self._strong())
            painter.drawText(row, side.AlignRight | middle, text)
        if self._more:
            row.translate(0, _ROW)
            painter.setFont(plain)
            painter.setPen(theme.palette.colour("dim"))
            painter.drawText(row, side.AlignLeft | middle, f"and {self._more} more")
        painter.end()


def _words(reading: Reading) -> str:
    if reading.spread is not None:
        return f"{value_text(reading.value)} ± {value_text(reading.spread)}"
    return value_text(reading.value)
