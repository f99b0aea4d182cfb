"""A part of a form that folds away to one line."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import label
from gym_gui.ui.widgets.elided import ElidedLabel


class Section(QWidget):
    """A heading that opens and closes what is under it; closed, it says what is set there.

    What is under it is made when it is opened for the first time: a form opens the sooner.
    """

    def __init__(self, title: str, make: Callable[[], QWidget]) -> None:
        super().__init__()
        self._make = make
        self.body: QWidget | None = None
        self.summary = ""
        self._head = QPushButton()
        self._head.setProperty("role", "fold")
        self._head.setCheckable(True)
        self._head.setAccessibleName(title)
        self._head.setCursor(Qt.CursorShape.PointingHandCursor)
        self._summary = ElidedLabel("", "help")
        self._summary.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._summary.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._arrow = label("▸", "help")
        row = QHBoxLayout(self._head)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACE[1])
        for part, stretch in ((label(title, "strong"), 0), (self._summary, 1), (self._arrow, 0)):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            row.addWidget(part, stretch)
        self._head.toggled.connect(self._toggle)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(self._head)

    def summarise(self, text: str) -> None:
        """What is set inside, for the closed heading."""
        self.summary = text
        self._summary.setText("" if self.is_open else text)
        self._head.setAccessibleDescription(text)

    @property
    def is_open(self) -> bool:
        return self._head.isChecked()

    def open(self, on: bool = True) -> None:
        self._head.setChecked(on)

    def _toggle(self, on: bool) -> None:
        if self.body is None:
            self.body = self._make()
            self._column.addWidget(self.body)
        self.body.setVisible(on)
        self._summary.setText("" if on else self.summary)
        self._arrow.setText("▾" if on else "▸")
