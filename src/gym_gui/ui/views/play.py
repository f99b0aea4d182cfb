"""The tab in which a trained policy is played, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QProgressBar, QWidget

from gym_gui.context import Context
from gym_gui.models.run_files import PolicyChoice, RunFacts, policies_of
from gym_gui.services.play_session import Play
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.play import PlayPresenter
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.basics import PAGE, Button, hbox, label, restyle, stacked, vbox
from gym_gui.ui.widgets.play_stage import PlayStage
from mosaic.client import RunRecord

_WIDTH = 460
_TITLES = {
    "start": "Step through what this run has learned",
    "loading": "Loading the policy",
    "failed": "The session has ended",
}
_START = (
    "See what the policy observes, the value it expects and what it does next, and override its actions. "
    "Nothing is trained or written."
)
_KEYS = {
    Qt.Key.Key_Left: "left",
    Qt.Key.Key_Right: "right",
    Qt.Key.Key_Up: "up",
    Qt.Key.Key_Down: "down",
    Qt.Key.Key_Space: "space",
}
_FIRST_SEED = 1
"""Of the first episode of every session, so that one looks like the other."""


class PlayStart(QWidget):
    """A title, a sentence and the next step."""

    asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._title = label("", "title", wraps=True)
        self.text = label("", "dim", selectable=True, wraps=True)
        self._busy = QProgressBar()
        self._busy.setTextVisible(False)
        self.go = Button("Play this policy", role="primary", do=self.asked)
        # A column of its own gives wrapped text its height; aligned parts would get that of one line.
        middle = QWidget()
        middle.setFixedWidth(_WIDTH)
        column = vbox(self._title, self.text, self._busy, on=middle, spacing=SPACE[2])
        for part in (self._title, self.text):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.addWidget(self.go, 0, Qt.AlignmentFlag.AlignHCenter)
        # Not by an alignment, which asks for the height that the text has in the whole width.
        vbox(1, hbox(1, middle, 1), 2, on=self, margins=None)

    def show_state(self, presenter: PlayPresenter, found: Sequence[PolicyChoice] | None) -> None:
        """`found`: the policies there are; None while that is not known yet."""
        text, role = presenter.sentence
        if presenter.phase == "start":
            text, role = _START, "dim"
            if found is not None and not found:
                text = "This run has left no policy yet: wait for its first checkpoint."
        self._title.setText(_TITLES.get(presenter.phase, ""))
        self.text.setText(text)
        restyle(self.text, role=role)
        loading = presenter.phase == "loading"
        self._busy.setVisible(loading)
        # Without an end the bar moves by a timer of its own, which has no place in a hidden tab.
        self._busy.setRange(0, 0 if loading else 1)
        self.go.setVisible(not loading)
        self.go.setEnabled(bool(found))
        self.go.setText("Try again" if presenter.phase == "failed" else "Play this policy")


class PlayView(RunView):
    """Picture, values and controls of one session, whose process ends with the visit to this tab."""

    title = "Play"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.play: Play | None = None
        self._past: Play | None = None
        """The session before, whose thread may still be about to end."""
        self._found: list[PolicyChoice] | None = None
        self.presenter = PlayPresenter()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.start, self.stage = PlayStart(), PlayStage()
        self._pages = stacked(self.start, self.stage)
        vbox(self._make_bar(), (self._pages, 1), on=self, margins=PAGE, spacing=SPACE[2])
        self._wire()
        self._offer(None)

    def _make_bar(self) -> QHBoxLayout:
        self._policies = QComboBox()
        self._policies.setAccessibleName("Policy")
        self._policies.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._policies.activated.connect(self._reopen)
        self._best = QCheckBox("Best actions")
        self._best.setChecked(True)
        self._best.setToolTip("Off: actions are sampled, as in training.")
        self._best.clicked.connect(self._reopen)
        self._end = Button("End session", role="quiet", do=self._end_session)
        return hbox(self._policies, self._best, 1, self._end, spacing=SPACE[2])

    def _wire(self) -> None:
        self.start.asked.connect(self._open)
        controls, actions = self.stage.controls, self.stage.takeover
        controls.stepped.connect(lambda: self._ask(Play.step))
        controls.ran.connect(lambda running: self._ask(Play.run, running))
        controls.begun.connect(self._begin)
        controls.speed_changed.connect(self._set_speed)
        controls.goes_on.connect(lambda goes_on: self._ask(Play.go_on, goes_on))
        actions.chosen.connect(lambda action: self._ask(Play.step, action))
        actions.held.connect(lambda action: self._ask(Play.hold, action))
        self.stage.seed_wanted.connect(self._begin)

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return facts.has_policy

    def show_run(self, run: RunRecord) -> None:
        super().show_run(run)
        self._end_session()
        self._offer(None)

    def update_run(self, run: RunRecord) -> None:
        ended = run.ended and not self.run.ended
        super().update_run(run)
        if ended and self._visible:
            self._look()

    def enter(self) -> None:
        super().enter()
        self._look()
        self.setFocus()

    def leave(self) -> None:
        super().leave()
        self._end_session()

    def close_view(self) -> None:
        super().close_view()
        self._drop_past()

    def _look(self) -> None:
        """Find out which policies there are, beside the window."""
        self.read(policies_of, self._offer, self._no_policies)

    def _offer(self, found: list[PolicyChoice] | None) -> None:
        """Offer these; the one that was chosen stays so if it is among them."""
        if found != self._found or found is None:
            before = self._policies.currentData()
            self._found = found
            self._policies.clear()
            for choice in found or ():
                self._policies.addItem(choice.text, choice.path)
            self._policies.setCurrentIndex(max(0, self._policies.findData(before)))
            self._policies.setVisible(bool(found))
            self._best.setVisible(bool(found))
        self._show()

    def _no_policies(self, error: Exception) -> None:
        self.context.notifications.tell(str(error), "bad")
        self._offer([])

    def _open(self) -> None:
        if not self._found or not self._visible:
            return
        policy = self._found[self._policies.currentIndex()]
        self._end_session()
        self.presenter = PlayPresenter("loading")
        var, best = self.context.link.var, self._best.isChecked()
        self.play = Play(policy.path, policy.folder, var, deterministic=best, seed=_FIRST_SEED)
        self.play.arrived.connect(self._take_news)
        self.play.go_on(self.stage.controls.keep.isChecked())
        self._show()
        self.setFocus()

    def _reopen(self) -> None:
        """Another policy, or another way to choose actions, is another session."""
        if self.play is not None:
            self._open()

    def _end_session(self) -> None:
        if self.play is not None:
            self.play.arrived.disconnect(self._take_news)
            self.play.end()
            self._drop_past()
            self._past, self.play = self.play, None
            self.presenter = PlayPresenter()
            self._show()

    def _drop_past(self) -> None:
        """Let go of an ended session once its thread is gone: a QObject must not end in another thread."""
        if self._past is not None:
            self._past.close()
            self._past = None

    def _take_news(self) -> None:
        if self.play is None:
            return
        before = self.presenter.space
        for news in self.play.take():
            self.presenter.take(news)
        space = self.presenter.space
        if space is not None and space is not before:
            self.stage.takeover.set_space(space)
            self.play.set_speed(self.presenter.speed)
        self._show()

    def _ask(self, order: Callable[..., None], *values: object) -> None:
        """Ask the session for something, while there is one."""
        if self.play is not None:
            order(self.play, *values)

    def _begin(self, seed: int | None) -> None:
        self._ask(Play.reset, seed)
        self.setFocus()

    def _set_speed(self, speed: int) -> None:
        self.presenter.speed = speed
        self._ask(Play.set_speed, speed)
        self._show()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        command = self.presenter.command(_KEYS.get(Qt.Key(event.key()), event.text().lower()))
        if command is None:
            super().keyPressEvent(event)
        elif command.kind == "step" and command.action is not None:
            self.stage.takeover.take(command.action)
        elif command.kind == "step":
            self._ask(Play.step)
        elif command.kind == "reset":
            self.stage.controls.begin()
        elif command.kind == "again":
            self._begin(self.presenter.seed)
        elif command.kind == "run":
            self._ask(Play.run, not self.presenter.running)
        else:
            self._set_speed(self.presenter.change_speed(command.kind == "faster"))

    def _show(self) -> None:
        presenter = self.presenter
        self._pages.setCurrentIndex(1 if presenter.open else 0)
        self._end.setVisible(self.play is not None)
        if presenter.open:
            self.stage.show_state(presenter)
        else:
            self.start.show_state(presenter, self._found)
