"""The list of runs: moved through by mouse and keys, one shown and several chosen."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from PySide6.QtCore import (
    QAbstractItemModel,
    QAbstractListModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPoint,
    Qt,
    Signal,
)
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent, QResizeEvent

from gym_gui.models.filters import RunFilter
from gym_gui.models.listing import Listing, Row, Shape
from gym_gui.models.runs import RunBook
from gym_gui.services.sparklines import Sparklines, mean_curve
from gym_gui.services.tasks import timer
from gym_gui.ui.widgets.basics import Index, tip
from gym_gui.ui.widgets.run_rows import HEIGHTS, RowsView, RunDelegate

_MOST_RANGES = 64
"""With more changes than this at once, all rows are read anew."""
_NEARLY = 20
_LOOK_MS = 120
"""So long after the last scroll the curves of what is on the screen are asked for."""


class RunListModel(QAbstractListModel):
    """Thousands of rows, of which only those on the screen are ever put into words."""

    following = Signal(bool)
    """True before rows come and go, False when all of them are in place."""

    def __init__(self, listing: Listing) -> None:
        super().__init__()
        self.listing = listing
        self._keys: list[str] = list(listing.keys)
        self._places: dict[str, int] = {}
        self._number()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._keys)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self.row(index.row())
        if row is None:
            return None
        if role == Qt.ItemDataRole.UserRole:
            return row
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return ", ".join(
                filter(None, (row.title, row.about, row.state.word, row.detail, row.value, row.reason))
            )
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip(row.reason) or None
        return None

    def row(self, place: int) -> Row | None:
        return self.listing.row(self._keys[place]) if 0 <= place < len(self._keys) else None

    def shapes(self) -> list[Shape]:
        """How much room each row needs."""
        return [self.listing.shape(key) for key in self._keys]

    def place(self, key: str | None) -> int | None:
        """Where a row stands."""
        return self._places.get(key) if key is not None else None

    def set_filter(self, wanted: RunFilter) -> None:
        self.listing.set_filter(wanted)
        self._follow()

    def set_reach(self, last: str | None) -> None:
        self.listing.set_reach(last)
        self._follow()

    def look_again(self) -> None:
        self.listing.look_again()
        self._follow()

    def set_opened(self, key: str, opened: bool) -> None:
        self.listing.set_opened(key, opened)
        self._follow()
        self._tell([key])

    def update(self, groups: Iterable[str]) -> None:
        """These groups have news."""
        stale = self.listing.update(groups)
        self._follow()
        self._tell(stale)

    def redraw(self, run_ids: Iterable[str]) -> None:
        """Something beside the words has changed, such as a curve."""
        self._tell(key for run_id in run_ids if (key := self.listing.key_of(run_id)) is not None)

    def _tell(self, keys: Iterable[str]) -> None:
        """One signal for all: what lies between them is drawn again, as far as it is seen."""
        places = [place for key in keys if (place := self._places.get(key)) is not None]
        if places:
            self.dataChanged.emit(self.index(min(places)), self.index(max(places)))

    def _follow(self) -> None:
        """Make the rows those of the listing. Their order never changes: rows come and go, none is moved."""
        new = self.listing.keys
        if new == self._keys:
            return
        self.following.emit(True)
        if not follow_rows(self, self._keys, new):
            self.beginResetModel()
            self._keys[:] = new
            self.endResetModel()
        self._number()
        self.following.emit(False)

    def _number(self) -> None:
        self._places = {key: at for at, key in enumerate(self._keys)}


def follow_rows(model: QAbstractItemModel, rows: list[str], new: Sequence[str]) -> bool:
    """Make `rows`, those of a model, the new ones: some go, the rest is put in order, others come.

    False, with all as it was, when that is more than reading all rows anew.
    """
    staying, before, nowhere = set(new), set(rows), QModelIndex()
    gone = list(ranges([at for at, key in enumerate(rows) if key not in staying]))
    added = list(ranges([at for at, key in enumerate(new) if key not in before]))
    if len(gone) + len(added) > _MOST_RANGES:
        return False
    for first, last in reversed(gone):
        model.beginRemoveRows(nowhere, first, last)
        del rows[first : last + 1]
        model.endRemoveRows()
    kept = [key for key in new if key in before]
    if kept != rows:
        model.layoutAboutToBeChanged.emit()
        at = {key: place for place, key in enumerate(kept)}
        old = model.persistentIndexList()
        moved = [model.index(at[rows[index.row()]], index.column()) for index in old]
        rows[:] = kept
        model.changePersistentIndexList(old, moved)
        model.layoutChanged.emit()
    for first, last in added:
        model.beginInsertRows(nowhere, first, last)
        rows[first:first] = new[first : last + 1]
        model.endInsertRows()
    return True


def ranges(places: list[int]) -> Iterator[tuple[int, int]]:
    """Numbers in order as ranges: 1 2 3 7 → (1, 3) (7, 7)."""
    start = 0
    for at in range(1, len(places) + 1):
        if at == len(places) or places[at] != places[at - 1] + 1:
            yield places[start], places[at - 1]
            start = at


class RunList(RowsView):
    """Rows of a `RunListModel`. Only those on the screen are ever put into words."""

    chosen = Signal(str, bool)
    """The id of the run to show, and whether the others of its group are meant as well."""
    marked = Signal(object)
    """list[str], the ids of all chosen runs."""
    end_seen = Signal()
    """The last rows are on the screen, or nearly."""
    menu_wanted = Signal(QPoint)
    """Where it is to open, for the chosen runs."""

    def __init__(self, model: RunListModel, book: RunBook, sparklines: Sparklines) -> None:
        super().__init__()
        self._rows = model
        self._book = book
        self._sparklines = sparklines
        self._quiet = False
        self._current: str | None = None
        """The row that was chosen last; a filter may hide it, but takes no other in its place."""
        self._kept: list[str] = []
        self._delegate = RunDelegate(self._curve, self)
        self.setModel(model)
        self.setItemDelegate(self._delegate)
        self.setAccessibleName("Runs")
        self.setMinimumSize(200, 120)
        self._look = timer(self, _LOOK_MS, self.look, once=True)
        for signal in (model.modelReset, model.rowsInserted, model.rowsRemoved, model.dataChanged):
            signal.connect(self.measure)
        model.following.connect(self._follow)
        sparklines.changed.connect(model.redraw)
        self.measure()

    def heights(self) -> list[int]:
        return [HEIGHTS[shape] for shape in self._rows.shapes()]

    def measure(self) -> None:
        super().measure()
        self._look.start()

    def close_list(self) -> None:
        """Look for no more curves."""
        self._look.stop()

    def select(self, run_id: str) -> None:
        """Show this run as the chosen one, where the list has it."""
        self._current = self._rows.listing.key_of(run_id)
        place = self._rows.place(self._current)
        if place is not None:
            self._quiet = True
            only = QItemSelectionModel.SelectionFlag.ClearAndSelect
            self.selectionModel().setCurrentIndex(self._rows.index(place), only)
            self._quiet = False
            self.scrollTo(self._rows.index(place))
        self._tell_marked()

    def chosen_ids(self) -> list[str]:
        """The runs of all chosen rows, each once, in the order of the list."""
        return list(dict.fromkeys(run_id for row in self.chosen_rows() for run_id in row.run_ids))

    def chosen_rows(self) -> list[Row]:
        """The chosen rows from above."""
        places = sorted(index.row() for index in self.selectionModel().selectedIndexes())
        return list(filter(None, map(self._rows.row, places)))

    def beside(self, run_ids: Container[str]) -> str | None:
        """The run to show when these are gone: of the next row that stays, else of the one before."""
        start = self._rows.place(self._current) or 0
        for place in (*range(start, self._rows.rowCount()), *range(start - 1, -1, -1)):
            row = self._rows.row(place)
            staying = [run_id for run_id in row.run_ids if run_id not in run_ids] if row is not None else []
            if staying:
                return staying[0]
        return None

    def _follow(self, begins: bool) -> None:
        """Rows come and go: what was chosen stays so, as far as it is still there, and nothing else is."""
        if begins:
            self._quiet = True
            self._kept = [row.key for row in self.chosen_rows()]
            return
        chosen = self.selectionModel()
        places = [place for key in self._kept if (place := self._rows.place(key)) is not None]
        group, _, run_id = (self._current or "").partition("/")
        closed = self._rows.place(self._current) is None and self._rows.place(group) is not None
        if closed:
            self._current = group
        current = self._rows.place(self._current)
        flag = QItemSelectionModel.SelectionFlag
        index = QModelIndex() if current is None else self._rows.index(current)
        chosen.setCurrentIndex(index, flag.NoUpdate)
        chosen.clearSelection()
        for place in places or ([] if current is None else [current]):
            chosen.select(self._rows.index(place), flag.Select)
        self._quiet = False
        self._tell_marked()
        if closed:
            self.chosen.emit(run_id, True)

    def _tell_marked(self) -> None:
        self.marked.emit(self.chosen_ids())

    def look(self) -> None:
        """Ask for the curves of the rows on the screen."""
        rows = filter(None, map(self._rows.row, self.seen()))
        runs = [self._book.get(run_id) for row in rows for run_id in row.run_ids]
        self._sparklines.request(run for run in runs if run is not None)
        if self.seen().stop + _NEARLY >= self._rows.rowCount():
            self.end_seen.emit()

    def _curve(self, row: Row) -> list[float]:
        curves = [self._sparklines.curve(run_id) for run_id in row.run_ids]
        return curves[0] if len(curves) == 1 else mean_curve(curves)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        super().scrollContentsBy(dx, dy)
        self._look.start()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._look.start()

    def currentChanged(self, current: Index, previous: Index) -> None:
        super().currentChanged(current, previous)
        row = self._rows.row(current.row()) if current.isValid() else None
        if row is None or self._quiet:
            return
        self.scrollTo(current)
        self._current = row.key
        self.chosen.emit(row.run_id, not row.child)

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        super().selectionChanged(selected, deselected)
        if not self._quiet:
            self._tell_marked()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self.indexAt(event.position().toPoint())
        row = self._rows.row(index.row()) if index.isValid() else None
        if row is not None and row.opened is not None:
            area = self.visualRect(index)
            if self._delegate.opener(row, area).contains(event.position().toPoint()):
                self._rows.set_opened(row.key, not row.opened)
                return
        plain = event.modifiers() == Qt.KeyboardModifier.NoModifier
        if row is not None and row.key == self._current and plain:
            # One of its runs may be shown that has no row of its own: back to what the row stands for.
            self.chosen.emit(row.run_id, not row.child)
        super().mousePressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if self.chosen_rows():
            self.menu_wanted.emit(event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        row = self._rows.row(self.currentIndex().row()) if self.currentIndex().isValid() else None
        if row is not None and row.opened is not None and key in (Qt.Key.Key_Right, Qt.Key.Key_Left):
            self._rows.set_opened(row.key, key == Qt.Key.Key_Right)
            return
        super().keyPressEvent(event)
