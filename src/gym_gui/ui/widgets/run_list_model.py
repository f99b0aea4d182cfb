"""The run list for Qt: rows of a `Listing`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt, Signal

from gym_gui.models.filters import RunFilter
from gym_gui.models.listing import Listing
from gym_gui.models.run_rows import Row, Shape
from gym_gui.ui.widgets.basics import tip

_MOST_RANGES = 64
"""With more changes than this at once, all rows are read anew."""

Index = QModelIndex | QPersistentModelIndex


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
        self._move_to(new)
        self.following.emit(False)

    def _move_to(self, new: list[str]) -> None:
        staying = set(new)
        gone = list(ranges([at for at, key in enumerate(self._keys) if key not in staying]))
        before = self._places.keys()
        added = list(ranges([at for at, key in enumerate(new) if key not in before]))
        if len(gone) + len(added) > _MOST_RANGES:
            self.beginResetModel()
            self._keys = list(new)
            self._number()
            self.endResetModel()
            return
        for first, last in reversed(gone):
            self.beginRemoveRows(QModelIndex(), first, last)
            del self._keys[first : last + 1]
            self.endRemoveRows()
        for first, last in added:
            self.beginInsertRows(QModelIndex(), first, last)
            self._keys[first:first] = new[first : last + 1]
            self.endInsertRows()
        self._number()

    def _number(self) -> None:
        self._places = {key: at for at, key in enumerate(self._keys)}


def ranges(places: list[int]) -> Iterator[tuple[int, int]]:
    """Numbers in order as ranges: 1 2 3 7 → (1, 3) (7, 7)."""
    start = 0
    for at in range(1, len(places) + 1):
        if at == len(places) or places[at] != places[at - 1] + 1:
            yield places[start], places[at - 1]
            start = at
