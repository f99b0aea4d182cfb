"""The lines of a plot as the few things that are painted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPen

from gym_gui.models.charting import Area, Drawing, Line, Points
from gym_gui.models.scales import value_text
from gym_gui.models.series import Floats
from gym_gui.theme import LABEL, number_font, theme
from gym_gui.ui.widgets.line_colours import COLOURS, line_colour

_MOST_INK = 60_000.0
"""So many pixels of lines are painted with smooth edges; more of them is noise, where nobody sees edges."""
RAW_ALPHA, BAND_ALPHA, EXTREMES_ALPHA = 0.3, 0.24, 0.1
_CROWDED_ALPHA = 0.14
"""Of bands that lie over each other."""
_WIDTH, _DOT = 1.75, 6


@dataclass(frozen=True)
class _Stroke:
    """Points in one colour: a line, or an outline that is filled."""

    points: Points
    colour: QColor
    width: float = 1.0
    filled: bool = False


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
        for item, stroke in zip(self.items, strokes, strict=False):
            item.setData(
                *stroke.points,
                pen=pg.mkPen(None) if stroke.filled else _pen(stroke),
                brush=pg.mkBrush(stroke.colour) if stroke.filled else None,
                fillLevel="enclosed" if stroke.filled else None,
                connect="all" if stroke.filled else "finite",
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


def _pen(stroke: _Stroke) -> QPen:
    pen = QPen(stroke.colour, stroke.width)
    pen.setCosmetic(True)
    # Pieces that overlap at their ends would show as beads on a string.
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    return pen


def _travel(values: Floats) -> float:
    """How far a line goes up and down."""
    return float(np.abs(values[1:] - values[:-1]).sum())


def _strokes(lines: Sequence[Line], painted: Sequence[Drawing], width: float) -> Iterator[_Stroke]:
    alpha = BAND_ALPHA if len(lines) < 3 else _CROWDED_ALPHA
    raw: dict[int, list[Points]] = {}
    main: dict[int, list[Points]] = {}
    for line, drawing in zip(lines, painted, strict=True):
        if drawing.extremes is not None:
            yield _Stroke(_outline(drawing.extremes), line_colour(line.colour, EXTREMES_ALPHA), filled=True)
        if drawing.band is not None:
            yield _Stroke(_outline(drawing.band), line_colour(line.colour, alpha), filled=True)
        if drawing.raw is not None:
            raw.setdefault(line.colour % COLOURS, []).append(drawing.raw)
        main.setdefault(line.colour % COLOURS, []).append(drawing.main)
    for colour, points in raw.items():
        yield _Stroke(_joined(points), line_colour(colour, RAW_ALPHA))
    for colour, points in main.items():
        yield _Stroke(_joined(points), line_colour(colour), width)


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
