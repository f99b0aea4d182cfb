"""The charts of a sweep: dots that can be pointed at and clicked, parallel axes, and bars of importance.

Each is painted into a picture once, and only what is pointed at or marked over it again: a thousand trials
cost nothing while the pointer moves.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QHideEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from gym_gui.models.series import Floats
from gym_gui.models.sweep import Dots, Figure, Parallel, Scale
from gym_gui.theme import LABEL, SPACE, number_font, theme
from gym_gui.ui.widgets.basics import tip
from gym_gui.ui.widgets.plot_area import draw_queue
from gym_gui.ui.widgets.plot_parts import line_colour

_NEAR = 14.0
_DOT, _BEST = 3.2, 4.6
_SMOOTH = 4000
"""So many pieces of lines are painted with smooth edges."""
_CLASSES = 12
"""Lines of parallel axes are painted in so many shades."""
_AXIS_WIDTH = 78
_MOST_NAMES = 8
BEST_COLOUR = 1
"""The number of the colour of what is best, everywhere in the tab."""
_NONE = np.empty(0, np.int64)


def colour_of(role: str, alpha: float = 1.0) -> QColor:
    """The colour of a role; `best` is one that no state has."""
    return line_colour(BEST_COLOUR, alpha) if role == "best" else theme.palette.colour(role, alpha)


class TrialChart(QWidget):
    """What all charts of trials do: they are painted once, pointed at, clicked and marked."""

    chosen = Signal(int)
    """The number of a trial that was clicked."""
    opened = Signal(int)
    """The number of one that was double-clicked."""

    def __init__(self, name: str, height: int) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setMinimumSize(160, height)
        self.setMouseTracking(True)
        self.about: Callable[[int], str] = str
        """What the pointer is told of a trial."""
        self._layer, self._stale = QPixmap(), True
        self._marked: int | None = None
        self._pointed: int | None = None
        theme.changed.connect(self.repaint_all)

    def mark(self, number: int | None) -> None:
        """Let one trial stand out."""
        if number != self._marked:
            self._marked = number
            self.update()

    def repaint_all(self) -> None:
        """What is painted holds no longer: it stands there until this chart's turn has come."""
        self._stale = True
        self.update()

    @property
    def drawn(self) -> bool:
        """Whether what is shown is what is meant."""
        return not self._stale

    def draw(self) -> None:
        """Paint all that does not change with the pointer."""
        ratio = self.devicePixelRatioF()
        self._stale = False
        self._layer = QPixmap(self.size() * ratio)
        self._layer.setDevicePixelRatio(ratio)
        self._layer.fill(Qt.GlobalColor.transparent)
        painter = QPainter(self._layer)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.empty_text:
            say(painter, QRectF(self.rect()), self.empty_text)
        else:
            self.paint(painter)
        painter.end()
        self.update()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        draw_queue.remove(self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.repaint_all()

    @abstractmethod
    def paint(self, painter: QPainter) -> None:
        """All that does not change with the pointer."""

    @abstractmethod
    def paint_trial(self, painter: QPainter, number: int, role: str) -> None:
        """One trial, over all others."""

    @abstractmethod
    def trial_at(self, place: QPointF) -> int | None:
        """The trial under the pointer."""

    @property
    @abstractmethod
    def empty_text(self) -> str:
        """What is said where there is nothing to paint."""

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._stale:
            draw_queue.add(self)
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._layer)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for number, role in ((self._marked, "text"), (self._pointed, "text")):
            if number is not None and not self.empty_text:
                self.paint_trial(painter, number, role)
        painter.end()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        found = None if self.empty_text else self.trial_at(event.position())
        if found != self._pointed:
            self._pointed = found
            self.update()
            self.setCursor(Qt.CursorShape.ArrowCursor if found is None else Qt.CursorShape.PointingHandCursor)
            place = self.mapToGlobal(event.position().toPoint() + QPoint(12, 8))
            if found is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(place, tip(self.about(found)), self)

    def leaveEvent(self, event: QEvent) -> None:
        self._pointed = None
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        found = None if self.empty_text else self.trial_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and found is not None:
            self.chosen.emit(found)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        found = None if self.empty_text else self.trial_at(event.position())
        if found is not None:
            self.opened.emit(found)


