"""What stands in place of the picture while nothing is played."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from gym_gui.models.policies import PolicyChoice
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.play import PlayPresenter
from gym_gui.ui.widgets.basics import button, label, restyle

_WIDTH = 460
_TITLES = {
    "start": "Step through what this run has learned",
    "loading": "Loading the policy",
    "failed": "The session has ended",
}
_START = (
    "See what the policy sees, what it expects and what it does next, and take over its actions. "
    "Nothing is trained, and nothing is written."
)


class PlayStart(QWidget):
    """A title, a sentence and the next step."""

    asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._title = label("", "title", wraps=True)
        self._text = label("", "dim", selectable=True, wraps=True)
        self._busy = QProgressBar()
        self._busy.setTextVisible(False)
        self.go = button("Play this policy", role="primary")
        self.go.clicked.connect(self.asked)
        # A column of its own gives wrapped text its height; aligned parts would get that of one line.
        middle = QWidget()
        middle.setFixedWidth(_WIDTH)
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE[2])
        for part in (self._title, self._text, self._busy):
            column.addWidget(part)
        for part in (self._title, self._text):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.addWidget(self.go, 0, Qt.AlignmentFlag.AlignHCenter)
        # Not by an alignment, which asks for the height that the text has in the whole width.
        across = QHBoxLayout()
        across.addStretch(1)
        across.addWidget(middle)
        across.addStretch(1)
        outer = QVBoxLayout(self)
        outer.addStretch(1)
        outer.addLayout(across)
        outer.addStretch(2)

    @property
    def text(self) -> str:
        return self._text.text()

    def show_state(self, presenter: PlayPresenter, found: Sequence[PolicyChoice] | None) -> None:
        """`found`: the policies there are; None while that is not known yet."""
        text, role = presenter.sentence
        if presenter.phase == "start":
            text, role = _START, "dim"
            if found is not None and not found:
                text = "This run has left no policy yet: wait for its first checkpoint."
        self._title.setText(_TITLES.get(presenter.phase, ""))
        self._text.setText(text)
        restyle(self._text, role=role)
        loading = presenter.phase == "loading"
        self._busy.setVisible(loading)
        # Without an end the bar moves by a timer of its own, which has no place in a hidden tab.
        self._busy.setRange(0, 0 if loading else 1)
        self.go.setVisible(not loading)
        self.go.setEnabled(bool(found))
        self.go.setText("Try again" if presenter.phase == "failed" else "Play this policy")
