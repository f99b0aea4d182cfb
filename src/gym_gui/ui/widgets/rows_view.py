"""A list of rows of different heights, fast for thousands of them."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from itertools import accumulate

from PySide6.QtCore import (
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    Qt,
)
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QRegion, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QStyle, QStyleOptionViewItem

_STEP = 24
_Action = QAbstractItemView.CursorAction
_State = QStyle.StateFlag

Index = QModelIndex | QPersistentModelIndex


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