class FigurePlot(TrialChart):
    """A `Figure` with its axes."""

    def __init__(self, name: str, height: int = 190) -> None:
        super().__init__(name, height)
        self.figure = Figure(name, Scale(""), Scale(""), empty="Reading…")
        self._numbers, self._xs, self._ys = _NONE, np.empty(0), np.empty(0)
        self._area = QRectF()

    def sizeHint(self) -> QSize:
        return QSize(320, self.minimumHeight())

    def show_figure(self, figure: Figure) -> None:
        self.figure = figure
        dots = figure.dots
        self._numbers = np.concatenate([one.numbers for one in dots]) if dots else _NONE
        self._xs = np.concatenate([one.x for one in dots]) if dots else np.empty(0)
        self._ys = np.concatenate([one.y for one in dots]) if dots else np.empty(0)
        self._pointed = None
        self.repaint_all()

    @property
    def empty_text(self) -> str:
        return self.figure.empty

    def paint(self, painter: QPainter) -> None:
        self._area = self._paint_axes(painter)
        area = self._area
        painter.setClipRect(area.adjusted(-4, -4, 4, 4))
        for stroke in self.figure.strokes:
            self._draw_line(painter, stroke.x, stroke.y, colour_of(stroke.role, stroke.alpha), stroke.width)
        crowd = 0.85 if len(self._numbers) < 300 else 0.6
        for dots in self.figure.dots:
            self._paint_dots(painter, dots, crowd)

    def _paint_axes(self, painter: QPainter) -> QRectF:
        font = number_font(LABEL - 1)
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        below = metrics.height() * 2 + 4 if self.figure.x.title else metrics.height() + 4
        height = self.height() - below - 8
        rows = self.figure.y.ticks(max(3, int(height / 36)))
        left = max((metrics.horizontalAdvance(text) for _, text in rows), default=0.0) + 8
        area = QRectF(left, 6, self.width() - left - 10, height)
        for share, text in rows:
            y = area.bottom() - share * area.height()
            painter.setPen(QPen(theme.palette.colour("line"), 1))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(theme.palette.colour("faint"))
            place = QRectF(0, y - metrics.height() / 2, left - 6, metrics.height())
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
        columns = self.figure.x.ticks(max(2, int(area.width() / 64)))
        room = area.width() / max(1, len(columns)) - 4
        for share, text in columns:
            x = area.left() + share * area.width()
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(24.0, room))
            wide = metrics.horizontalAdvance(shown) + 2
            start = min(max(0.0, x - wide / 2), self.width() - wide)
            painter.setPen(theme.palette.colour("faint"))
            painter.drawText(QPointF(start, area.bottom() + metrics.ascent() + 4), shown)
        if self.figure.x.title:
            painter.setPen(theme.palette.colour("dim"))
            foot = QRectF(area.left(), self.height() - metrics.height() - 1, area.width(), metrics.height())
            painter.drawText(foot, Qt.AlignmentFlag.AlignRight, self.figure.x.title)
        return area

    def _draw_line(self, painter: QPainter, xs: Floats, ys: Floats, colour: QColor, width: float) -> None:
        area = self._area
        path = pg.arrayToQPath(area.left() + xs * area.width(), area.bottom() - ys * area.height(), "finite")
        _stroke(painter, path, colour, width, len(xs))

    def _paint_dots(self, painter: QPainter, dots: Dots, crowd: float) -> None:
        if dots.shape == "none":
            return
        area = self._area
        size = _BEST if dots.role == "best" else _DOT
        colour = colour_of(dots.role, 1.0 if dots.role == "best" else crowd)
        if dots.shape == "dot":
            painter.setPen(QPen(theme.palette.colour("panel"), 0.8))
            painter.setBrush(colour)
        else:
            painter.setPen(QPen(colour, 1.2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
        xs = (area.left() + dots.x * area.width()).tolist()
        ys = (area.bottom() - dots.y * area.height()).tolist()
        for x, y in zip(xs, ys, strict=True):
            if dots.shape == "cross":
                painter.drawLine(QPointF(x - 3, y - 3), QPointF(x + 3, y + 3))
                painter.drawLine(QPointF(x - 3, y + 3), QPointF(x + 3, y - 3))
            else:
                painter.drawEllipse(QPointF(x, y), size, size)

    def paint_trial(self, painter: QPainter, number: int, role: str) -> None:
        found = self._numbers == number
        if not found.any():
            return
        xs, ys = self._xs[found], self._ys[found]
        if self.figure.joined:
            self._draw_line(painter, xs, ys, colour_of(role), 2.0)
            return
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colour_of(role), 1.6))
        for x, y in zip(xs.tolist(), ys.tolist(), strict=True):
            painter.drawEllipse(self._pixel(x, y), 6.0, 6.0)

    def _pixel(self, x: float, y: float) -> QPointF:
        area = self._area
        return QPointF(area.left() + x * area.width(), area.bottom() - y * area.height())

    def trial_at(self, place: QPointF) -> int | None:
        area = self._area
        if not len(self._numbers) or not area.width():
            return None
        across = area.left() + self._xs * area.width() - place.x()
        down = area.bottom() - self._ys * area.height() - place.y()
        away = across**2 + down**2
        at = int(np.nanargmin(away))
        return int(self._numbers[at]) if away[at] <= _NEAR**2 else None


