"""Painting one row of the run list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from gym_gui.models.run_rows import Row
from gym_gui.theme import LABEL, TEXT, number_font, theme
from gym_gui.ui.widgets.elided import elide_parts, elide_title

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

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
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
            self._write(painter, third, row.reason, self._text, self._text_size, theme.palette.dim)
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
        mark = "" if row.opened is None else f"{len(row.run_ids)} {'▾' if row.opened else '▸'}"
        taken = self._title_size.horizontalAdvance(row.value) if row.value else 0
        taken += self._text_size.horizontalAdvance(mark) + _BESIDE if mark else 0
        room = inner.width() - taken - _BESIDE
        return elide_title(self._title_size, row.title, room), mark

    def _paint_ground(self, painter: QPainter, area: QRect, state: QStyle.StateFlag) -> None:
        colours = theme.palette
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(area, QColor(colours.raised))
            painter.fillRect(area.left(), area.top(), _MARK, area.height() - 1, QColor(colours.accent))
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(area, colours.colour("raised", 0.5))
        painter.fillRect(area.left(), area.bottom(), area.width(), 1, QColor(colours.line))
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QColor(colours.accent))
            painter.drawRect(area.adjusted(0, 0, -1, -2))

    def _paint_title(self, painter: QPainter, area: QRect, row: Row) -> None:
        colours = theme.palette
        painter.setFont(self._title)
        painter.setPen(QColor(colours.text))
        painter.drawText(area, _RIGHTWARD, row.value)
        title, mark = self._title_and_mark(row, area)
        painter.drawText(area, _LEFTWARD, title)
        beside = area.adjusted(self._title_size.horizontalAdvance(title) + _BESIDE, 0, 0, 0)
        if mark:
            self._write(painter, beside, mark, self._text, self._text_size, colours.faint)
            beside.setLeft(beside.left() + self._text_size.horizontalAdvance(mark) + _BESIDE)
        if row.about:
            taken = self._title_size.horizontalAdvance(row.value) + _BESIDE if row.value else 0
            beside.setRight(beside.right() - taken)
            self._write(painter, beside, row.about, self._text, self._text_size, colours.dim)

    def _paint_state(self, painter: QPainter, area: QRect, row: Row, curve_width: int) -> None:
        colours = theme.palette
        word = row.state.word
        self._write(painter, area, word, self._text, self._text_size, getattr(colours, row.state.role))
        beside = area.adjusted(self._text_size.horizontalAdvance(word) + _BESIDE, 0, -curve_width, 0)
        self._write(painter, beside, row.detail, self._text, self._text_size, colours.dim)

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
        painter.setPen(QPen(QColor(getattr(theme.palette, row.state.role)), 1.4))
        painter.drawPolyline(QPolygonF(points))
        return _CURVE.width() + _BESIDE

    def _paint_bar(self, painter: QPainter, area: QRect, row: Row) -> None:
        share = min(1.0, max(0.0, row.progress or 0.0))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        for width, colour in ((1.0, theme.palette.line), (share, getattr(theme.palette, row.state.role))):
            painter.setBrush(QColor(colour))
            bar = QRectF(area.left(), area.top(), area.width() * width, _BAR)
            painter.drawRoundedRect(bar, _BAR / 2, _BAR / 2)

    def _write(
        self, painter: QPainter, area: QRect, text: str, font: QFont, size: QFontMetrics, colour: str
    ) -> None:
        painter.setFont(font)
        painter.setPen(QColor(colour))
        painter.drawText(area, _LEFTWARD, elide_parts(size, text, area.width()))
