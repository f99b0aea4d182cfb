"""Find anything: commands with their shortcuts, and runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gym_gui.models.commands import COMMANDS, Found, found_by
from gym_gui.models.runs import RunBook
from gym_gui.theme import LABEL, SPACE, number_font, theme
from gym_gui.ui.widgets.basics import cast_shadow
from gym_gui.ui.widgets.elided import elide_title

_WIDTH, _HEIGHT, _LINE = 560, 420, 34


class _Lines(QStyledItemDelegate):
    """Words on the left, the shortcut or what tells a run on the right."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index) -> None:  # type: ignore[no-untyped-def]
        found = index.data(Qt.ItemDataRole.UserRole)
        area = option.rect
        painter.save()
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.palette.raised))
            painter.drawRoundedRect(area, 6, 6)
        inner = area.adjusted(SPACE[2], 0, -SPACE[2], 0)
        painter.setFont(number_font(LABEL))
        hint_width = painter.fontMetrics().horizontalAdvance(found.hint) + SPACE[2]
        painter.setPen(QColor(theme.palette.faint))
        painter.drawText(inner, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, found.hint)
        painter.setFont(number_font())
        painter.setPen(QColor(theme.palette.text))
        room = inner.width() - hint_width
        title = elide_title(painter.fontMetrics(), found.title, room)
        painter.drawText(inner, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, title)
        painter.restore()


class Finder(QFrame):
    """A field with lines below it, over the window; Esc takes it away."""

    chosen = Signal(object)
    """The `Found` line."""

    def __init__(self, over: QWidget, book: RunBook, more: Callable[[], Sequence[Found]]) -> None:
        """`more` tells the commands that are there only now and then."""
        super().__init__(over)
        self._over = over
        self._book = book
        self._more = more
        self._commands: list[Found] = []
        self.setProperty("role", "card")
        cast_shadow(self)
        self.field = QLineEdit()
        self.field.setPlaceholderText("Find a run or a command…")
        self.field.setAccessibleName("Find")
        self.field.textChanged.connect(self._fill)
        self.field.installEventFilter(self)
        self.lines = QListWidget()
        self.lines.setItemDelegate(_Lines(self.lines))
        self.lines.setUniformItemSizes(True)
        self.lines.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.lines.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.lines.itemClicked.connect(self._take)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE[1], SPACE[1], SPACE[1], SPACE[1])
        column.setSpacing(SPACE[1])
        column.addWidget(self.field)
        column.addWidget(self.lines)
        self.hide()

    def open(self) -> None:
        """Show it, empty, in the upper middle of the window."""
        width = min(_WIDTH, self._over.width() - 2 * SPACE[4])
        height = min(_HEIGHT, self._over.height() - 120)
        self.setGeometry((self._over.width() - width) // 2, 64, width, height)
        self._commands = [*self._more(), *COMMANDS]
        self.field.clear()
        self._fill("")
        self.show()
        self.raise_()
        self.field.setFocus()

    def look_again(self) -> None:
        """More runs are known now."""
        if self.isVisible():
            row = self.lines.currentRow()
            self._fill(self.field.text())
            self.lines.setCurrentRow(row)

    def _fill(self, text: str) -> None:
        self.lines.clear()
        for found in found_by(text, self._book, self._commands):
            item = QListWidgetItem()
            item.setData(Qt.ItemDataRole.UserRole, found)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{found.title}, {found.hint}")
            item.setSizeHint(QSize(0, _LINE))
            self.lines.addItem(item)
        self.lines.setCurrentRow(0)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The field keeps the keys; up and down move in the lines."""
        if event.type() == QEvent.Type.FocusOut:
            self.hide()
        if event.type() != QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return False
        key, row = event.key(), self.lines.currentRow()
        if key in (Qt.Key.Key_Down, Qt.Key.Key_Up):
            row += 1 if key == Qt.Key.Key_Down else -1
            self.lines.setCurrentRow(max(0, min(self.lines.count() - 1, row)))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._take(self.lines.currentItem())
        elif key == Qt.Key.Key_Escape:
            self.hide()
        else:
            return False
        return True

    def _take(self, item: QListWidgetItem | None) -> None:
        found = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        self.hide()
        if isinstance(found, Found):
            self.chosen.emit(found)
