"""The tab in which a trained policy is played, step by step."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QProgressBar, QWidget

from gym_gui.context import Context
from gym_gui.models.run_files import PolicyChoice, RunFacts, policies_of
from gym_gui.services.play_session import Play
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.play import Command, PlayPresenter
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
    "See what the policy sees, the value it gives to it and what it does next, and take over its actions. "
    "Nothing is trained, and nothing is written."
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
        self._end = Button("End session", role="quiet", do=self.ended)
        hbox(self._names, self._best, 1, self._end, on=self, spacing=SPACE[2])
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


class PlayStart(QWidget):
    """A title, a sentence and the next step."""

    asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._title = label("", "title", wraps=True)
        self._text = label("", "dim", selectable=True, wraps=True)
        self._busy = QProgressBar()
        self._busy.setTextVisible(False)
        self.go = Button("Play this policy", role="primary", do=self.asked)
        # A column of its own gives wrapped text its height; aligned parts would get that of one line.
        middle = QWidget()
        middle.setFixedWidth(_WIDTH)
        column = vbox(self._title, self._text, self._busy, on=middle, spacing=SPACE[2])
        for part in (self._title, self._text):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.addWidget(self.go, 0, Qt.AlignmentFlag.AlignHCenter)
        # Not by an alignment, which asks for the height that the text has in the whole width.
        vbox(1, hbox(1, middle, 1), 2, on=self, margins=None)

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


class PlayView(RunView):
    """Picture, values and controls of one session, whose process ends with the visit to this tab."""

    title = "Play"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._play: Play | None = None
        self._past: Play | None = None
        """The session before, whose thread may still be about to end."""
        self._found: list[PolicyChoice] | None = None
        self.presenter = PlayPresenter()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.bar, self.start, self.stage = PolicyBar(), PlayStart(), PlayStage()
        self._pages = stacked(self.start, self.stage)
        vbox(self.bar, (self._pages, 1), on=self, margins=PAGE, spacing=SPACE[2])
        self._wire()
        self._show()

    def _wire(self) -> None:
        self.bar.changed.connect(self._reopen)
        self.bar.ended.connect(self._end_session)
        self.start.asked.connect(self._open)
        controls, actions = self.stage.controls, self.stage.takeover
        controls.stepped.connect(lambda: self._do(Command("step")))
        controls.ran.connect(self._run_or_pause)
        controls.begun.connect(self._begin)
        controls.speed_changed.connect(self._set_speed)
        controls.goes_on.connect(self._go_on)
        actions.chosen.connect(lambda action: self._do(Command("step", action)))
        actions.held.connect(self._hold)
        self.stage.seed_wanted.connect(self._begin)

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return facts.has_policy

    def show_run(self, run: RunRecord) -> None:
        self._end_session()
        self._run, self._found = run, None
        self.bar.set_policies(())
        if self._visible:
            self._look()
        self._show()

    def update_run(self, run: RunRecord) -> None:
        ended = run.ended and self._run is not None and not self._run.ended
        self._run = run
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
        self.leave()
        self._drop_past()

    @property
    def run_id(self) -> str | None:
        """The run whose policies can be played."""
        return None if self._run is None else self._run.run_id

    @property
    def session_pid(self) -> int | None:
        """The process that plays, if one does."""
        return None if self._play is None else self._play.pid

    def _look(self) -> None:
        """Find out which policies there are, beside the window."""
        run = self._run
        if run is not None:
            self.context.tasks.run(
                lambda: (run.run_id, policies_of(run)), self._take_policies, self._no_policies, owner=self
            )

    def _take_policies(self, answer: tuple[str, list[PolicyChoice]]) -> None:
        run_id, found = answer
        if not self.is_shown(run_id):
            return
        if found != self._found:
            self._found = found
            self.bar.set_policies(found)
        self._show()

    def _no_policies(self, error: Exception) -> None:
        self._found = []
        self.context.notifications.tell(str(error), "bad")
        self._show()

    def _open(self) -> None:
        policy = self.bar.chosen
        if policy is None or not self._visible:
            return
        self._end_session()
        self.presenter = PlayPresenter("loading")
        self._play = Play(
            policy.path,
            policy.folder,
            self.context.link.var,
            deterministic=self.bar.deterministic,
            seed=_FIRST_SEED,
        )
        self._play.arrived.connect(self._take_news)
        self._play.go_on(self.stage.controls.keep.isChecked())
        self._show()
        self.setFocus()

    def _reopen(self) -> None:
        """Another policy, or another way to choose actions, is another session."""
        if self._play is not None:
            self._open()

    def _end_session(self) -> None:
        if self._play is not None:
            self._play.arrived.disconnect(self._take_news)
            self._play.end()
            self._drop_past()
            self._past, self._play = self._play, None
            self.presenter = PlayPresenter()
            self._show()

    def _drop_past(self) -> None:
        """Let go of an ended session once its thread is gone: a QObject must not end in another thread."""
        if self._past is not None:
            self._past.close()
            self._past = None

    def _take_news(self) -> None:
        if self._play is None:
            return
        before = self.presenter.space
        for news in self._play.take():
            self.presenter.take(news)
        space = self.presenter.space
        if space is not None and space is not before:
            self.stage.takeover.set_space(space)
            self._play.set_speed(self.presenter.speed)
        self._show()

    def _begin(self, seed: int | None) -> None:
        if self._play is not None:
            self._play.reset(seed)
        self.setFocus()

    def _run_or_pause(self, running: bool) -> None:
        if self._play is not None:
            self._play.run(running)

    def _go_on(self, goes_on: bool) -> None:
        if self._play is not None:
            self._play.go_on(goes_on)

    def _hold(self, action: object) -> None:
        if self._play is not None:
            self._play.hold(action)

    def _set_speed(self, speed: int) -> None:
        self.presenter.speed = speed
        if self._play is not None:
            self._play.set_speed(speed)
        self._show()

    def _do(self, command: Command) -> None:
        if self._play is None:
            return
        if command.kind == "step":
            self._play.step(command.action)
        elif command.kind == "reset":
            self.stage.controls.begin()
        elif command.kind == "again":
            self._begin(self.presenter.seed)
        elif command.kind == "run":
            self._run_or_pause(not self.presenter.running)
        else:
            self._set_speed(self.presenter.change_speed(command.kind == "faster"))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = _KEYS.get(Qt.Key(event.key()), event.text().lower())
        command = self.presenter.command(key)
        if command is None:
            super().keyPressEvent(event)
        elif command.kind == "step" and command.action is not None:
            self.stage.takeover.take(command.action)
        else:
            self._do(command)

    def _show(self) -> None:
        presenter = self.presenter
        self._pages.setCurrentIndex(1 if presenter.open else 0)
        self.bar.show_state(self._play is not None)
        if presenter.open:
            self.stage.show_state(presenter)
        else:
            self.start.show_state(presenter, self._found)
