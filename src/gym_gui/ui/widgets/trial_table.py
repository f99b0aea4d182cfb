"""The table of a sweep's trials: sorted by a click on a column, and each leads to its runs."""

from __future__ import annotations

from PySide6.QtCore import QAbstractTableModel, QItemSelectionModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from gym_gui.models.sweep import TrialTable
from gym_gui.theme import number_font, theme
from gym_gui.ui.widgets.basics import Index, tip
from mosaic.sweeps.study import Study, Trial

_ROW = 28
_LOOKED_AT = 20
"""So many rows decide how wide a column is."""
_WIDEST = 320
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)


class TrialModel(QAbstractTableModel):
    """The rows of a `TrialTable`."""

    def __init__(self) -> None:
        super().__init__()
        self.table = TrialTable()
        self._places: dict[int, int] = {}

    def show(self, study: Study) -> bool:
        """Take in a study; gives whether the columns are others now."""
        self.beginResetModel()
        others = self.table.show(study)
        self._number()
        self.endResetModel()
        return others

    def _number(self) -> None:
        self._places = {one.number: at for at, one in enumerate(self.table.rows)}

    def trial(self, row: int) -> Trial:
        return self.table.rows[row]

    def place(self, number: int) -> int | None:
        return self._places.get(number)

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.table.rows)

    def columnCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.table.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT if self.table.is_number(index.column()) else _LEFT
        if role not in (
            Qt.ItemDataRole.DisplayRole,
            Qt.ItemDataRole.ToolTipRole,
            Qt.ItemDataRole.ForegroundRole,
        ):
            return None
        cell = self.table.cell(self.table.rows[index.row()], index.column())
        if role == Qt.ItemDataRole.ForegroundRole:
            colour: QColor = theme.palette.colour(cell.role)
            return colour
        return (tip(cell.text) if role == Qt.ItemDataRole.ToolTipRole else cell.text) or None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal or section >= len(self.table.columns):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            arrow = "↓" if self.table.descending else "↑"
            title = self.table.columns[section]
            return f"{title} {arrow}" if section == self.table.sorted_by else title
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT if self.table.is_number(section) else _LEFT
        return None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        if 0 <= column < len(self.table.columns):
            self.beginResetModel()
            self.table.sort(column, order == Qt.SortOrder.DescendingOrder)
            self._number()
            self.endResetModel()
            self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self.table.columns) - 1)


class TrialTableView(QTableView):
    """What is marked stays so while the table changes. Enter or a click on a run leads to that run."""

    marked = Signal(object)
    """The number of the trial that is marked; None for none."""
    opened = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.rows = TrialModel()
        self.setModel(self.rows)
        self.number: int | None = None
        self._quiet = False
        self._unfitted = False
        """Whether there were no rows yet to see how wide the columns must be."""
        self.setAccessibleName("Trials")
        self.setFont(number_font())
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setMouseTracking(True)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(_ROW)
        self._head = self.horizontalHeader()
        self._head.setSectionsClickable(True)
        self._head.setHighlightSections(False)
        self._head.setResizeContentsPrecision(_LOOKED_AT)
        self._head.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self._head.sectionClicked.connect(self._sort)
        self.doubleClicked.connect(lambda index: self.opened.emit(self.rows.trial(index.row()).number))
        self.selectionModel().currentRowChanged.connect(self._tell)
        self.setMinimumHeight(90)

    def show_study(self, study: Study) -> None:
        """The trials as they are now."""
        place = self.verticalScrollBar().value()
        self._quiet = True
        others = self.rows.show(study)
        self._quiet = False
        self._unfitted = others or self._unfitted
        if self.rows.rowCount() and (self._unfitted or self.rows.rowCount() <= _LOOKED_AT):
            self._fit(anew=self._unfitted)
            self._unfitted = False
        self._select()
        self.verticalScrollBar().setValue(place)

    def _fit(self, anew: bool) -> None:
        """Give each column the room that it needs; unless it is `anew`, none gets less than it has."""
        for column in range(self.rows.columnCount()):
            wanted = max(self.sizeHintForColumn(column), self._head.sectionSizeHint(column)) + 6
            if anew or wanted > self.columnWidth(column):
                self.setColumnWidth(column, min(_WIDEST, wanted))

    def mark(self, number: int | None, seen: bool = True) -> None:
        """Mark a trial, and have it seen."""
        self.number = number
        self._select()
        place = None if number is None else self.rows.place(number)
        if seen and place is not None:
            self.scrollTo(self.rows.index(place, 0))

    def _select(self) -> None:
        place = None if self.number is None else self.rows.place(self.number)
        self._quiet = True
        if place is None:
            self.clearSelection()
        else:
            flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
            self.selectionModel().setCurrentIndex(self.rows.index(place, 0), flags)
        self._quiet = False

    def _sort(self, column: int) -> None:
        table = self.rows.table
        # Values are looked at from the top, everything else from the beginning.
        descending = not table.descending if table.sorted_by == column else table.columns[column] == "value"
        order = Qt.SortOrder.DescendingOrder if descending else Qt.SortOrder.AscendingOrder
        self._quiet = True
        self.rows.sort(column, order)
        self._quiet = False
        self._select()
        self.scrollToTop()

    def _tell(self, current: QModelIndex, _: QModelIndex) -> None:
        if not self._quiet:
            self.number = self.rows.trial(current.row()).number if current.isValid() else None
            self.marked.emit(self.number)

    def _is_run(self, index: Index) -> bool:
        return index.isValid() and self.rows.table.columns[index.column()] == "run" and bool(index.data())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        on_run = self._is_run(self.indexAt(event.position().toPoint()))
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if on_run else Qt.CursorShape.ArrowCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        index = self.indexAt(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and self._is_run(index):
            self.opened.emit(self.rows.trial(index.row()).number)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.number is not None:
            self.opened.emit(self.number)
        else:
            super().keyPressEvent(event)
