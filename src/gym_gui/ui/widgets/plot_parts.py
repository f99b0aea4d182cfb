"""The parts of a plot: its colours, axes, lines, and what their signs mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from gym_gui.models.charting import Area, Drawing, Key, Line, Points
from gym_gui.models.series import Floats
from gym_gui.theme import LABEL, number_font, theme
from gym_gui.ui.widgets.basics import tip
from mosaic.analytics.scales import nice_ticks, value_text

_DARK = ("#5b9dff", "#f2a65a", "#4cc38a", "#e879b9", "#b18cff", "#e2d04a", "#57c7d4", "#ef6a6a", "#6b7484")
_LIGHT = ("#2463d6", "#c2610c", "#1d8a55", "#b8307f", "#7247c9", "#8f7a00", "#0e7f8c", "#c43333", "#a9b1bd")

COLOURS = len(_DARK)
OTHER = COLOURS - 1
"""The number of a line that stands back."""
Words = Callable[[Sequence[float], float], list[str]]
Ticks = Callable[[float, float, int], tuple[float, list[float]]]

_MOST_TICKS = 8
_BEYOND = 8
_MOST_INK = 60_000.0
"""So many pixels of lines are painted with smooth edges; more of them is noise, where nobody sees edges."""
RAW_ALPHA, BAND_ALPHA, EXTREMES_ALPHA = 0.3, 0.24, 0.1
_CROWDED_ALPHA = 0.14
"""Of bands that lie over each other."""
_WIDTH, _DOT = 1.75, 6
SIGN = 14.0
_GAP, _BETWEEN, _KEY_ROW = 6.0, 16.0, 18


def line_colour(index: int, alpha: float = 1.0) -> QColor:
    """The colour of the line with this number, in the theme that is on."""
    colours = _LIGHT if theme.name == "light" else _DARK
    colour = QColor(colours[index % len(colours)])
    colour.setAlphaF(alpha)
    return colour


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


Stroke = tuple[Points, QColor, float]
"""Points in one colour: a line of some width, or with 0 an outline that is filled."""


class PlotLines:
    """Keeps one item for all lines of a colour, so that a hundred lines are drawn as fast as nine."""

    def __init__(self, view: pg.ViewBox) -> None:
        self._view = view
        self.items: list[pg.PlotCurveItem] = []
        self.dots = pg.ScatterPlotItem(size=_DOT, pen=None)
        self.value = pg.TextItem(anchor=(0.5, 1.3))
        """What the only point of a line is worth."""
        for item in (self.dots, self.value):
            item.setZValue(1)
            view.addItem(item, ignoreBounds=True)
        self.value.setFont(number_font(LABEL))

    def show(self, lines: Sequence[Line], painted: Sequence[Drawing], pixels: float) -> None:
        """Paint these: extremes, bands and points, and the lines over them. `pixels` is the height of 1."""
        smooth = sum(_travel(drawing.main[1]) for drawing in painted) * pixels <= _MOST_INK
        strokes = list(_strokes(lines, painted, _WIDTH if smooth else 1.0))
        while len(self.items) < len(strokes):
            item = pg.PlotCurveItem()
            # A thick line as one path takes a hundred times as long as its pieces.
            item.setSegmentedLineMode("on")
            self._view.addItem(item, ignoreBounds=True)
            self.items.append(item)
        for item, (points, colour, width) in zip(self.items, strokes, strict=False):
            item.setData(
                *points,
                pen=_pen(colour, width) if width else pg.mkPen(None),
                brush=None if width else pg.mkBrush(colour),
                fillLevel=None if width else "enclosed",
                connect="finite" if width else "all",
                antialias=smooth,
                skipFiniteCheck=True,
            )
        for item in self.items[len(strokes) :]:
            item.clear()
        self._show_dots(lines, painted)

    def _show_dots(self, lines: Sequence[Line], painted: Sequence[Drawing]) -> None:
        found = [(line, *drawing.dots) for line, drawing in zip(lines, painted, strict=True) if drawing.dots]
        if found:
            brushes = [pg.mkBrush(line_colour(line.colour)) for line, x, _ in found for _ in x]
            xs, ys = (np.concatenate([one[place] for one in found]) for place in (1, 2))
            self.dots.setData(xs, ys, brush=brushes)
        else:
            self.dots.clear()
        alone = len(lines) == 1 and len(lines[0].x) == 1 and bool(found) and len(found[0][1]) == 1
        self.value.setVisible(alone)
        if alone:
            self.value.setText(value_text(float(lines[0].values[0])), theme.palette.colour("text"))
            self.value.setPos(float(found[0][1][0]), float(found[0][2][0]))

    def clear(self) -> None:
        """Paint nothing."""
        for item in self.items:
            item.clear()
        self.dots.clear()
        self.value.hide()


def _pen(colour: QColor, width: float) -> QPen:
    pen = QPen(colour, width)
    pen.setCosmetic(True)
    # Pieces that overlap at their ends would show as beads on a string.
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    return pen


def _travel(values: Floats) -> float:
    """How far a line goes up and down."""
    return float(np.abs(values[1:] - values[:-1]).sum())


def _strokes(lines: Sequence[Line], painted: Sequence[Drawing], width: float) -> Iterator[Stroke]:
    alpha = BAND_ALPHA if len(lines) < 3 else _CROWDED_ALPHA
    raw: dict[int, list[Points]] = {}
    main: dict[int, list[Points]] = {}
    for line, drawing in zip(lines, painted, strict=True):
        if drawing.extremes is not None:
            yield _outline(drawing.extremes), line_colour(line.colour, EXTREMES_ALPHA), 0.0
        if drawing.band is not None:
            yield _outline(drawing.band), line_colour(line.colour, alpha), 0.0
        if drawing.raw is not None:
            raw.setdefault(line.colour % COLOURS, []).append(drawing.raw)
        main.setdefault(line.colour % COLOURS, []).append(drawing.main)
    for colour, points in raw.items():
        yield _joined(points), line_colour(colour, RAW_ALPHA), 1.0
    for colour, points in main.items():
        yield _joined(points), line_colour(colour), width


def _outline(area: Area) -> Points:
    x, low, high = area
    return np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]])


def _joined(parts: Sequence[Points]) -> Points:
    """Several lines as one with gaps."""
    if len(parts) == 1:
        return parts[0]
    gap = np.array([np.nan])
    xs = [piece for x, _ in parts for piece in (x, gap)]
    ys = [piece for _, y in parts for piece in (y, gap)]
    return np.concatenate(xs), np.concatenate(ys)


class Legend(QWidget):
    """Keys beside each other, in as many rows as they need, at most `most_rows`."""

    def __init__(self, most_rows: int, cuts: bool) -> None:
        """Where there is no room for all, it `cuts` some short, or says nothing."""
        super().__init__()
        self._cuts = cuts
        self._most_rows = most_rows
        self.keys: list[Key] = []
        self._more = 0
        self.setFixedHeight(0)

    def show_keys(self, keys: Sequence[Key]) -> None:
        """Explain these."""
        if list(keys) != self.keys:
            self.keys = list(keys)
            self._arrange()
            self.update()

    def _rows(self) -> list[list[tuple[Key, float]]]:
        """The keys row by row, each with the room that it takes."""
        metrics = QFontMetricsF(number_font(LABEL))
        rows: list[list[tuple[Key, float]]] = [[]]
        left = float(self.width())
        for key in self.keys:
            wide = min(SIGN + _GAP + metrics.horizontalAdvance(key.text) + 1, float(self.width()))
            if rows[-1] and wide > left:
                rows.append([])
                left = float(self.width())
            rows[-1].append((key, wide))
            left -= wide + _BETWEEN
        return rows

    def _widest(self) -> float:
        metrics = QFontMetricsF(number_font(LABEL))
        return max(SIGN + _GAP + metrics.horizontalAdvance(key.text) for key in self.keys)

    def _arrange(self) -> None:
        rows = self._rows() if self.keys else []
        if rows and not self._cuts and (len(rows) > self._most_rows or self._widest() > self.width()):
            rows = []
        hidden = [key.text for row in rows[self._most_rows :] for key, _ in row]
        self._more = len(hidden)
        self.setToolTip(tip("\n".join(hidden)))
        self.setFixedHeight(_KEY_ROW * min(len(rows), self._most_rows))

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
            x, middle = 0.0, number * _KEY_ROW + _KEY_ROW / 2
            last = number + 1 == len(rows) and self._more
            for key, wide in row[: -1 if last and len(row) > 1 else None]:
                paint_key(painter, key, QPointF(x, middle))
                painter.setPen(theme.palette.colour("dim"))
                room = wide - SIGN - _GAP
                text = metrics.elidedText(key.text, Qt.TextElideMode.ElideRight, room + 1)
                place = QRectF(x + SIGN + _GAP, middle - _KEY_ROW / 2, room + 1, _KEY_ROW)
                painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, text)
                x += wide + _BETWEEN
            if last and len(row) > 1:
                painter.setPen(theme.palette.colour("faint"))
                place = QRectF(x, middle - _KEY_ROW / 2, self.width() - x, _KEY_ROW)
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
