"""The page on which a person plays an environment, without a policy."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QWidget

from gym_gui.context import Context
from gym_gui.models.form_choices import EnvironmentList, environments_for, installed_sets, missing
from gym_gui.services.play_session import Play
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.form import FormSource
from gym_gui.ui.presenters.play_by_hand import TIMES, HandPresenter
from gym_gui.ui.views.base import View
from gym_gui.ui.widgets.basics import PAGE, Button, hbox, label, open_path, stacked, vbox
from gym_gui.ui.widgets.hand_stage import HandStage, HandStart
from mosaic.client.by_hand import best_trained
from mosaic.contract.capabilities import discover_workers
from mosaic.contract.errors import UserError

_PAUSE_AFTER_END = 0.5
"""A key that was meant for the episode begins no new one."""
_KEYS = {
    Qt.Key.Key_Left: "left",
    Qt.Key.Key_Right: "right",
    Qt.Key.Key_Up: "up",
    Qt.Key.Key_Down: "down",
    Qt.Key.Key_Space: "space",
    Qt.Key.Key_Return: "enter",
    Qt.Key.Key_Enter: "enter",
    Qt.Key.Key_PageUp: "pageup",
    Qt.Key.Key_PageDown: "pagedown",
    Qt.Key.Key_Tab: "tab",
    Qt.Key.Key_Plus: "+",
    Qt.Key.Key_Equal: "=",
    Qt.Key.Key_Minus: "-",
    Qt.Key.Key_Period: ".",
}


def key_name(event: QKeyEvent) -> str:
    """The name of a key whatever else is held: `a` with Shift too, and a digit as such."""
    key = event.key()
    letter = Qt.Key.Key_A <= key <= Qt.Key.Key_Z
    if letter or Qt.Key.Key_0 <= key <= Qt.Key.Key_9:
        return chr(key).lower()
    return _KEYS.get(Qt.Key(key), event.text().lower())


class HandView(View):
    """One environment in the hands of a person. Its process ends when the page is left."""

    closed = Signal()

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.setProperty("role", "page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.play: Play | None = None
        self._past: Play | None = None
        """The session before, whose thread may still be about to end."""
        self.presenter = HandPresenter()
        self._source: FormSource | None = None
        self._environments = EnvironmentList(())
        self._ended_at = 0.0
        self.folder = context.link.var / "recordings"
        """Where episodes are kept."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.start, self.stage = HandStart(lambda: self._environments), HandStage()
        self._pages = stacked(self.start, self.stage)
        vbox(self._make_bar(), (self._pages, 1), on=self, margins=PAGE, spacing=SPACE[2])
        self._wire()
        self._show()

    def _make_bar(self) -> QWidget:
        self._name = label("", "strong", selectable=True)
        self.record = Button("Record", "R", checkable=True, listens=False)
        self.record.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.record.clicked.connect(lambda: self._do("record"))
        self._recorded = label("", "dim")
        show = lambda: open_path(self.folder, self.context.notifications)  # noqa: E731
        self.open_folder = Button("Open folder", role="quiet", do=show)
        self.open_folder.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.change = Button("Another environment", role="quiet", do=self._end_session)
        self.change.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.back = Button("Close", "Esc", role="quiet", do=self.closed, listens=False)
        self.back.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        bar = QWidget()
        kept = (self._recorded, self.open_folder, self.record)
        hbox(self._name, 1, *kept, self.change, self.back, on=bar, spacing=SPACE[2])
        return bar

    def _wire(self) -> None:
        self.start.asked.connect(self._open)
        self.start.install.ended.connect(self._installed)
        for field in (self.start.environment, self.start.arguments, self.start.seed):
            field.edited.connect(lambda _: self._edited())
        self.stage.controls.asked.connect(self._do)
        self.stage.controls.time_chosen.connect(self._set_time)
        self.stage.seed_wanted.connect(self._begin)
        self.stage.legend.pressed.connect(self._press_all)
        self.stage.legend.released.connect(self._release_all)

    def offer(self, prefill: Mapping[str, Any]) -> None:
        """Put an environment and its arguments into the fields, unless one is being played."""
        if self.play is None and prefill.get("env_id"):
            for name in ("env_id", "env_kwargs"):
                self.start.state.set(name, str(prefill.get(name) or ""))
            self._edited()

    def enter(self) -> None:
        super().enter()
        self.setFocus()
        var = self.context.link.var
        self.context.tasks.run(lambda: _read_source(var), self._take_source, owner=self)

    def leave(self) -> None:
        super().leave()
        self._end_session()

    def close_view(self) -> None:
        super().close_view()
        self._drop_past()

    def _take_source(self, source: FormSource) -> None:
        self._source = source
        self._environments = environments_for(source.environments, {}, source.installed)
        self._edited()

    def _installed(self, *_: object) -> None:
        if self._source is not None:
            self._source.installed.update(installed_sets())
            self._take_source(self._source)

    def _edited(self) -> None:
        source, env_id = self._source, self.start.env_id
        if source is not None:
            self.start.install.offer(missing([(source.extra_of(env_id), env_id)], source.installed))
        for field in (self.start.arguments, self.start.seed):
            field.refresh()
        if self.presenter.phase == "failed":
            # What was wrong may be right now.
            self.presenter = HandPresenter()
        self._show()

    def _open(self) -> None:
        if self.start.problem() or not self._visible:
            return
        env_id, kwargs = self.start.env_id, self.start.kwargs()
        seed = self.start.state.said("seed")
        var = self.context.link.var
        self._end_session()
        self.presenter = HandPresenter("loading")
        self.play = Play(
            None, Path.cwd(), var, env_id=env_id, env_kwargs=kwargs, seed=int(seed) if seed else None
        )
        self.play.arrived.connect(self._take_news)
        self._name.setText(f"{env_id} by hand")
        presenter = self.presenter
        self.context.tasks.run(
            lambda: best_trained(env_id, var),
            lambda found: setattr(presenter, "trained", found),
            lambda _: None,
            owner=self,
        )
        self._show()
        self.setFocus()

    def _end_session(self) -> None:
        if self.play is not None:
            self.play.arrived.disconnect(self._take_news)
            self.play.end()
            self._drop_past()
            self._past, self.play = self.play, None
            self.presenter = HandPresenter()
            self._show()

    def _drop_past(self) -> None:
        """Let go of an ended session once its thread is gone: a QObject must not end in another thread."""
        if self._past is not None:
            self._past.close()
            self._past = None

    def _take_news(self) -> None:
        if self.play is None:
            return
        presenter = self.presenter
        before, phase = presenter.keys, presenter.phase
        for news in self.play.take():
            presenter.take(news)
        if presenter.keys is not None and presenter.keys is not before:
            self.stage.legend.set_caps(presenter.keys.caps)
            self._set_time(presenter.time)
            self.play.set_speed(presenter.rate)
        if presenter.phase == "ended" and phase != "ended":
            self._ended_at = time.monotonic()
            self._let_go()
        for sentence in presenter.take_problems():
            self.context.notifications.tell(sentence, "warn")
        if presenter.phase == "failed":
            self.play.arrived.disconnect(self._take_news)
            self._drop_past()
            self._past, self.play = self.play, None
        self._show()

    # Keys

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, held = key_name(event), event.modifiers()
        others = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
        shift = bool(held & Qt.KeyboardModifier.ShiftModifier)
        command = None if held & others else self.presenter.command(key, shift)
        if command == "new" and event.isAutoRepeat():
            return
        if command == "new" and key != "n" and time.monotonic() - self._ended_at < _PAUSE_AFTER_END:
            return
        if command is not None:
            self._do(command)
        elif held & others or not self._press(key, event.isAutoRepeat()):
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if not event.isAutoRepeat():
            self._release(key_name(event))

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Keys come up elsewhere from now on, and nobody steers."""
        super().focusOutEvent(event)
        self._let_go()
        if self.play is not None and self.presenter.time == "runs" and self.presenter.running:
            self.play.run(False)

    def _press(self, key: str, repeated: bool) -> bool:
        """A key went down; whether it means something here."""
        presenter = self.presenter
        if presenter.keys is None or presenter.keys.named(key) is None or self.play is None:
            return False
        if repeated and presenter.time != "turns":
            return True
        pressed = presenter.press(key)
        if pressed is not None and pressed.steps:
            self.play.step(pressed.action)
        elif pressed is not None and not repeated:
            self.play.press(pressed.action, pressed.actions)
            if pressed.starts:
                self.play.run(True)
        self.stage.legend.light(presenter.keys.down)
        return True

    def _release(self, key: str) -> None:
        presenter = self.presenter
        if presenter.release(key) and presenter.keys is not None:
            if self.play is not None and presenter.time != "turns":
                self.play.hold_in_turn(presenter.keys.actions())
            self.stage.legend.light(presenter.keys.down)

    def _press_all(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._press(key, False)

    def _release_all(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._release(key)

    def _let_go(self) -> None:
        keys = self.presenter.keys
        if keys is not None:
            keys.let_go()
            self.stage.legend.light(())
        if self.play is not None:
            self.play.hold(None)

    # Commands

    def _do(self, command: str) -> None:
        play, presenter = self.play, self.presenter
        if play is None or not presenter.open:
            return
        if command == "pause" and presenter.time == "runs" and presenter.phase == "playing":
            play.run(not presenter.running)
        elif command == "step" and presenter.keys is not None:
            play.run(False)
            play.step(presenter.keys.action())
        elif command in ("new", "again"):
            self._begin(presenter.seed if command == "again" else None)
        elif command in ("faster", "slower"):
            presenter.change_speed(command == "faster")
            play.set_speed(presenter.rate)
        elif command == "time":
            names = list(TIMES)
            self._set_time(names[(names.index(presenter.time) + 1) % len(names)])
        elif command == "record":
            self._record(play)
        self._show()
        self.setFocus()

    def _begin(self, seed: int | None) -> None:
        if self.play is not None:
            self._let_go()
            self.play.run(False)
            self.play.reset(seed)
        self.setFocus()

    def _set_time(self, name: str) -> None:
        presenter = self.presenter
        presenter.time = next(one for one in TIMES if one == name)
        if self.play is not None:
            self.play.run(False)
            self.play.wait_for_keys(name == "held")
        self._let_go()
        self._show()
        self.setFocus()

    def _record(self, play: Play) -> None:
        """Record from the next episode on, or from this one where it has just begun."""
        on = self.presenter.recording is None
        play.record(self.folder if on else None)
        if on and self.presenter.untouched:
            self._begin(self.presenter.seed)

    def _show(self) -> None:
        presenter = self.presenter
        is_open = presenter.open
        self._pages.setCurrentIndex(1 if is_open else 0)
        for part in (self._name, self.record, self.change):
            part.setVisible(is_open)
        self.record.setChecked(presenter.recording is not None)
        self.record.setText("● Recording" if presenter.recording is not None else "Record")
        self._recorded.setText(presenter.about_recording())
        self._recorded.setVisible(is_open)
        self.open_folder.setVisible(is_open and presenter.kept > 0)
        if is_open:
            self.stage.show_state(presenter)
        else:
            self.start.show_state(presenter)


def _read_source(var: Path) -> FormSource:
    """What the installed worker that can play knows of environments."""
    for _, worker in sorted(discover_workers().items()):
        if worker.player_module:
            return FormSource.read(worker, var)
    raise UserError("No worker is installed that can play: run `./mosaic doctor`.")
