"""Which policy of a run is played, and how it chooses its actions."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QWidget

from gym_gui.models.policies import PolicyChoice
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import button


class PolicyBar(QWidget):
    """A line above the picture."""

    changed = Signal()
    """Another policy, or another way to choose actions, was asked for."""
    ended = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._found: tuple[PolicyChoice, ...] = ()
        self._names = QComboBox()
        self._names.setAccessibleName("Policy")
        self._names.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._names.activated.connect(self.changed)
        self._best = QCheckBox("Best actions")
        self._best.setChecked(True)
        self._best.setToolTip("Off: actions are drawn at random, as in training.")
        self._best.clicked.connect(self.changed)
        self._end = button("End session", role="quiet")
        self._end.clicked.connect(self.ended)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACE[2])
        row.addWidget(self._names)
        row.addWidget(self._best)
        row.addStretch(1)
        row.addWidget(self._end)
        self.set_policies(())

    @property
    def chosen(self) -> PolicyChoice | None:
        place = self._names.currentIndex()
        return self._found[place] if 0 <= place < len(self._found) else None

    @property
    def deterministic(self) -> bool:
        return self._best.isChecked()

    def set_policies(self, found: Sequence[PolicyChoice]) -> None:
        """Offer these; the one that was chosen stays so if it is among them."""
        before = self._names.currentData()
        self._found = tuple(found)
        self._names.clear()
        for choice in found:
            self._names.addItem(choice.text, choice.path)
        self._names.setCurrentIndex(max(0, self._names.findData(before)))
        self._names.setVisible(bool(found))
        self._best.setVisible(bool(found))

    def show_state(self, playing: bool) -> None:
        self._end.setVisible(playing)
