"""The top bar: what a person can start."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout

from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import Button, button, label, tip

HEIGHT = 48
_ROOMY = 1180
"""Narrower than this, only the two shortcuts used most stand in their buttons; the others in the tooltips."""


class Toolbar(QFrame):
    """Forms by purpose, training again, comparing and finding."""

    form_wanted = Signal(str)
    again_wanted = Signal()
    compare_wanted = Signal()
    find_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("role", "bar-top")
        self.setFixedHeight(HEIGHT)
        self.train = self._form_button("Train", "Ctrl+T", "train", "primary")
        self.again = self._plain("Train again", "Ctrl+Shift+T", self.again_wanted)
        self.again.setEnabled(False)
        self.policy = self._form_button("Evaluate policy", "Ctrl+E", "policy")
        self.resume = self._form_button("Resume", "Ctrl+R", "resume")
        self.script = self._form_button("Script", "Ctrl+J", "script")
        self.compare = self._plain("Compare", "Ctrl+D", self.compare_wanted)
        self.finding = self._plain("Find", "Ctrl+K", self.find_wanted)
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACE[3], 0, SPACE[3], 0)
        row.setSpacing(SPACE[1])
        row.addWidget(label("MOSAIC", "brand"))
        row.addSpacing(SPACE[3])
        for one in (self.train, self.again, self.policy, self.resume, self.script):
            row.addWidget(one)
        row.addStretch(1)
        row.addWidget(self.compare)
        row.addWidget(self.finding)
        self.set_chosen(0)

    def set_chosen(self, count: int) -> None:
        """How many runs the list has marked."""
        self.compare.setText(f"Compare {count} runs" if count > 1 else "Compare")
        self.compare.setEnabled(count > 1)
        self.compare.setToolTip(
            "Ctrl+D"
            if count > 1
            else "Choose several runs in the list with Ctrl or Shift, then compare them."
        )

    def set_again(self, what: str | None) -> None:
        """What would be trained again; None when there is nothing yet."""
        self.again.setEnabled(what is not None)
        self.again.setToolTip(tip(f"{what}, as it was the last time") if what else "Nothing was trained yet.")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        for one in (self.again, self.policy, self.resume, self.script, self.compare):
            one.set_compact(self.width() < _ROOMY)

    def _plain(self, text: str, shortcut: str, signal: object) -> Button:
        made = button(text, shortcut)
        made.clicked.connect(lambda: signal.emit())  # type: ignore[attr-defined]
        return made

    def _form_button(self, text: str, shortcut: str, purpose: str, role: str | None = None) -> Button:
        made = button(text, shortcut, role)
        made.clicked.connect(lambda: self.form_wanted.emit(purpose))
        return made
