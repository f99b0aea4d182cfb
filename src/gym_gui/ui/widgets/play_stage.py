"""A session while it is played: the picture with its controls, and the values beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QListWidget, QListWidgetItem, QWidget

from gym_gui.services.tasks import Doing
from gym_gui.theme import SPACE, theme
from gym_gui.ui.presenters.play import SPEEDS, Episode, PlayPresenter
from gym_gui.ui.widgets.basics import Button, Card, column_of, hbox, label, named, restyle, scrolled, vbox
from gym_gui.ui.widgets.fields.layouts import FactList
from gym_gui.ui.widgets.frame_view import FrameView
from gym_gui.ui.widgets.play_actions import ActionPanel

_CORNER = 6
_RIBBON = 44
_SEED_WIDTH = 100
_GREATEST_SEED = 2**32 - 1
_WIDE_SIDE, _NARROW_SIDE = 316, 268
_ROOMY = 820
"""From this width on there is room for the wide side."""
_EPISODE_HEIGHT = 44
_MOST_EPISODES = 4


class PlayPicture(FrameView):
    """One picture at any size; words where there is none."""

    def __init__(self) -> None:
        super().__init__()
        self._pixels: Any = None
        self._number = 0
        self._words = ""
        self._ribbon = ""
        self.setMinimumSize(240, 180)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(600, 420)

    def show_picture(self, pixels: Any, words: str, ribbon: str) -> None:
        """Pixels (height, width, 3) or None, the words in place of them, and the ribbon's words."""
        if pixels is None:
            self.clear()
        elif pixels is not self._pixels:
            self._number += 1
            self.show_pictures([((0, self._number), np.ascontiguousarray(pixels))])
        self._pixels = pixels
        if (words, ribbon) != (self._words, self._ribbon):
            self._words, self._ribbon = words, ribbon
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect())
        if self.count:
            (area,) = self.places()
        else:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.palette.colour("raised"))
            painter.drawRoundedRect(area, _CORNER, _CORNER)
            painter.setPen(theme.palette.colour("dim"))
            inner = area.adjusted(SPACE[4], SPACE[4], -SPACE[4], -SPACE[4])
            painter.drawText(inner, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self._words)
        if self._ribbon:
            self._paint_ribbon(painter, area)
        painter.end()

    def _paint_ribbon(self, painter: QPainter, area: QRectF) -> None:
        strip = QRectF(area.left(), area.bottom() - _RIBBON, area.width(), _RIBBON)
        painter.fillRect(strip, theme.palette.colour("panel", 0.94))
        painter.fillRect(QRectF(strip.left(), strip.top(), strip.width(), 2), theme.palette.colour("good"))
        painter.setPen(theme.palette.colour("text"))
        inner = strip.adjusted(SPACE[2], 0, -SPACE[2], 0)
        words = painter.fontMetrics().elidedText(
            self._ribbon, Qt.TextElideMode.ElideRight, int(inner.width())
        )
        painter.drawText(inner, Qt.AlignmentFlag.AlignCenter, words)


class PlayControls(QWidget):
    """What a person can do besides taking an action."""

    stepped = Signal()
    ran = Signal(bool)
    begun = Signal(object)
    """A new episode with this seed; None: the next one."""
    speed_changed = Signal(int)
    goes_on = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self._seed_of_episode: int | None = None
        self._running = False
        self._step = _hinted("Step", "Space", self.stepped)
        self._run = _hinted("Run", "R", lambda: self.ran.emit(not self._running))
        self._new = _hinted("New episode", "N", self.begin)
        self._again = _hinted("Again", "A", lambda: self.begun.emit(self._seed_of_episode))
        self._speed = named(QComboBox(), "Speed")
        for speed in SPEEDS:
            self._speed.addItem(f"{speed} step{'s' if speed > 1 else ''}/s", speed)
        self._speed.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._speed.activated.connect(lambda: self.speed_changed.emit(self._speed.currentData()))
        self.seed = named(QLineEdit(placeholderText="next seed"), "Seed of the next episode")
        self.seed.setFixedWidth(_SEED_WIDTH)
        self.seed.returnPressed.connect(self.begin)
        self._again.setToolTip("The same episode from its start, with the same seed.")
        self.keep = QCheckBox("Start the next one by itself")
        """Has its place with the episodes."""
        self.keep.toggled.connect(self.goes_on)
        self.complaint = label("", "faint")
        """What is wrong with the seed."""
        first = hbox(self._step, self._run, self._speed, 1)
        vbox(first, hbox(self._new, self.seed, self._again, 1, self.complaint), on=self)

    def begin(self) -> None:
        """A new episode with the seed in the field, or the next one when it is empty."""
        text = self.seed.text().strip().replace(",", "")
        if text and not (text.isdecimal() and int(text) <= _GREATEST_SEED):
            self.complaint.setText(f"A seed is a whole number from 0 to {_GREATEST_SEED}.")
            return
        self.complaint.setText("")
        self.seed.clear()
        self.begun.emit(int(text) if text else None)

    def show_state(self, presenter: PlayPresenter) -> None:
        self._running = presenter.running
        self._seed_of_episode = presenter.seed
        self._run.setText("Pause" if presenter.running else "Run")
        self._speed.setCurrentIndex(self._speed.findData(presenter.speed))
        for part in (self._step, self._run, self._new, self._again):
            part.setEnabled(presenter.open)
        next_seed = "" if presenter.seed is None else f"next: {presenter.seed + 1}"
        self.seed.setPlaceholderText(next_seed or "next seed")


def _hinted(text: str, keys: str, do: Doing) -> Button:
    """A button that shows its key. The view listens for keys, so that they reach nothing else."""
    made = Button(text, keys, do=do, listens=False)
    made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return made


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
        self._mission = label("", "strong", selectable=True, wraps=True)
        self._numbers, self._observation = FactList(numbers=True), FactList(numbers=True)
        self._next = label("", "strong", selectable=True)
        self._episodes = named(QListWidget(), "Episodes played; enter plays one again")
        self._episodes.itemActivated.connect(
            lambda item: self.seed_wanted.emit(item.data(Qt.ItemDataRole.UserRole))
        )
        self._episodes.hide()
        self._listed: Episode | None = None
        titled = (
            ("This step", self._numbers),
            ("The policy's next action, or yours", column_of(self._next, self.takeover)),
            ("What it sees", self._observation),
            ("Episodes", column_of(self.controls.keep, self._episodes)),
        )
        cards = [Card(label(title, "label"), part) for title, part in titled]
        self._side = scrolled(column_of(*cards, 1, spacing=SPACE[2]))
        self._side.setFixedWidth(_WIDE_SIDE)
        self._side.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        left = Card((self.picture, 1), self._mission, self._sentence, self.controls, spacing=SPACE[2])
        hbox((left, 1), self._side, on=self, spacing=SPACE[3])

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
        self._mission.setText(presenter.mission)
        self._mission.setVisible(bool(presenter.mission))
        self._numbers.show_facts(presenter.numbers())
        self._observation.show_facts(presenter.observation())
        self._next.setText(presenter.next_text())
        self.takeover.show_policy_output(
            presenter.policy_output(), presenter.next_action(), enabled=presenter.phase == "playing"
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
