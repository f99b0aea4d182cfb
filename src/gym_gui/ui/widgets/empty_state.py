"""What stands in the middle when there is no run to show: where things are, and the next step."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gym_gui.theme import SPACE
from gym_gui.ui.presenters.empty import EmptyWords
from gym_gui.ui.widgets.basics import button, label

_WIDTH = 460


class EmptyState(QWidget):
    """A title, a few sentences and at most two buttons."""

    first_run_wanted = Signal()
    form_wanted = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.title = label("", "title", wraps=True)
        self.text = label("", "dim", selectable=True, wraps=True)
        self.go = button("Train CartPole", role="primary")
        self.go.clicked.connect(self.first_run_wanted)
        self.choose = button("Choose what to train")
        self.choose.clicked.connect(lambda: self.form_wanted.emit("train"))
        buttons = QHBoxLayout()
        buttons.setSpacing(SPACE[1])
        buttons.addWidget(self.go)
        buttons.addWidget(self.choose)
        buttons.addStretch(1)
        inner = QWidget()
        inner.setFixedWidth(_WIDTH)
        column = QVBoxLayout(inner)
        column.setSpacing(SPACE[2])
        column.addWidget(self.title)
        column.addWidget(self.text)
        column.addSpacing(SPACE[0])
        column.addLayout(buttons)
        across = QHBoxLayout()
        across.addStretch(1)
        across.addWidget(inner)
        across.addStretch(1)
        outer = QVBoxLayout(self)
        outer.addStretch(2)
        outer.addLayout(across)
        outer.addStretch(3)

    def show_words(self, told: EmptyWords) -> None:
        self.title.setText(told.title)
        self.text.setText(told.text)
        self.go.setVisible(told.can_train)
        self.choose.setVisible(told.can_train)

    def set_busy(self, busy: bool) -> None:
        """The first run is on its way."""
        self.go.setEnabled(not busy)
        self.go.setText("Starting…" if busy else "Train CartPole")
