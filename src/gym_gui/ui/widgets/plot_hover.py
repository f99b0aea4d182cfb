"""What lies over a chart while the pointer is on it: the values there, and the piece that is being chosen."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from gym_gui.models.charting import Reading
from gym_gui.models.scales import value_text
from gym_gui.theme import LABEL, number_font, theme
from gym_gui.ui.widgets.line_colours import line_colour

MOST_READINGS = 12
_PADDING, _ROW, _DOT, _GAP = 8.0, 17.0, 7.0, 12.0


class PlotHover(QWidget):
    """A see-through sheet over a plot; the plot under it keeps the pointer."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._title = ""
        self._rows: list[tuple[Reading, str]] = []
        self._more = 0
        self._points: list[QPointF] = []
        self._area = QRectF()
        self._at = 0.0
        self._chosen: tuple[float, float] | None = None

    def show_readings(
        self, area: QRectF, at: float, title: str, readings: Sequence[Reading], points: Sequence[QPointF]
    ) -> None:
        """Values at the place `at` of the plot's `area`, with a dot on each line."""
        self._area, self._at, self._title = area, at, title
        self._rows = [(reading, _words(reading)) for reading in readings[:MOST_READINGS]]
        self._more = max(0, len(readings) - MOST_READINGS)
        self._points = list(points[:MOST_READINGS])
        self.update()

    def show_choice(self, area: QRectF, choice: tuple[float, float] | None) -> None:
        """The piece between two places that is being chosen."""
        self._area, self._chosen = area, choice
        self.update()

    def clear(self) -> None:
        """Nothing is pointed at."""
        if self._rows or self._chosen:
            self._rows, self._points, self._chosen = [], [], None
            self.update()

    @property
    def text(self) -> str:
        """What is shown, as text."""
        rows = [f"{reading.label} {words}".strip() for reading, words in self._rows]
        return "\n".join([self._title, *rows]) if rows else ""

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._rows and self._chosen is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._chosen is not None:
            left, right = sorted(self._chosen)
            band = QRectF(left, self._area.top(), right - left, self._area.height())
            painter.fillRect(band, theme.palette.colour("accent", 0.18))
        if self._rows:
            self._paint_marks(painter)
            self._paint_box(painter)
        painter.end()

    def _paint_marks(self, painter: QPainter) -> None:
        painter.setPen(QPen(theme.palette.colour("faint"), 1.0, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(self._at, self._area.top()), QPointF(self._at, self._area.bottom()))
        painter.setPen(QPen(theme.palette.colour("panel"), 1.5))
        for (reading, _), point in zip(self._rows, self._points, strict=False):
            if self._area.contains(point):
                painter.setBrush(line_colour(reading.colour))
                painter.drawEllipse(point, 4.0, 4.0)

    def _paint_box(self, painter: QPainter) -> None:
        plain, strong = number_font(LABEL), number_font(LABEL, QFont.Weight.DemiBold)
        metrics, bold = QFontMetricsF(plain), QFontMetricsF(strong)
        names = max((metrics.horizontalAdvance(row.label) for row, _ in self._rows), default=0.0)
        values = max(bold.horizontalAdvance(words) for _, words in self._rows)
        lead = _DOT + 6.0
        width = max(metrics.horizontalAdvance(self._title), lead + names + (_GAP if names else 0) + values)
        lines = len(self._rows) + 1 + (1 if self._more else 0)
        box = QRectF(0, 0, width + 2 * _PADDING, lines * _ROW + 2 * _PADDING - 4)
        box.moveTop(self._area.top() + 4)
        roomy = self._at + 12 + box.width() <= self.width()
        box.moveLeft(self._at + 12 if roomy else max(0.0, self._at - 12 - box.width()))
        painter.setPen(QPen(theme.palette.colour("line"), 1.0))
        painter.setBrush(theme.palette.colour("raised", 0.96))
        painter.drawRoundedRect(box, 6.0, 6.0)
        row = QRectF(box.left() + _PADDING, box.top() + _PADDING - 2, width, _ROW)
        side, middle = Qt.AlignmentFlag, Qt.AlignmentFlag.AlignVCenter
        painter.setFont(plain)
        painter.setPen(theme.palette.colour("dim"))
        painter.drawText(row, side.AlignLeft | middle, self._title)
        for reading, words in self._rows:
            row.translate(0, _ROW)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(line_colour(reading.colour))
            painter.drawEllipse(QPointF(row.left() + _DOT / 2, row.center().y()), _DOT / 2, _DOT / 2)
            painter.setPen(theme.palette.colour("text"))
            painter.setFont(plain)
            painter.drawText(row.adjusted(lead, 0, 0, 0), side.AlignLeft | middle, reading.label)
            painter.setFont(strong)
            painter.drawText(row, side.AlignRight | middle, words)
        if self._more:
            row.translate(0, _ROW)
            painter.setFont(plain)
            painter.setPen(theme.palette.colour("dim"))
            painter.drawText(row, side.AlignLeft | middle, f"and {self._more} more")


def _words(reading: Reading) -> str:
    if reading.spread is not None:
        return f"{value_text(reading.shown)} ± {value_text(reading.spread)}"
    if reading.shown != reading.value:
        return f"{value_text(reading.shown)}  (raw {value_text(reading.value)})"
    return value_text(reading.value)
