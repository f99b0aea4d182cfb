"""Choosing a file: from a list of what was found, by typing its name, or from the disk."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QLineEdit, QVBoxLayout, QWidget

from gym_gui.models.list_row import ListRow, matching
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import button, label
from gym_gui.ui.widgets.fields.field_box import FieldBox
from gym_gui.ui.widgets.fields.pick_list import PickList


class SourcePicker(QWidget):
    """`chosen` tells a path, name or id; who listens reads what is behind it and calls `show_chosen`.

    A row is chosen as soon as it is marked, so that what is marked is what will run.
    """

    chosen = Signal(str)

    def __init__(
        self, title: str, help_text: str, rows: Sequence[ListRow], empty: str, files: str, search: str
    ) -> None:
        """`empty` is said in place of a list without rows; `files` filters the dialog that opens a file."""
        super().__init__()
        self._rows, self._files = rows, files
        self._now = self._told = ""
        """What is chosen, and what was last told to be."""
        self.list = PickList(search)
        self.list.searched.connect(self._search)
        self.list.marked.connect(self._tell)
        self.list.chosen.connect(self._take_row)
        self.name = QLineEdit()
        self.name.editingFinished.connect(self.settle)
        self._field = FieldBox(title, self.name, help_text)
        self._help = help_text
        self._browse = button("Choose a file…")
        self._browse.clicked.connect(self._open_dialog)
        self._empty = label(empty, "dim", wraps=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE[1])
        column.addWidget(self._empty)
        column.addWidget(self.list, 1)
        column.addWidget(self._field)
        column.addWidget(self._browse)
        self._empty.setVisible(not rows)
        self.list.setVisible(bool(rows))
        self._search("")

    @property
    def empty_text(self) -> str:
        """What is said in place of the list; empty while there is one."""
        return "" if self._empty.isHidden() else self._empty.text()

    def show_chosen(self, key: str, named: str, problem: str = "") -> None:
        """What is chosen now, and why what was named cannot be; what is being typed stays as it is."""
        if not self.name.isModified() or (key and key != self._now):
            self.name.setText(named)
        self._now = key
        self._field.set_help(self._help, problem)
        self._search(self.list.search.text())

    def _search(self, text: str) -> None:
        # What was just named is marked while it is read, and when it cannot be.
        named = any(row.key == self._told for row in self._rows)
        self.list.show_rows(matching(self._rows, text), self._told if named else self._now)

    def _take_row(self, key: str) -> None:
        if key != self._told:
            self._tell(key)

    def settle(self) -> None:
        """Choose what was typed, if that was not done yet."""
        named = self.name.text().strip()
        if named and self.name.isModified() and named != self._told:
            self._tell(named)

    def _tell(self, named: str) -> None:
        self._told = named
        self.chosen.emit(named)

    def _open_dialog(self) -> None:
        dialog = QFileDialog(self, "Choose a file", "", self._files)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self._tell)
        # Not exec: the window goes on.
        dialog.open()
