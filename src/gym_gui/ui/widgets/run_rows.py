"""Rows of different heights, fast for thousands of them, and how one of a run is painted."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from PySide6.QtCore import (
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import (
    QFont,
    QFontMetrics,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QRegion,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from gym_gui.models.listing import Row
from gym_gui.theme import LABEL, TEXT, number_font, theme
from gym_gui.ui.widgets.basics import Index, elide_parts, elide_title

_STEP = 24
_Action = QAbstractItemView.CursorAction
_State = QStyle.StateFlag

_LEFT, _RIGHT, _TOP = 14, 14, 11
_LINE = 18
_GAP = 3
_BOTTOM = 10
_PLAIN = _TOP + 2 * _LINE + _GAP + _BOTTOM - 2
_BAR = 3
_INDENT = 14
_CURVE = QSize(64, 17)
_MARK = 3
_BESIDE = 8

Curves = Callable[[Row], Sequence[float]]
HEIGHTS = (_PLAIN, _PLAIN + 8, _PLAIN + _LINE + 1)
"""By `Shape`: a row is as high as what stands in it."""
_LEFTWARD = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHTWARD = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class RowsView(QAbstractItemView):
    """One column. Qt's own list asks each row for its size, one by one; this is told all heights at once."""

    def __init__(self) -> None:
        super().__init__()
        self._tops: list[int] = [0]
        """Where each row begins, and where the last one ends."""
        self._hovered = -1
        self._anchor = QPersistentModelIndex()
        """The uppermost row on the screen; it stays there when rows come or go above it."""
        self._anchor_depth = 0
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)

    @abstractmethod
    def heights(self) -> list[int]:
        """How high each row is."""

    def measure(self) -> None:
        """Find out where each row stands, after rows have come, gone or changed."""
        tops = [0, *accumulate(self.heights())]
        if tops == self._tops:
            return
        bar, anchor, depth = self.verticalScrollBar(), self._anchor, self._anchor_depth
        scrolled = bar.value() > 0
        self._tops = tops
        self.updateGeometries()
        if scrolled and anchor.isValid():
            bar.setValue(tops[anchor.row()] + depth)
        self._drop_anchor()
        self.viewport().update()

    def _drop_anchor(self) -> None:
        top = self.seen().start
        self._anchor = QPersistentModelIndex(self.model().index(top, 0))
        self._anchor_depth = self.verticalOffset() - self._tops[top]

    def seen(self, top: int = 0, bottom: int | None = None) -> range:
        """The rows between two heights of the viewport; without them all that are on the screen."""
        offset, bottom = self.verticalOffset(), self.viewport().height() if bottom is None else bottom
        first = max(0, bisect_right(self._tops, offset + top) - 1)
        return range(first, min(bisect_right(self._tops, offset + bottom), len(self._tops) - 1))

    def visualRect(self, index: Index) -> QRect:
        place = index.row()
        if not 0 <= place < len(self._tops) - 1:
            return QRect()
        top = self._tops[place]
        return QRect(0, top - self.verticalOffset(), self.viewport().width(), self._tops[place + 1] - top)

    def indexAt(self, point: QPoint) -> QModelIndex:
        under = self.seen(point.y(), point.y())
        return self.model().index(under.start, 0) if under else QModelIndex()

    def scrollTo(
        self, index: Index, hint: QAbstractItemView.ScrollHint = QAbstractItemView.ScrollHint.EnsureVisible
    ) -> None:
        area, height, bar = self.visualRect(index), self.viewport().height(), self.verticalScrollBar()
        if area.top() < 0:
            bar.setValue(bar.value() + area.top())
        elif area.bottom() > height:
            bar.setValue(bar.value() + area.bottom() - height + 1)

    def horizontalOffset(self) -> int:
        return 0

    def verticalOffset(self) -> int:
        return self.verticalScrollBar().value()

    def isIndexHidden(self, index: Index) -> bool:
        return False

    def moveCursor(self, action: _Action, modifiers: Qt.KeyboardModifier) -> QModelIndex:
        last, now, page = len(self._tops) - 2, max(0, self.currentIndex().row()), self.viewport().height()
        if last < 0:
            return QModelIndex()
        if not self.currentIndex().isValid():
            return self.model().index(0, 0)
        wanted = {
            _Action.MoveUp: now - 1,
            _Action.MovePrevious: now - 1,
            _Action.MoveDown: now + 1,
            _Action.MoveNext: now + 1,
            _Action.MoveHome: 0,
            _Action.MoveEnd: last,
            _Action.MovePageUp: bisect_right(self._tops, self._tops[min(now, last)] - page),
            _Action.MovePageDown: bisect_right(self._tops, self._tops[min(now, last)] + page) - 2,
        }.get(action, now)
        return self.model().index(max(0, min(last, wanted)), 0)

    def setSelection(self, rect: QRect, command: QItemSelectionModel.SelectionFlag) -> None:
        rows = self.seen(rect.normalized().top(), rect.normalized().bottom())
        if rows:
            first, last = self.model().index(rows[0], 0), self.model().index(rows[-1], 0)
            self.selectionModel().select(QItemSelection(first, last), command)

    def visualRegionForSelection(self, selection: QItemSelection) -> QRegion:
        # All of it: what is chosen is few rows, and they are drawn fast.
        return QRegion(self.viewport().rect())

    def updateGeometries(self) -> None:
        super().updateGeometries()
        height, bar = self.viewport().height(), self.verticalScrollBar()
        bar.setSingleStep(_STEP)
        bar.setPageStep(height)
        bar.setRange(0, max(0, self._tops[-1] - height))

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        self.viewport().scroll(0, dy)
        self._drop_anchor()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        current = self.visualRect(self.currentIndex())
        was_seen = current.isValid() and current.top() < event.oldSize().height() and current.bottom() > 0
        self.updateGeometries()
        if was_seen:
            self.scrollTo(self.currentIndex())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, chosen = QPainter(self.viewport()), self.selectionModel()
        current = self.currentIndex().row() if self.hasFocus() else -1
        for place in self.seen(event.rect().top(), event.rect().bottom()):
            index = self.model().index(place, 0)
            option = QStyleOptionViewItem()
            option.rect = self.visualRect(index)
            option.state = _State.State_Selected if chosen.isSelected(index) else _State.State_None
            if place == self._hovered:
                option.state |= _State.State_MouseOver
            if place == current:
                option.state |= _State.State_HasFocus
            self.itemDelegate().paint(painter, option, index)
        painter.end()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        self._hover(self.indexAt(event.position().toPoint()).row())

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(-1)

    def _hover(self, place: int) -> None:
        if place != self._hovered:
            self._hovered = place
            self.viewport().update()


