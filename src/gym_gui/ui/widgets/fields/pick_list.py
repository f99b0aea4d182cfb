"""A list to choose from, with a field that searches it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QAbstractListModel,
    QCoreApplication,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFont, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gym_gui.models.list_row import ListRow
from gym_gui.theme import LABEL, SPACE, TEXT, number_font, theme
from gym_gui.ui.widgets.basics import tip
from gym_gui.ui.widgets.elided import elide_parts, elide_title

Index = QModelIndex | QPersistentModelIndex
_ROW = Qt.ItemDataRole.UserRole
_PADDING = 10
_ARROWS = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


class RowModel(QAbstractListModel):
    """Rows of a list."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[ListRow] = []

    def show(self, rows: Sequence[ListRow]) -> None:
        self.beginResetModel()
        self.rows = list(rows)
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self.rows[index.row()]
        if role == _ROW:
            return row
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return " ".join(filter(None, (row.title, row.aside, row.about)))
        return tip(row.about or row.title) if role == Qt.ItemDataRole.ToolTipRole else None


class RowDelegate(QStyledItemDelegate):
    """Paints a row: title and aside, and the second line if there is one."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(80, 44 if index.data(_ROW).about else 28)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: ListRow = index.data(_ROW)
        palette = theme.palette
        painter.save()
        area = option.rect
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(area, palette.colour("raised"))
            painter.fillRect(area.adjusted(0, 0, 2 - area.width(), 0), palette.colour("accent"))
        inner = area.adjusted(_PADDING, 0, -_PADDING, 0)
        first = inner.adjusted(0, 5, 0, -22) if row.about else inner
        painter.setFont(number_font(LABEL))
        aside_width = min(painter.fontMetrics().horizontalAdvance(row.aside) + 2, inner.width() // 2)
        painter.setPen(palette.colour("dim" if not row.faint else "faint"))
        middle = Qt.AlignmentFlag.AlignVCenter
        aside = painter.fontMetrics().elidedText(row.aside, Qt.TextElideMode.ElideRight, aside_width)
        painter.drawText(first, middle | Qt.AlignmentFlag.AlignRight, aside)
        painter.setFont(number_font(TEXT, QFont.Weight.DemiBold if row.about else QFont.Weight.Normal))
        painter.setPen(palette.colour("dim" if row.faint else "text"))
        room = first.width() - (aside_width + SPACE[1] if row.aside else 0)
        title = elide_title(painter.fontMetrics(), row.title, room)
        painter.drawText(first, middle, title)
        if row.about:
            painter.setFont(number_font(LABEL))
            painter.setPen(palette.colour("dim"))
            second = inner.adjusted(0, 22, 0, -5)
            painter.drawText(second, middle, elide_parts(painter.fontMetrics(), row.about, second.width()))
        painter.restore()


class PickList(QWidget):
    """Search field and list. `chosen` tells the key of a row that was clicked, or taken with Enter, and
    `marked` that of a row which keys or mouse have come to."""

    chosen = Signal(str)
    marked = Signal(str)
    searched = Signal(str)

    def __init__(self, placeholder: str) -> None:
        super().__init__()
        self.search = QLineEdit()
        self.search.setPlaceholderText(placeholder)
        self.search.setAccessibleName(placeholder)
        self.search.setClearButtonEnabled(True)
        self._showing = False
        self.model = RowModel()
        self.view = QListView()
        self.view.setModel(self.model)
        self.view.setItemDelegate(RowDelegate(self.view))
        self.view.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.view.setUniformItemSizes(True)
        self.view.setAccessibleName("Choices")
        self.view.clicked.connect(self._choose)
        self.view.activated.connect(self._choose)
        self.view.selectionModel().selectionChanged.connect(self._tell_marked)
        self.search.textChanged.connect(self.searched)
        self.search.returnPressed.connect(self._choose_first)
        self.search.installEventFilter(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE[1])
        column.addWidget(self.search)
        column.addWidget(self.view, 1)

    def show_rows(self, rows: Sequence[ListRow], selected: str = "") -> None:
        """Show rows, one of them selected."""
        self._showing = True
        self.model.show(rows)
        at = next((number for number, row in enumerate(rows) if row.key == selected), -1)
        if at >= 0:
            self.view.setCurrentIndex(self.model.index(at))
        self._showing = False

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The arrows move in the list while one types."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.key() in _ARROWS:
            QCoreApplication.sendEvent(self.view, event)
            return True
        return False

    def _choose(self, index: QModelIndex) -> None:
        self.chosen.emit(self.model.rows[index.row()].key)

    def _tell_marked(self) -> None:
        # Not `currentIndex`: a list that is given the keyboard makes its first row current, unseen.
        for index in self.view.selectedIndexes():
            if not self._showing:
                self.marked.emit(self.model.rows[index.row()].key)

    def _choose_first(self) -> None:
        for index in self.view.selectedIndexes() or [self.model.index(0)]:
            if index.isValid():
                self._choose(index)
