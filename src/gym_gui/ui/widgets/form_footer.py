"""The foot of a form: the result of the check, and what can be done."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QFrame, QHBoxLayout

from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import button, label, restyle
from gym_gui.ui.widgets.elided import ElidedLabel

_SUBMIT_KEY = "Ctrl+Return"


class FormFooter(QFrame):
    """State at the left, buttons at the right; the primary one says what will happen."""

    submit_wanted = Signal()
    check_wanted = Signal()
    copy_wanted = Signal()
    cancel_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("role", "bar-bottom")
        self._word = label("", "strong")
        self._text = ElidedLabel("", "dim")
        self.copy = button("Copy as command")
        self.check = button("Check only", "F5")
        self.cancel = button("Cancel", "Esc")
        self.submit = button("Train", _SUBMIT_KEY, "primary")
        # The window closes what lies over the runs with this key; two who listen to one key are none.
        self.cancel.setShortcut(QKeySequence())
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACE[4], SPACE[3], SPACE[4], SPACE[3])
        row.setSpacing(SPACE[1])
        row.addWidget(self._word)
        row.addWidget(self._text, 1)
        for made, wanted in (
            (self.copy, self.copy_wanted),
            (self.check, self.check_wanted),
            (self.cancel, self.cancel_wanted),
            (self.submit, self.submit_wanted),
        ):
            made.clicked.connect(wanted)
            row.addWidget(made)

    def tell(self, word: str, text: str, role: str) -> None:
        """The state in a word with its colour, and a line about it."""
        self._word.setText(word)
        self._word.setVisible(bool(word))
        restyle(self._word, role=role)
        self._text.setText(text)

    @property
    def told(self) -> str:
        return " ".join(filter(None, (self._word.text(), self._text.text())))

    def set_primary(self, text: str) -> None:
        if self.submit.text() != text:
            self.submit.setText(text)
            self.submit.updateGeometry()

    def set_busy(self, busy: bool) -> None:
        """Nothing but leaving can be done while an order is under way."""
        for made in (self.copy, self.check, self.submit):
            made.setEnabled(not busy)
