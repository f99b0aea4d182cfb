"""What the runs are filtered by: a field for words and conditions, and the states with their counts."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QBoxLayout, QButtonGroup, QHBoxLayout, QLineEdit, QWidget

from gym_gui.models.filters import HINT, STATES, RunFilter
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import Button, button, restyle

_TYPING_MS = 150
_TOOLTIP = f"""{HINT}

Each must hold. = is exactly (with * for any letters), : has it in it; !=, >, >=, < and <= as usual.
Names: name, algo, env, tag, seed, state, notes, id, return, steps, speed, episodes, progress, duration, age,
priority, and every parameter. Numbers may be 10k or 2.5M, times 5min, 2h or 1d. Put "two words" in quotes."""


class RunFilterBar(QWidget):
    """The filter as a person sets it; `changed` comes a moment after the last letter."""

    changed = Signal()

    def __init__(self, in_a_row: bool = False) -> None:
        super().__init__()
        self.field = QLineEdit()
        self.field.setPlaceholderText("Filter: words, algo=ppo, return>400…")
        self.field.setToolTip(_TOOLTIP)
        self.field.setAccessibleName("Filter runs")
        self.field.setClearButtonEnabled(True)
        self._typing = QTimer(self, singleShot=True, interval=_TYPING_MS)
        self._typing.timeout.connect(self.apply)
        self.field.textChanged.connect(self._typing.start)
        self.chips: dict[str, Button] = {}
        chips = QHBoxLayout()
        chips.setSpacing(SPACE[0])
        group = QButtonGroup(self)
        for state in STATES:
            chip = button(state.capitalize(), role="chip")
            chip.setCheckable(True)
            chip.setChecked(state == "all")
            chip.clicked.connect(self.apply)
            group.addButton(chip)
            chips.addWidget(chip)
            self.chips[state] = chip
        chips.addStretch(1)
        direction = QBoxLayout.Direction.LeftToRight if in_a_row else QBoxLayout.Direction.TopToBottom
        self.row = QHBoxLayout()
        self.row.setSpacing(SPACE[1])
        self.row.addWidget(self.field, 1)
        whole = QBoxLayout(direction, self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(SPACE[2] if in_a_row else SPACE[1] + 2)
        whole.addLayout(self.row, 1)
        whole.addLayout(chips)

    @property
    def filter(self) -> RunFilter:
        state = next(state for state, chip in self.chips.items() if chip.isChecked())
        return RunFilter(state, self.field.text())

    def set_filter(self, wanted: RunFilter) -> None:
        """Show a filter, and apply it when it is another."""
        if wanted != self.filter:
            self.field.setText(wanted.text)
            self.chips[wanted.state].setChecked(True)
            self.apply()

    def apply(self) -> None:
        """Now, without waiting for more letters."""
        self._typing.stop()
        restyle(self.field, invalid="true" if self.filter.problem else "false")
        self.changed.emit()

    def show_counts(self, counts: Mapping[str, int]) -> None:
        for state, chip in self.chips.items():
            # Where there is none the word alone, and its neighbours have the room.
            chip.setText(f"{state.capitalize()} {counts[state]:,}" if counts[state] else state.capitalize())
