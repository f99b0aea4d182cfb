"""Filters under names of the person's own, beside the field of the filter: the same as `mosaic filters`."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QPoint
from PySide6.QtWidgets import QLineEdit, QMenu

from gym_gui.models.filters import RunFilter
from gym_gui.services.tasks import Notifications, Tasks
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import Button, PassingCard, fill, hbox
from gym_gui.ui.widgets.run_panel import RunFilterBar
from mosaic.client.saved_filters import SavedFilter, SavedFilters


class NameCard(PassingCard):
    """What the filter is to be called."""

    def __init__(self) -> None:
        super().__init__(role="raised", margin=SPACE[1])
        self.name = QLineEdit()
        self.name.setAccessibleName("Name of the filter")
        self.name.setPlaceholderText("Its name")
        self.save = Button("Save", role="primary")
        row = hbox(margins=0)
        fill(row, (self.name, 1), self.save, Button("Discard", do=self.hide))
        self.column.addLayout(row)
        self.hide()


class SavedFilterMenu(QObject):
    """The star beside a filter: what was saved, saving what stands there now, and removing."""

    def __init__(
        self, bar: RunFilterBar, store: SavedFilters, tasks: Tasks, notifications: Notifications
    ) -> None:
        super().__init__(bar)
        self._bar, self._store, self._tasks, self._notifications = bar, store, tasks, notifications
        self.card = NameCard()
        self.card.name.returnPressed.connect(self._save)
        self.card.save.clicked.connect(self._save)
        bar.put_below(self.card)
        bar.star.clicked.connect(self._read)

    def _read(self) -> None:
        self._tasks.run(self._store.all, self.show_menu, owner=self)

    def show_menu(self, saved: Sequence[SavedFilter]) -> QMenu:
        """What can be done, with these filters."""
        menu = QMenu(self._bar)
        for one in saved:
            found = menu.addAction(f"{_plain(one.name)}\t{_plain(_told(one))}")
            found.triggered.connect(
                lambda _=False, one=one: self._bar.set_filter(RunFilter(one.state, one.text))
            )
        if not saved:
            menu.addAction("No filter is saved yet").setEnabled(False)
        menu.addSeparator()
        now = self._bar.filter
        keep = menu.addAction("Save this filter…")
        keep.setEnabled(now != RunFilter() and not now.problem)
        keep.triggered.connect(self._ask)
        if saved:
            gone = menu.addMenu("Remove")
            for one in saved:
                entry = gone.addAction(_plain(one.name))
                entry.triggered.connect(lambda _=False, name=one.name: self._remove(name))
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self._bar.star.mapToGlobal(QPoint(0, self._bar.star.height() + SPACE[0])))
        return menu

    def _ask(self) -> None:
        self.card.name.clear()
        self.card.show()
        self.card.name.setFocus()

    def _save(self) -> None:
        now = self._bar.filter
        wanted = SavedFilter(self.card.name.text(), now.text, now.state)

        def done(replaced: SavedFilter | None) -> None:
            self.card.hide()
            before = f" in place of {_told(replaced)}" if replaced is not None else ""
            self._notifications.tell(f"The filter {wanted.name.strip()} is saved{before}.", "good")

        self._tasks.run(lambda: self._store.save(wanted), done, owner=self)

    def _remove(self, name: str) -> None:
        def keep(one: SavedFilter) -> None:
            self._tasks.run(lambda: self._store.save(one), lambda _: None, owner=self)

        def done(gone: list[SavedFilter]) -> None:
            self._notifications.tell(f"The filter {name} is removed.", action=("Undo", lambda: keep(gone[0])))

        self._tasks.run(lambda: self._store.remove([name]), done, owner=self)


def _told(one: SavedFilter) -> str:
    """What a filter looks for."""
    return " ".join(filter(None, (one.state if one.state != "all" else "", one.text)))


def _plain(text: str) -> str:
    """A text in a menu, where & would mark a key and a tab begins the second column."""
    return text.replace("&", "&&").replace("\t", " ")