class ParallelPlot(TrialChart):
    """A line for each trial through an axis for each parameter, the better the brighter."""

    fitted = Signal(int)
    """How many parameters have no room."""

    def __init__(self) -> None:
        super().__init__("Parameters side by side", 250)
        self.parallel = Parallel((), _NONE, np.empty((0, 0)), np.empty(0), "Reading…")
        self._best: frozenset[int] = frozenset()
        self._columns: list[int] = []
        self._xs: Floats = np.empty(0)
        self._top = self._high = 0.0

    def show_parallel(self, parallel: Parallel, best: frozenset[int]) -> None:
        self.parallel, self._best = parallel, best
        self._pointed = None
        self.repaint_all()

    def _fitting(self) -> int:
        return max(2, int(self.width() / _AXIS_WIDTH))

    @property
    def empty_text(self) -> str:
        return self.parallel.empty

    def paint(self, painter: QPainter) -> None:
        axes = self.parallel.axes
        last = len(axes) - 1
        self._columns = [*range(min(last, self._fitting() - 1)), last]
        self.fitted.emit(len(axes) - len(self._columns))
        room = self.width() / len(self._columns)
        self._xs = np.arange(0.5, len(self._columns), dtype=np.float64) * room
        font = number_font(LABEL - 1)
        metrics = QFontMetricsF(font)
        self._top = metrics.height() + 12
        self._high = self.height() - self._top - 8
        self._paint_lines(painter)
        painter.setFont(font)
        for column, x in zip(self._columns, self._xs.tolist(), strict=True):
            self._paint_axis(painter, axes[column], x, room, metrics)

    def _paint_axis(
        self, painter: QPainter, axis: Scale, x: float, room: float, metrics: QFontMetricsF
    ) -> None:
        painter.setPen(QPen(theme.palette.colour("faint"), 1))
        painter.drawLine(QPointF(x, self._top), QPointF(x, self._top + self._high))
        painter.setPen(theme.palette.colour("text"))
        title = metrics.elidedText(axis.title, Qt.TextElideMode.ElideMiddle, room - 6)
        place = QRectF(x - room / 2, 2, room, metrics.height())
        painter.drawText(place, Qt.AlignmentFlag.AlignHCenter, title)
        for share, text in axis.ticks(_MOST_NAMES if axis.names else 4):
            y = self._top + self._high * (1 - share)
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room / 2 + 8)
            wide = metrics.horizontalAdvance(shown)
            ground = QRectF(x + 4, y - metrics.height() / 2, wide + 4, metrics.height())
            painter.fillRect(ground, theme.palette.colour("panel", 0.75))
            painter.setPen(QPen(theme.palette.colour("faint"), 1))
            painter.drawLine(QPointF(x - 3, y), QPointF(x + 3, y))
            painter.setPen(theme.palette.colour("dim"))
            painter.drawText(ground.adjusted(2, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, shown)

    def _paint_lines(self, painter: QPainter) -> None:
        """From the worst to the best, a shade at a time."""
        parallel = self.parallel
        shades = np.minimum(_CLASSES - 1, (parallel.merit * _CLASSES).astype(int))
        faint, accent = theme.palette.colour("faint"), theme.palette.colour("accent")
        # Of very many only the good ones are told from the rest.
        steep, least = (2.0, 0.18) if len(parallel.numbers) < 100 else (5.0, 0.05)
        for shade in range(_CLASSES):
            rows = parallel.places[shades == shade]
            if len(rows):
                share = shade / (_CLASSES - 1)
                colour = _between(faint, accent, share)
                colour.setAlphaF(least + 0.6 * share**steep)
                self._draw(painter, rows, colour, 1.0)
        best = parallel.places[np.isin(parallel.numbers, list(self._best))]
        if len(best):
            self._draw(painter, best, colour_of("best"), 2.0)

    def _draw(self, painter: QPainter, rows: Floats, colour: QColor, width: float) -> None:
        chosen = rows[:, self._columns]
        gap = np.full((len(chosen), 1), np.nan)
        ys = np.concatenate([self._top + self._high * (1 - chosen), gap], axis=1).ravel()
        xs = np.tile(np.append(self._xs, np.nan), len(chosen))
        _stroke(painter, pg.arrayToQPath(xs, ys, "finite"), colour, width, len(xs))

    def paint_trial(self, painter: QPainter, number: int, role: str) -> None:
        rows = self.parallel.places[self.parallel.numbers == number]
        if len(rows) and self._columns:
            self._draw(painter, rows, colour_of(role), 2.4)

    def trial_at(self, place: QPointF) -> int | None:
        parallel = self.parallel
        if not len(parallel.numbers) or not self._high:
            return None
        heights = self._top + self._high * (1 - parallel.places[:, self._columns])
        after = int(np.clip(np.searchsorted(self._xs, place.x()), 1, len(self._xs) - 1))
        left, right = self._xs[after - 1], self._xs[after]
        share = float(np.clip((place.x() - left) / (right - left), 0.0, 1.0))
        away = np.abs(heights[:, after - 1] * (1 - share) + heights[:, after] * share - place.y())
        if np.isnan(away).all():
            return None
        at = int(np.nanargmin(away))
        return int(parallel.numbers[at]) if away[at] <= _NEAR / 2 else None


class ImportanceBars(QWidget):
    """How much each parameter matters, as bars."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Importance of the parameters")
        self.setMinimumSize(160, 190)
        self.weights: Mapping[str, float] = {}
        self.empty_text = ""
        theme.changed.connect(self.update)

    def show_weights(self, weights: Mapping[str, float], empty: str) -> None:
        self.weights, self.empty_text = weights, "" if weights else empty
        told = ", ".join(f"{name} {share * 100:.0f} %" for name, share in weights.items())
        self.setAccessibleDescription(told or empty)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        font = number_font(LABEL)
        painter.setFont(font)
        metrics = QFontMetricsF(font)
        if self.empty_text:
            say(painter, QRectF(self.rect()), self.empty_text)
            painter.end()
            return
        fit = max(1, int(self.height() / 22))
        rows = list(self.weights.items())[:fit]
        step = min(26.0, self.height() / max(1, len(rows)))
        names = min(self.width() * 0.45, max(metrics.horizontalAdvance(name) for name, _ in rows) + SPACE[1])
        figures = metrics.horizontalAdvance("100 %") + SPACE[1]
        most = max(share for _, share in rows) or 1.0
        for at, (name, share) in enumerate(rows):
            top = at * step
            painter.setPen(theme.palette.colour("text"))
            shown = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, names - SPACE[0])
            painter.drawText(QRectF(0, top, names, step), Qt.AlignmentFlag.AlignVCenter, shown)
            painter.setPen(theme.palette.colour("dim"))
            end = QRectF(self.width() - figures, top, figures, step)
            painter.drawText(
                end, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, f"{share * 100:.0f} %"
            )
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.palette.colour("accent"))
            long = max(2.0, (self.width() - names - figures) * share / most)
            painter.drawRoundedRect(QRectF(names, top + step / 2 - 5, long, 10), 3, 3)
        painter.end()


def say(painter: QPainter, area: QRectF, text: str) -> None:
    """A sentence where there is nothing to draw."""
    painter.setFont(number_font(LABEL))
    painter.setPen(theme.palette.colour("dim"))
    painter.drawText(
        area.adjusted(8, 0, -8, 0), Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, text
    )


def _between(one: QColor, other: QColor, share: float) -> QColor:
    parts = [(c.red(), c.green(), c.blue()) for c in (one, other)]
    return QColor(*(round(a * (1 - share) + b * share) for a, b in zip(*parts, strict=True)))


def _stroke(painter: QPainter, path: QPainterPath, colour: QColor, width: float, pieces: int) -> None:
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, pieces <= _SMOOTH)
    pen = QPen(colour, width if pieces <= _SMOOTH else 1.0)
    pen.setCosmetic(True)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(path)
    painter.restore()
