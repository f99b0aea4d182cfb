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
    """`chosen` tells a path, name or id; who listens reads what is behind it and calls `show_chosen`."""

    chosen = Signal(str)

    def __init__(
        self, title: str, help_text: str, rows: Sequence[ListRow], empty: str, files: str, search: str
    ) -> None:
        """`empty` is said in place of a list without rows; `files` filters the dialog that opens a file."""
        super().__init__()
        self._rows, self._files, self._now = rows, files, ""
        self.list = PickList(search)
        self.list.searched.connect(self._search)
        self.list.chosen.connect(self.chosen)
        self.name = QLineEdit()
        self.name.editingFinished.connect(self._typed)
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
        """What is chosen now, and why what was named cannot be."""
        self._now = key
        if self.name.text() != named:
            self.name.setText(named)
        self._field.set_help(self._help, problem)
        self._search(self.list.search.text())

    def _search(self, text: str) -> None:
        self.list.show_rows(matching(self._rows, text), self._now)

    def _typed(self) -> None:
        named = self.name.text().strip()
        if named and named != self._now:
            self.chosen.emit(named)

    def _open_dialog(self) -> None:
        dialog = QFileDialog(self, "Choose a file", "", self._files)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self.chosen)
        # Not exec: the window goes on.
        dialog.open()
