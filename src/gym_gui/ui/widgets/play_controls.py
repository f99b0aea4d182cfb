"""The buttons under the picture: step, run, speed, seed, new episode."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from gym_gui.theme import SPACE
from gym_gui.ui.presenters.play import SPEEDS, PlayPresenter
from gym_gui.ui.widgets.basics import button, label

_SEED_WIDTH = 100
_GREATEST_SEED = 2**32 - 1


class PlayControls(QWidget):
    """What a person can do besides taking an action."""

    stepped = Signal()
    ran = Signal(bool)
    begun = Signal(object)
    """A new episode with this seed; None: the next one."""
    speed_changed = Signal(int)
    goes_on = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self._seed_of_episode: int | None = None
        self._running = False
        self._step = _hinted("Step", "Space")
        self._step.clicked.connect(self.stepped)
        self._run = _hinted("Run", "R")
        self._run.clicked.connect(lambda: self.ran.emit(not self._running))
        self._new = _hinted("New episode", "N")
        self._new.clicked.connect(self.begin)
        self._again = _hinted("Again", "A")
        self._again.clicked.connect(lambda: self.begun.emit(self._seed_of_episode))
        self._speed = QComboBox()
        for speed in SPEEDS:
            self._speed.addItem(f"{speed} step{'s' if speed > 1 else ''}/s", speed)
        self._speed.setAccessibleName("Speed")
        self._speed.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._speed.activated.connect(lambda: self.speed_changed.emit(self._speed.currentData()))
        self._seed = QLineEdit()
        self._seed.setPlaceholderText("next seed")
        self._seed.setFixedWidth(_SEED_WIDTH)
        self._seed.setAccessibleName("Seed of the next episode")
        self._seed.returnPressed.connect(self.begin)
        self._again.setToolTip("The same episode from its start, with the same seed.")
        self.keep = QCheckBox("Begin the next one by itself")
        """Has its place with the episodes."""
        self.keep.toggled.connect(self.goes_on)
        self._lay_out()

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE[1])
        first, second = QHBoxLayout(), QHBoxLayout()
        for row, parts in (
            (first, (self._step, self._run, self._speed)),
            (second, (self._new, self._seed, self._again)),
        ):
            row.setSpacing(SPACE[1])
            for part in parts:
                row.addWidget(part)
            row.addStretch(1)
            column.addLayout(row)
        self._hint = label("", "faint")
        second.addWidget(self._hint)

    def begin(self) -> None:
        """A new episode with the seed in the field, or the next one when it is empty."""
        text = self._seed.text().strip().replace(",", "")
        if text and not (text.isdecimal() and int(text) <= _GREATEST_SEED):
            self._hint.setText(f"A seed is a whole number from 0 to {_GREATEST_SEED}.")
            return
        self._hint.setText("")
        self._seed.clear()
        self.begun.emit(int(text) if text else None)

    def set_seed(self, text: str) -> None:
        """Put a seed into the field, as if it were typed."""
        self._seed.setText(text)

    @property
    def complaint(self) -> str:
        """What is wrong with the seed."""
        return self._hint.text()

    @property
    def keeps_going(self) -> bool:
        """Whether the next episode is to begin by itself while it runs."""
        return self.keep.isChecked()

    def show_state(self, presenter: PlayPresenter) -> None:
        self._running = presenter.running
        self._seed_of_episode = presenter.seed
        self._run.setText("Pause" if presenter.running else "Run")
        place = self._speed.findData(presenter.speed)
        if place != self._speed.currentIndex():
            self._speed.setCurrentIndex(place)
        for part in (self._step, self._run, self._new, self._again):
            part.setEnabled(presenter.open)
        next_seed = "" if presenter.seed is None else f"next: {presenter.seed + 1}"
        self._seed.setPlaceholderText(next_seed or "next seed")


def _hinted(text: str, keys: str) -> QPushButton:
    """A button that shows its key. The view listens for keys, so that they reach nothing else."""
    made = button(text, keys)
    made.setShortcut(QKeySequence())
    made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return made