class RunDelegate(QStyledItemDelegate):
    """Name and value; state, seeds and how far; a curve; a bar or a reason."""

    def __init__(self, curves: Curves, parent: QWidget) -> None:
        super().__init__(parent)
        self._curves = curves
        self._make_fonts()
        theme.changed.connect(self._make_fonts)

    def _make_fonts(self) -> None:
        self._title = number_font(TEXT, QFont.Weight.DemiBold)
        self._text = number_font(LABEL)
        self._title_size = QFontMetrics(self._title)
        self._text_size = QFontMetrics(self._text)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = index.data(Qt.ItemDataRole.UserRole)
        if not isinstance(row, Row):
            return
        area: QRect = option.rect
        state: QStyle.StateFlag = option.state
        painter.save()
        self._paint_ground(painter, area, state)
        inner = self._inner(row, area)
        self._paint_title(painter, inner, row)
        second = inner.translated(0, _LINE + _GAP)
        self._paint_state(painter, second, row, self._paint_curve(painter, second, row))
        third = second.translated(0, _LINE + 1)
        if row.reason:
            self._write(painter, third, row.reason, "dim")
        elif row.progress is not None:
            self._paint_bar(painter, third.adjusted(0, 5, 0, 0), row)
        painter.restore()

    def opener(self, row: Row, area: QRect) -> QRect:
        """Where a click opens or closes a group: the number and the arrow behind its name."""
        inner = self._inner(row, area)
        title, mark = self._title_and_mark(row, inner)
        start = inner.left() + self._title_size.horizontalAdvance(title)
        width = self._text_size.horizontalAdvance(mark) + 2 * _BESIDE
        return QRect(start, area.top(), width, _TOP + _LINE + _GAP)

    def _inner(self, row: Row, area: QRect) -> QRect:
        left = area.left() + _LEFT + (_INDENT if row.child else 0)
        return QRect(left, area.top() + _TOP, area.right() - _RIGHT - left + 1, _LINE)

    def _title_and_mark(self, row: Row, inner: QRect) -> tuple[str, str]:
        mark = "" if row.opened is None else f"{row.count:,} {'▾' if row.opened else '▸'}"
        taken = self._title_size.horizontalAdvance(row.value) if row.value else 0
        taken += self._text_size.horizontalAdvance(mark) + _BESIDE if mark else 0
        room = inner.width() - taken - _BESIDE
        return elide_title(self._title_size, row.title, room), mark

    def _paint_ground(self, painter: QPainter, area: QRect, state: QStyle.StateFlag) -> None:
        colours = theme.palette
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(area, colours.colour("raised"))
            painter.fillRect(area.left(), area.top(), _MARK, area.height() - 1, colours.colour("accent"))
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(area, colours.colour("raised", 0.5))
        painter.fillRect(area.left(), area.bottom(), area.width(), 1, colours.colour("line"))
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(colours.colour("accent"))
            painter.drawRect(area.adjusted(0, 0, -1, -2))

    def _paint_title(self, painter: QPainter, area: QRect, row: Row) -> None:
        painter.setFont(self._title)
        painter.setPen(theme.palette.colour("text"))
        painter.drawText(area, _RIGHTWARD, row.value)
        title, mark = self._title_and_mark(row, area)
        painter.drawText(area, _LEFTWARD, title)
        beside = area.adjusted(self._title_size.horizontalAdvance(title) + _BESIDE, 0, 0, 0)
        if mark:
            self._write(painter, beside, mark, "faint")
            beside.setLeft(beside.left() + self._text_size.horizontalAdvance(mark) + _BESIDE)
        if row.about:
            taken = self._title_size.horizontalAdvance(row.value) + _BESIDE if row.value else 0
            beside.setRight(beside.right() - taken)
            self._write(painter, beside, row.about, "dim")

    def _paint_state(self, painter: QPainter, area: QRect, row: Row, curve_width: int) -> None:
        word = row.state.word
        self._write(painter, area, word, row.state.role)
        beside = area.adjusted(self._text_size.horizontalAdvance(word) + _BESIDE, 0, -curve_width, 0)
        self._write(painter, beside, row.detail, "dim")

    def _paint_curve(self, painter: QPainter, area: QRect, row: Row) -> int:
        """The thumbnail at the right end; gives the room that it takes."""
        values = self._curves(row)
        if len(values) < 2:
            return 0
        low, high = min(values), max(values)
        span = high - low or 1.0
        box = QRectF(
            area.right() - _CURVE.width() + 1, area.top() + 1, _CURVE.width() - 1, _CURVE.height() - 3
        )
        step = box.width() / (len(values) - 1)
        points = [
            QPointF(box.left() + at * step, box.bottom() - (value - low) / span * box.height())
            for at, value in enumerate(values)
        ]
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.palette.colour(row.state.role), 1.4))
        painter.drawPolyline(QPolygonF(points))
        return _CURVE.width() + _BESIDE

    def _paint_bar(self, painter: QPainter, area: QRect, row: Row) -> None:
        share = min(1.0, max(0.0, row.progress or 0.0))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        for width, role in ((1.0, "line"), (share, row.state.role)):
            painter.setBrush(theme.palette.colour(role))
            bar = QRectF(area.left(), area.top(), area.width() * width, _BAR)
            painter.drawRoundedRect(bar, _BAR / 2, _BAR / 2)

    def _write(self, painter: QPainter, area: QRect, text: str, role: str) -> None:
        painter.setFont(self._text)
        painter.setPen(theme.palette.colour(role))
        painter.drawText(area, _LEFTWARD, elide_parts(self._text_size, text, area.width()))
