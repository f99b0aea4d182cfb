"""Names and values under each other, the values aligned right in figures of one width."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from gym_gui.theme import SPACE, TEXT
from gym_gui.ui.presenters.play_values import Row
from gym_gui.ui.widgets.basics import NumberLabel, label


class ValueList(QWidget):
    """Rows that change in place, so that nothing moves while values do."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(SPACE[2])
        self._grid.setVerticalSpacing(SPACE[0])
        self._grid.setColumnStretch(1, 1)
        self._rows: list[tuple[QLabel, NumberLabel]] = []

    def show_rows(self, rows: Sequence[Row]) -> None:
        while len(self._rows) < len(rows):
            self._add()
        for place, (name, value) in enumerate(self._rows):
            shown = place < len(rows)
            name.setVisible(shown)
            value.setVisible(shown)
            if shown:
                name.setText(rows[place].name)
                value.setText(rows[place].value)

    def _add(self) -> None:
        name, value = label("", "dim"), NumberLabel("", TEXT, bold=False)
        value.setAlignment(Qt.AlignmentFlag.AlignRight)
        place = len(self._rows)
        self._grid.addWidget(name, place, 0)
        self._grid.addWidget(value, place, 1)
        self._rows.append((name, value))
