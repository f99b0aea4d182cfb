"""The table of runs for Qt: sorted by a click on a column, and the queue put in order by dragging."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QMimeData,
    QModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QContextMenuEvent, QFontMetrics, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
)

from gym_gui.models.compare import Cell
from gym_gui.models.filters import RunFilter
from gym_gui.models.run_table import RunTable
from gym_gui.theme import number_font, theme
from gym_gui.ui.widgets.basics import Index, tip
from gym_gui.ui.widgets.run_list import follow_rows, ranges

_ROW = 30
_NEARLY = 20
_MARK, _BESIDE, _ARROW = 3, 11, 8
_WIDEST, _LEAST = 260, 56
_LOOKED_AT = 60
"""So many rows decide how wide a column is."""
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_PLAIN = Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemNeverHasChildren
_DRAGGED = _PLAIN | Qt.ItemFlag.ItemIsDragEnabled
_MIME = "application/x-mosaic-runs"


class RunTableModel(QAbstractTableModel):
    """The rows of a `RunTable`. What has not changed is not told of."""

    following = Signal(bool)
    """True before rows come, go or move, False when all are in place."""
    columns_changed = Signal()
    dropped = Signal(object, object)
    """The runs that were dragged, and the one that they were dropped before; None for the end."""

    def __init__(self, table: RunTable) -> None:
        super().__init__()
        self.table = table
        self._ids = list(table.ids)
        self._columns = list(table.columns)
        self._places = {run_id: at for at, run_id in enumerate(self._ids)}

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._ids)

    def columnCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._columns)

    def run_id(self, place: int) -> str:
        return self._ids[place]

    def place(self, run_id: str) -> int | None:
        return self._places.get(run_id)

    def cell(self, row: int, column: int) -> tuple[Cell, bool]:
        """What stands there, and whether at the right."""
        one = self._columns[column]
        return self.table.cell(self._ids[row], one.key), one.number

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        column = self._columns[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(_RIGHT if column.number else _LEFT)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            text = self.table.cell(self._ids[index.row()], column.key).text
            return (tip(text) if role == Qt.ItemDataRole.ToolTipRole else text) or None
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal or section >= len(self._columns):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            column = self._columns[section]
            arrow = "↓" if self.table.descending else "↑"
            return f"{column.title} {arrow}" if column.key == self.table.sorted_by else column.title
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT if self._columns[section].number else _LEFT
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid():
            # Between two rows.
            return Qt.ItemFlag.ItemIsDropEnabled
        if self.table.sorted_by != "queue":
            return _PLAIN
        run = self.table.run(self._ids[index.row()])
        return _DRAGGED if run is not None and run.status == "INIT" else _PLAIN

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        if 0 <= column < len(self._columns):
            self.table.sort(self._columns[column].key, order == Qt.SortOrder.DescendingOrder)
            self.follow()

    def set_filter(self, wanted: RunFilter) -> None:
        self.table.set_filter(wanted)
        self.follow(anew=True)

    def set_columns(self, chosen: Iterable[str], with_differing: bool) -> None:
        self.table.set_columns(chosen, with_differing)
        self.follow()

    def update(self, groups: Iterable[str]) -> None:
        """These groups of the book have news."""
        stale = self.table.update(groups)
        self.follow()
        places = [place for run_id in stale if (place := self._places.get(run_id)) is not None]
        for first, last in ranges(sorted(places)):
            self.dataChanged.emit(self.index(first, 0), self.index(last, len(self._columns) - 1))

    def set_reach(self, last: str | None) -> None:
        """Show what is known up to this run, or all; see `RunTable.reach`."""
        if last != self.table.reach:
            self.table.reach = last
            self.table.look_again(anew=False)
            self.follow()

    def look_again(self) -> None:
        self.table.look_again()
        self.follow(anew=True)

    def follow(self, anew: bool = False) -> None:
        """Make rows and columns those of the table."""
        new = self.table.ids
        columns = self.table.columns != self._columns
        if new != self._ids or anew or columns:
            self.following.emit(True)
            if columns or anew or not follow_rows(self, self._ids, new):
                self.beginResetModel()
                self._ids, self._columns = list(new), list(self.table.columns)
                self.endResetModel()
            self._places = {run_id: at for at, run_id in enumerate(new)}
            self.following.emit(False)
            if columns:
                self.columns_changed.emit()

    def supportedDropActions(self) -> Qt.DropAction:
        return Qt.DropAction.MoveAction

    def mimeTypes(self) -> list[str]:
        return [_MIME]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        data = QMimeData()
        places = sorted({index.row() for index in indexes})
        data.setData(_MIME, ",".join(self._ids[place] for place in places).encode())
        return data

    def dropMimeData(
        self, data: QMimeData, action: Qt.DropAction, row: int, column: int, parent: Index
    ) -> bool:
        place = row if row >= 0 else parent.row()
        if data.hasFormat(_MIME) and self.table.sorted_by == "queue":
            moved = bytes(data.data(_MIME).data()).decode().split(",")
            self.dropped.emit(moved, self._ids[place] if 0 <= place < len(self._ids) else None)
        # The daemon decides the order: rows move when it has told of it.
        return False


class _Cells(QStyledItemDelegate):
    """Text in the colour of its meaning, also in a chosen row, which has the mark that it has in the list."""

    def __init__(self, rows: RunTableModel, parent: QTableView) -> None:
        super().__init__(parent)
        self._rows = rows
        self._font = number_font()
        self._size = QFontMetrics(self._font)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        cell, _ = self._rows.cell(index.row(), index.column())
        return QSize(self._size.horizontalAdvance(cell.text) + 2 * _BESIDE, _ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        # Asked of the model itself: each question by way of Qt costs more than the drawing.
        cell, to_the_right = self._rows.cell(index.row(), index.column())
        area: QRect = option.rect
        colours = theme.palette
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(area, colours.colour("raised"))
            if index.column() == 0:
                painter.fillRect(area.left(), area.top(), _MARK, area.height(), colours.colour("accent"))
        painter.fillRect(area.left(), area.bottom(), area.width(), 1, colours.colour("line", 0.6))
        if not cell.text:
            return
        painter.setFont(self._font)
        painter.setPen(colours.colour(cell.role))
        inner = area.adjusted(_BESIDE, 0, -_BESIDE, 0)
        shown = self._size.elidedText(cell.text, Qt.TextElideMode.ElideRight, inner.width())
        painter.drawText(inner, _RIGHT if to_the_right else _LEFT, shown)


class RunTableView(QTableView):
    """Rows are chosen by mouse and keys; Return and a double click open a run."""

    opened = Signal(str)
    chosen_changed = Signal()
    menu_wanted = Signal(QPoint)
    columns_wanted = Signal(QPoint)
    end_seen = Signal()
    """The last rows are on the screen, or nearly."""
    sorted = Signal()

    def __init__(self, model: RunTableModel) -> None:
        super().__init__(showGrid=False, wordWrap=False)
        self.setTabKeyNavigation(False)
        self.setAccessibleName("Runs")
        self._rows = model
        self._kept: list[str] = []
        self._quiet = False
        self.setModel(model)
        self.setItemDelegate(_Cells(model, self))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setDragDropOverwriteMode(False)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(_ROW)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionsClickable(True)
        header.setResizeContentsPrecision(_LOOKED_AT)
        header.sectionClicked.connect(self._sort_by)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(lambda at: self.columns_wanted.emit(header.mapToGlobal(at)))
        self.doubleClicked.connect(lambda index: self.opened.emit(model.run_id(index.row())))
        model.following.connect(self._follow)
        model.columns_changed.connect(self.fit_columns)
        theme.changed.connect(self.viewport().update)
        self.verticalScrollBar().valueChanged.connect(self.look)

    def look(self) -> None:
        """Tell when the end comes into sight."""
        bar = self.verticalScrollBar()
        if bar.value() + _NEARLY >= bar.maximum():
            self.end_seen.emit()

    def chosen_ids(self) -> list[str]:
        """The runs of the chosen rows from above."""
        places = sorted(index.row() for index in self.selectionModel().selectedRows())
        return [self._rows.run_id(place) for place in places]

    def select(self, run_ids: Iterable[str]) -> None:
        """Choose the rows of these runs, as far as they are there."""
        places = sorted(place for run_id in run_ids if (place := self._rows.place(run_id)) is not None)
        selection = QItemSelection()
        last = self._rows.columnCount() - 1
        for first, end in ranges(places):
            selection.select(self._rows.index(first, 0), self._rows.index(end, last))
        self.selectionModel().select(selection, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        if places:
            current = self._rows.index(places[0], 0)
            self.selectionModel().setCurrentIndex(current, QItemSelectionModel.SelectionFlag.NoUpdate)

    def fit_columns(self) -> None:
        """Give each column the room that its values need, within reason."""
        self.resizeColumnsToContents()
        for at in range(self._rows.columnCount()):
            # The arrow may come to any of them.
            self.setColumnWidth(at, max(_LEAST, min(_WIDEST, self.columnWidth(at) + _ARROW)))
        spare = self.viewport().width() - self.horizontalHeader().length()
        if spare > 0:
            self.setColumnWidth(0, self.columnWidth(0) + min(spare, _WIDEST))

    def show_sorting(self) -> None:
        """The arrow at the column that decides the order."""
        last = max(0, self._rows.columnCount() - 1)
        self._rows.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, last)

    def _sort_by(self, section: int) -> None:
        column, table = self._rows.table.columns[section], self._rows.table
        # Of numbers and dates the greatest is what is looked for first; of words the first letter.
        first = (column.number or column.key == "date") and column.key not in ("seed", "queue")
        descending = not table.descending if table.sorted_by == column.key else first
        order = Qt.SortOrder.DescendingOrder if descending else Qt.SortOrder.AscendingOrder
        self._rows.sort(section, order)
        self.sorted.emit()
        self.show_sorting()
        self.scrollToTop()

    def _follow(self, begins: bool) -> None:
        if begins:
            self._quiet = True
            self._kept = self.chosen_ids()
            return
        self.select(self._kept)
        self._quiet = False
        self.chosen_changed.emit()

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        super().selectionChanged(selected, deselected)
        if not self._quiet:
            self.chosen_changed.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self.opened.emit(self._rows.run_id(self.currentIndex().row()))
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if self.chosen_ids():
            self.menu_wanted.emit(event.globalPos())
