"""Names and values in two columns, to be read and selected."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import label


class FactList(QWidget):
    """Rows of name and value; built anew only when they change."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[tuple[str, str]] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, SPACE[2])
        self._grid.setHorizontalSpacing(SPACE[3])
        self._grid.setVerticalSpacing(SPACE[0])
        self._grid.setColumnStretch(1, 1)

    def show_facts(self, facts: Sequence[tuple[str, str]]) -> None:
        if list(facts) == self._shown:
            return
        self._shown = list(facts)
        while (item := self._grid.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for row, (name, value) in enumerate(facts):
            self._grid.addWidget(label(name, "label"), row, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(label(value, selectable=True, wraps=True), row, 1)
