"""A session while it is played: the picture with its controls, and the values beside it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QListWidget, QListWidgetItem, QScrollArea, QVBoxLayout, QWidget

from gym_gui.theme import SPACE
from gym_gui.ui.presenters.play import Episode, PlayPresenter
from gym_gui.ui.widgets.basics import Card, card, label, restyle
from gym_gui.ui.widgets.play_actions import ActionPanel
from gym_gui.ui.widgets.play_controls import PlayControls
from gym_gui.ui.widgets.play_picture import PlayPicture
from gym_gui.ui.widgets.value_list import ValueList

_WIDE_SIDE, _NARROW_SIDE = 316, 268
_ROOMY = 820
"""From this width on there is room for the wide side."""
_EPISODE_HEIGHT = 44
_MOST_EPISODES = 4


class PlayStage(QWidget):
    """Shows what a presenter says."""

    seed_wanted = Signal(object)
    """An earlier episode was chosen, to be played again."""

    def __init__(self) -> None:
        super().__init__()
        self.picture = PlayPicture()
        self.controls = PlayControls()
        self.takeover = ActionPanel()
        self._sentence = label("", "dim", selectable=True, wraps=True)
        self._numbers, self._observation = ValueList(), ValueList()
        self._next = label("", "strong", selectable=True)
        self._episodes = QListWidget()
        self._episodes.setAccessibleName("Episodes played; enter plays one again")
        self._episodes.itemActivated.connect(
            lambda item: self.seed_wanted.emit(item.data(Qt.ItemDataRole.UserRole))
        )
        self._episodes.hide()
        self._listed: Episode | None = None
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACE[3])
        row.addWidget(self._left(), 1)
        self._side = self._right()
        row.addWidget(self._side)

    def _left(self) -> Card:
        box = card()
        box.column.setSpacing(SPACE[2])
        box.column.addWidget(self.picture, 1)
        box.column.addWidget(self._sentence)
        box.column.addWidget(self.controls)
        return box

    def _right(self) -> QScrollArea:
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE[2])
        actions = QWidget()
        both = QVBoxLayout(actions)
        both.setContentsMargins(0, 0, 0, 0)
        both.addWidget(self._next)
        both.addWidget(self.takeover)
        episodes = QWidget()
        listed = QVBoxLayout(episodes)
        listed.setContentsMargins(0, 0, 0, 0)
        listed.addWidget(self.controls.keep)
        listed.addWidget(self._episodes)
        for title, part in (
            ("This step", self._numbers),
            ("The policy's next action, or yours", actions),
            ("What it sees", self._observation),
            ("Episodes", episodes),
        ):
            box = card()
            box.column.addWidget(label(title, "label"))
            box.column.addWidget(part)
            column.addWidget(box)
        column.addStretch(1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFixedWidth(_WIDE_SIDE)
        area.setWidget(inside)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        return area

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._side.setFixedWidth(_WIDE_SIDE if self.width() >= _ROOMY else _NARROW_SIDE)

    def show_state(self, presenter: PlayPresenter) -> None:
        """Bring everything up to what is now."""
        text, role = presenter.sentence
        ended = presenter.phase == "ended"
        seen = presenter.seen
        if seen is not None:
            words = f"No picture: {seen.picture_problem}."
            self.picture.show_picture(seen.picture, words, text if ended else "")
        self._sentence.setText("" if ended else text)
        self._sentence.setVisible(bool(text) and not ended)
        restyle(self._sentence, role=role)
        self._numbers.show_rows(presenter.numbers())
        self._observation.show_rows(presenter.observation())
        self._next.setText(presenter.next_text())
        self.takeover.show_opinion(
            presenter.opinion(), presenter.next_action(), enabled=presenter.phase == "playing"
        )
        self.controls.show_state(presenter)
        self._list_episodes(presenter.episodes)

    def _list_episodes(self, episodes: list[Episode]) -> None:
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
