"""The plot of a chart: lines, axes, zoom and the values under the pointer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyqtgraph as pg
import shiboken6
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QHideEvent,
    QKeyEvent,
    QMouseEvent,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from gym_gui.models.charting import (
    ChartOptions,
    Drawing,
    Line,
    above_zero,
    drawings,
    full_range,
    in_powers,
    readings,
    value_range,
)
from gym_gui.theme import theme
from gym_gui.ui.widgets.plot_hover import PlotHover
from gym_gui.ui.widgets.plot_parts import PlotAxis, PlotLines
from mosaic.analytics import scales
from mosaic.analytics.scales import Piece, moved, place_text, scaled, ten_to, zoomed

_PAUSE_MS = 3
"""Between two plots, so that whatever else is due comes first."""
_LEAST_DRAG = 4.0
_BEHIND = -1000
_KEYS: dict[int, tuple[str, float]] = {
    Qt.Key.Key_Left: ("shift", -0.1),
    Qt.Key.Key_Right: ("shift", 0.1),
    Qt.Key.Key_Plus: ("scale", 0.8),
    Qt.Key.Key_Equal: ("scale", 0.8),
    Qt.Key.Key_Minus: ("scale", 1.25),
    Qt.Key.Key_0: ("all", 0.0),
    Qt.Key.Key_Home: ("all", 0.0),
}


class Drawn(Protocol):
    """A widget that is drawn when its turn comes."""

    def draw(self) -> None: ...


class DrawQueue:
    """Each plot waits at most once, however often it is asked for."""

    def __init__(self) -> None:
        self._waiting: dict[Drawn, None] = {}
        self._timer: QTimer | None = None

    def add(self, plot: Drawn) -> None:
        """Draw it soon."""
        self._waiting[plot] = None
        if self._timer is None or not shiboken6.isValid(self._timer):
            self._timer = QTimer(interval=_PAUSE_MS)
            self._timer.timeout.connect(self._draw_next)
        if not self._timer.isActive():
            self._timer.start()

    def remove(self, plot: Drawn) -> None:
        """It need not be drawn."""
        self._waiting.pop(plot, None)
        self._rest_if_done()

    def _draw_next(self) -> None:
        while self._waiting:
            plot = next(iter(self._waiting))
            del self._waiting[plot]
            if shiboken6.isValid(plot):
                plot.draw()
                break
        self._rest_if_done()

    def _rest_if_done(self) -> None:
        if not self._waiting and self._timer is not None and shiboken6.isValid(self._timer):
            self._timer.stop()


draw_queue = DrawQueue()
"""The one queue of the window's thread."""


