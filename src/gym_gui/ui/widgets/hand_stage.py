"""Playing by hand: what is chosen before, and an environment while it is played."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QListWidget, QListWidgetItem, QWidget

from gym_gui.models.form_choices import EnvironmentList
from gym_gui.models.form_state import Field, FormState
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.play_by_hand import TIMES, HandPresenter
from gym_gui.ui.widgets.basics import Button, Card, column_of, hbox, label, named, restyle, scrolled, vbox
from gym_gui.ui.widgets.fields.layouts import FactList
from gym_gui.ui.widgets.fields.pickers import EnvironmentField
from gym_gui.ui.widgets.fields.state_field import StateField
from gym_gui.ui.widgets.form_install import InstallCard
from gym_gui.ui.widgets.key_legend import KeyLegend
from gym_gui.ui.widgets.play_stage import PlayPicture
from mosaic.contract.outside import parse_json

_GREATEST_SEED = 2**32 - 1
_FIRST = "LunarLander-v3"
_WIDTH = 460
_SIDE = 316
_EPISODE_HEIGHT, _MOST_EPISODES = 44, 4
_ABOUT = (
    "You play, without a policy: hold keys down, several at once if you like. What you play can be recorded, "
    "as a video and as a trajectory."
)


class HandStart(QWidget):
    """Which environment is played, with what arguments and from which seed."""

    asked = Signal()

    def __init__(self, environments: Callable[[], EnvironmentList]) -> None:
        super().__init__()
        self.state = FormState(
            [
                Field("env_id", default=_FIRST, label="Environment"),
                Field.maybe("env_kwargs", "json", "a JSON object", "Arguments", "none"),
                Field.maybe("seed", "int", "of the first episode", "Seed", "any", 0, _GREATEST_SEED),
            ]
        )
        self._environments = environments
        self._title = label("Play by hand", "title", wraps=True)
        self.text = label(_ABOUT, "dim", selectable=True, wraps=True)
        self.environment = EnvironmentField(self.state, "env_id", environments)
        # A person can try them all.
        self.environment.picker.everything.hide()
        self.arguments, self.seed = StateField(self.state, "env_kwargs"), StateField(self.state, "seed")
        self.install = InstallCard(self)
        self.go = Button("Play", "Ctrl+Return", "primary", do=self.asked)
        middle = QWidget()
        middle.setFixedWidth(_WIDTH)
        fields = hbox((self.arguments, 2), (self.seed, 1), spacing=SPACE[2])
        parts = (self._title, self.text, self.environment, self.install, fields)
        column = vbox(*parts, on=middle, spacing=SPACE[2])
        for part in (self._title, self.text):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.addWidget(self.go, 0, Qt.AlignmentFlag.AlignHCenter)
        vbox(1, hbox(1, middle, 1), 2, on=self, margins=None)

    @property
    def env_id(self) -> str:
        return self.state.said("env_id")

    def problem(self) -> str:
        """What is wrong with what was typed; empty for nothing."""
        if not self.env_id:
            return "No environment is named: choose one."
        return next(iter(self.state.problems()), "")

    def kwargs(self) -> dict[str, Any] | None:
        """The arguments of the environment; None for none."""
        text = self.state.said("env_kwargs")
        return dict(parse_json(text)) if text else None

    def show_state(self, presenter: HandPresenter) -> None:
        text, role = presenter.sentence
        loading = presenter.phase == "loading"
        self._title.setText(presenter.title)
        self.text.setText(text or _ABOUT)
        restyle(self.text, role=role if text else "dim")
        choice = self._environments().find(self.env_id)
        self.environment.refresh(choice.about if choice else "")
        for part in (self.environment, self.arguments, self.seed):
            part.setEnabled(not loading)
        # Before it is known what there is, a search would find nothing.
        self.environment.setEnabled(not loading and bool(self._environments().choices))
        self.go.setEnabled(not loading and not self.problem())
        self.go.setText("Loading…" if loading else "Play")


class HandStage(QWidget):
    """An environment while it is played."""

    seed_wanted = Signal(object)
    """An earlier episode was chosen, to be played again."""

    def __init__(self) -> None:
        super().__init__()
        self.picture = PlayPicture()
        self.legend = KeyLegend()
        self._sentence = label("", "dim", selectable=True, wraps=True)
        self._mission = label("", "strong", selectable=True, wraps=True)
        self._numbers, self._observation = FactList(numbers=True), FactList(numbers=True)
        self._summary = label("", "dim", selectable=True, wraps=True)
        self._episodes = named(QListWidget(), "Episodes played; enter plays one again")
        self._episodes.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._episodes.itemActivated.connect(
            lambda item: self.seed_wanted.emit(item.data(Qt.ItemDataRole.UserRole))
        )
        self._episodes.hide()
        self._listed: object = None
        self.controls = HandControls()
        self._shows = Card(label("What it shows", "label"), self._observation)
        cards = (
            Card(label("Keys", "label"), self.legend),
            Card(label("This episode", "label"), self._numbers),
            Card(label("Episodes", "label"), self._summary, self._episodes),
            self._shows,
        )
        side = scrolled(column_of(*cards, 1, spacing=SPACE[2]))
        side.setFixedWidth(_SIDE)
        side.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        left = Card((self.picture, 1), self._mission, self._sentence, self.controls, spacing=SPACE[2])
        hbox((left, 1), side, on=self, spacing=SPACE[3])

    def show_state(self, presenter: HandPresenter) -> None:
        """Bring everything up to what is now."""
        text, role = presenter.sentence
        ending = presenter.ending
        seen = presenter.seen
        if seen is not None:
            self.picture.show_picture(seen.picture, f"No picture: {seen.picture_problem}.", ending)
        self._sentence.setText(" " if ending else text or " ")
        restyle(self._sentence, role=role)
        self._mission.setText(presenter.mission)
        self._mission.setVisible(bool(presenter.mission))
        self._numbers.show_facts(presenter.numbers())
        shown = presenter.observation()
        self._observation.show_facts(shown)
        self._shows.setVisible(bool(shown))
        self._summary.setText(presenter.summary())
        self.controls.show_state(presenter)
        self._list_episodes(presenter)

    def _list_episodes(self, presenter: HandPresenter) -> None:
        episodes = presenter.episodes
        newest = episodes[0] if episodes else None
        if newest is self._listed:
            return
        self._listed = newest
        self._episodes.clear()
        self._episodes.setVisible(bool(episodes))
        self._episodes.setFixedHeight(_EPISODE_HEIGHT * min(len(episodes), _MOST_EPISODES))
        for episode in episodes:
            item = QListWidgetItem(f"{episode.number}  ·  seed {episode.seed}\n{episode.text}")
            item.setData(Qt.ItemDataRole.UserRole, episode.seed)
            self._episodes.addItem(item)


class HandControls(QWidget):
    """What a person can do besides acting."""

    asked = Signal(str)
    """The name of a command."""
    time_chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.pause = self._button("Pause", "P", "pause")
        self._step = self._button("One step", ".", "step")
        self._new = self._button("New episode", "N", "new")
        self._again = self._button("Again", "B", "again")
        self._again.setToolTip("The same episode from its start, with the same seed.")
        self._slower, self._faster = (
            self._button("Slower", "-", "slower"),
            self._button("Faster", "+", "faster"),
        )
        self._speed = label("", "dim")
        self.times = named(QComboBox(), "How time passes")
        self.times.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        for name, text in TIMES.items():
            self.times.addItem(text, name)
        self.times.setToolTip("T")
        self.times.activated.connect(lambda: self.time_chosen.emit(self.times.currentData()))
        first = hbox(self.pause, self._step, self._new, self._again, 1)
        vbox(first, hbox(self.times, self._slower, self._faster, self._speed, 1), on=self)

    def _button(self, text: str, keys: str, command: str) -> Button:
        """A button that shows its key, for which the page listens."""
        made = Button(text, keys, do=lambda: self.asked.emit(command), listens=False)
        made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return made

    def show_state(self, presenter: HandPresenter) -> None:
        real = presenter.time == "runs"
        self.pause.setText("Pause" if presenter.running else "Go on")
        self.pause.setVisible(real)
        self.pause.setEnabled(presenter.phase == "playing")
        self._step.setEnabled(presenter.phase == "playing")
        turns = presenter.time == "turns"
        for part in (self._slower, self._faster, self._speed):
            part.setVisible(not turns)
        self._speed.setText(presenter.speed_text())
        self.times.setCurrentIndex(self.times.findData(presenter.time))