class PlotArea(pg.GraphicsView):  # type: ignore[misc]
    """Lines over steps, time or batches. It shows all of them until somebody zooms."""

    focused = Signal(bool)
    """Whether the keyboard is for this plot."""

    def __init__(self) -> None:
        super().__init__(background=None)
        # The card under it is the background.
        self.setCacheMode(pg.GraphicsView.CacheModeFlag.CacheNone)
        self.setStyleSheet("background: transparent; border: none;")
        self.lines: list[Line] = []
        self._painted: list[Drawing] = []
        self.options = ChartOptions()
        self._log_y = False
        self.piece: Piece | None = None
        """What is zoomed into; None when all is shown."""
        self._pressed: tuple[float, bool, Piece] | None = None
        self._pointed: float | None = None
        """Where the pointer is read; the values there change with the lines."""
        self._view = pg.ViewBox(enableMenu=False, enableMouse=False, defaultPadding=0)
        self._curves = PlotLines(self._view)
        self._left = PlotAxis("left", scales.value_ticks, pixels=36)
        self._bottom = PlotAxis("bottom", scales.step_ticks, pixels=110)
        for axis in (self._left, self._bottom):
            axis.linkToView(self._view)
            # The grid lies behind the lines.
            axis.setZValue(_BEHIND)
        self.centralLayout.addItem(self._left, 0, 0)
        self.centralLayout.addItem(self._view, 0, 1)
        self.centralLayout.addItem(self._bottom, 1, 1)
        self.centralLayout.setSpacing(0)
        self.centralLayout.setContentsMargins(0, 8, 16, 0)
        self._view.disableAutoRange()
        self.hover = PlotHover(self, self._crosses)
        self.viewport().setMouseTracking(True)
        theme.changed.connect(self._recolour)

    def show_lines(self, lines: Sequence[Line], options: ChartOptions) -> None:
        """Draw these from now on; what is zoomed into stays, unless the axis is another."""
        if (options.axis, options.log_x) != (self.options.axis, self.options.log_x):
            self.piece = None
        self.options = options
        self.lines = list(lines)
        self._log_y = options.log_y and above_zero(self.lines)
        self._draw_soon()

    def zoom_to(self, piece: Piece | None) -> None:
        """Show a piece, or with None all."""
        whole = full_range(self.lines)
        if piece is not None and whole is not None:
            piece = zoomed(piece, whole)
        if piece != self.piece:
            self.piece = piece
            self._draw_soon()

    def _draw_soon(self) -> None:
        # A plot that nobody sees is drawn when it is shown.
        if self.isVisible():
            draw_queue.add(self)

    def draw(self) -> None:
        """Paint what the pixels have room for."""
        shown = self.piece or full_range(self.lines)
        self._choose_words()
        for axis in (self._left, self._bottom):
            axis.setOpacity(0.0 if shown is None else 1.0)
        if shown is None or not self._view.width():
            self._curves.clear()
            self._point_at(None)
            return
        low, high = shown
        self._painted = drawings(self.lines, low, high, int(self._view.width()))
        if self._log_y:
            self._painted = [in_powers(drawing) for drawing in self._painted]
        heights = value_range(self._painted, low, high)
        pixels = self._view.height() / (heights[1] - heights[0])
        self._curves.show(self.lines, self._painted, pixels)
        self._view.setRange(xRange=shown, yRange=heights, padding=0, disableAutoRange=True)
        self._point_at(self._pointed)

    def _choose_words(self) -> None:
        """How the axes say their numbers: with the new range, not before it."""
        timed, log_x = self.options.axis == "time", self.options.log_x
        if log_x:
            words, ticks = scales.log_time_ticks if timed else scales.log_step_ticks, scales.log_ticks
        else:
            words = scales.time_ticks if timed else scales.step_ticks
            ticks = scales.nice_times if timed else scales.nice_steps
        self._bottom.set_words(words, ticks)
        if self._log_y:
            self._left.set_words(scales.log_value_ticks, scales.log_ticks)
        else:
            self._left.set_words(scales.value_ticks, scales.nice_ticks)

    def _recolour(self) -> None:
        self._left.recolour()
        self._bottom.recolour()
        self._draw_soon()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if hasattr(self, "hover"):
            self.hover.setGeometry(self.rect())
            self._draw_soon()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._draw_soon()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        draw_queue.remove(self)

    def plot_rect(self) -> QRectF:
        """The place of the lines, in pixels of this widget."""
        return QRectF(self._view.sceneBoundingRect())

    def _place_at(self, x: float) -> float:
        return float(self._view.mapSceneToView(QPointF(x, 0)).x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        area, at = self.plot_rect(), event.position().x()
        if self._pressed is not None:
            start, pans, shown = self._pressed
            if pans:
                self._move(shown, (start - at) / max(1.0, area.width()) * (shown[1] - shown[0]))
            else:
                choice = (start, min(max(at, area.left()), area.right()))
                self.hover.show_choice(area, choice)
        else:
            self._point_at(at if area.contains(event.position()) else None)

    def _point_at(self, at: float | None) -> None:
        """Show the values at a place, in pixels, or with None none."""
        self._pointed = at
        found = [] if at is None else readings(self.lines, self._place_at(at))
        if at is None or not found:
            self.hover.clear()
            return
        points = [
            self._view.mapViewToScene(QPointF(one.x, math.log10(one.value) if self._log_y else one.value))
            for one in found
        ]
        # The line stands where the nearest point is, not where the pointer is.
        nearest = min(points, key=lambda point: abs(point.x() - at))
        place = found[points.index(nearest)].x
        title = place_text(ten_to(place) if self.options.log_x else place, self.options.axis)
        self.hover.show_readings(self.plot_rect(), nearest.x(), title, found, points)

    def _crosses(self, place: QRectF) -> bool:
        """Whether a line goes through this part of the plot, which is in pixels."""
        corners = [self._view.mapSceneToView(corner) for corner in (place.topLeft(), place.bottomRight())]
        left, right = corners[0].x(), corners[1].x()
        low, high = sorted(corner.y() for corner in corners)
        at = np.linspace(left, right, max(2, int(place.width() / 4)))
        for x, y in (drawing.main for drawing in self._painted):
            there = np.interp(at, x, y, left=np.nan, right=np.nan) if len(x) else np.empty(0)
            # Between two places that it is looked at, a steep line may pass through.
            least, greatest = np.minimum(there[1:], there[:-1]), np.maximum(there[1:], there[:-1])
            if np.any((greatest >= low) & (least <= high)):
                return True
        return False

    def _move(self, shown: Piece, by: float) -> None:
        whole = full_range(self.lines)
        if whole is not None:
            self.zoom_to(moved(shown, by, whole))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        shown = self.piece or full_range(self.lines)
        if event.button() != Qt.MouseButton.LeftButton or shown is None:
            event.ignore()
            return
        pans = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        self._pressed = (event.position().x(), pans, shown)
        self._point_at(None)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._pressed is None:
            return
        (start, pans, _), self._pressed = self._pressed, None
        self.hover.show_choice(self.plot_rect(), None)
        end = event.position().x()
        if not pans and abs(end - start) >= _LEAST_DRAG:
            self.zoom_to((self._place_at(start), self._place_at(end)))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.zoom_to(None)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focused.emit(False)

    def leaveEvent(self, event: QEvent) -> None:
        self._point_at(None)

    def wheelEvent(self, event: QWheelEvent) -> None:
        # Without Ctrl the page scrolls, as everywhere.
        if not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()
            return
        self._scale(0.999 ** event.angleDelta().y(), self._place_at(event.position().x()))
        event.accept()

    def _scale(self, factor: float, around: float | None = None) -> None:
        whole = full_range(self.lines)
        if whole is not None:
            self.zoom_to(scaled(self.piece or whole, factor, around, whole))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        shown = self.piece or full_range(self.lines)
        kind, amount = _KEYS.get(event.key(), ("", 0.0))
        if shown is None or not kind:
            QWidget.keyPressEvent(self, event)
        elif kind == "all":
            self.zoom_to(None)
        elif kind == "scale":
            self._scale(amount)
        elif self.piece is not None:
            self._move(shown, amount * (shown[1] - shown[0]))
