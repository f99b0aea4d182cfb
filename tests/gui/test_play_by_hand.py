"""The page for playing by hand, with a real environment in a real session."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gym_gui.app import Desktop
from gym_gui.context import Context, Settings
from gym_gui.models.runs import RunBook
from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.tasks import Notifications, Tasks
from gym_gui.ui.views.play_by_hand import HandView
from gym_gui.ui.widgets.key_legend import KeyCap

MILLISECONDS = 60_000


@pytest.fixture
def context(var: Path, qapp: Any) -> Iterator[Context]:
    notifications = Notifications()
    tasks = Tasks(notifications)
    made = Context(
        DaemonLink(var),
        tasks,
        notifications,
        RunBook(),
        Settings(var),
        lambda purpose, prefill: None,
        lambda run_id: None,
    )
    yield made
    tasks.close()


@pytest.fixture
def view(context: Context, qtbot: QtBot) -> Iterator[HandView]:
    made = HandView(context)
    qtbot.addWidget(made)
    made.resize(1080, 760)
    made.show()
    made.enter()
    qtbot.waitUntil(made.start.environment.isEnabled, timeout=MILLISECONDS)
    yield made
    made.close_view()


def open_game(view: HandView, qtbot: QtBot, env_id: str, seed: int = 7, kwargs: str = "") -> None:
    view.offer({"env_id": env_id, "env_kwargs": kwargs})
    view.start.state.set("seed", str(seed))
    view.start.go.click()
    qtbot.waitUntil(lambda: view.presenter.phase not in ("start", "loading"), timeout=MILLISECONDS)
    assert view.presenter.phase == "playing", view.presenter.sentence


def send(view: HandView, kind: QEvent.Type, key: Qt.Key, text: str = "", again: bool = False) -> None:
    event = QKeyEvent(kind, key.value, Qt.KeyboardModifier.NoModifier, text, again)
    QApplication.sendEvent(view, event)


def down(view: HandView, key: Qt.Key, again: bool = False) -> None:
    send(view, QEvent.Type.KeyPress, key, again=again)


def up(view: HandView, key: Qt.Key, again: bool = False) -> None:
    send(view, QEvent.Type.KeyRelease, key, again=again)


def message(view: HandView) -> dict[str, Any]:
    assert view.presenter.seen is not None
    return view.presenter.seen.message


def wait(qtbot: QtBot, holds: Callable[[], bool]) -> None:
    qtbot.waitUntil(holds, timeout=MILLISECONDS)


def test_held_keys_act_in_every_step_and_light_up(view: HandView, qtbot: QtBot) -> None:
    open_game(view, qtbot, "LunarLander-v3")
    caps = {cap.cap.sign: cap for cap in view.stage.legend.findChildren(KeyCap)}
    assert set(caps) == {"←", "↑", "→"} and not any(cap.lit for cap in caps.values())
    assert "first key" in view.presenter.sentence[0] and not view.presenter.running
    down(view, Qt.Key.Key_Up)
    # A keyboard that repeats says up and down over and over.
    up(view, Qt.Key.Key_Up, again=True)
    down(view, Qt.Key.Key_Up, again=True)
    assert caps["↑"].lit
    wait(qtbot, lambda: message(view).get("step", 0) >= 3)
    assert message(view)["action"] == 2 and message(view)["by"] == "caller"
    down(view, Qt.Key.Key_A)
    assert caps["←"].lit and caps["↑"].lit
    taken: set[int] = set()

    def both() -> bool:
        taken.add(message(view)["action"])
        return {1, 2} <= taken

    wait(qtbot, both)
    up(view, Qt.Key.Key_A)
    up(view, Qt.Key.Key_Up)
    assert not any(cap.lit for cap in caps.values())
    wait(qtbot, lambda: message(view)["by"] == "idle")
    down(view, Qt.Key.Key_P)
    wait(qtbot, lambda: not view.presenter.running)
    wait(qtbot, lambda: view.presenter.phase == "playing" and "Paused" in view.presenter.sentence[0])


def test_a_short_tap_is_a_step_however_soon_it_is_let_go(view: HandView, qtbot: QtBot) -> None:
    open_game(view, qtbot, "CartPole-v1")
    assert view.presenter.time == "held"
    for number in range(1, 4):
        down(view, Qt.Key.Key_Right)
        up(view, Qt.Key.Key_Right)
        wait(qtbot, lambda number=number: message(view).get("step") == number)
    qtbot.wait(300)
    assert message(view)["step"] == 3 and message(view)["action"] == 1
    down(view, Qt.Key.Key_Left)
    wait(qtbot, lambda: message(view)["step"] > 5 and message(view)["action"] == 0)
    up(view, Qt.Key.Key_Left)


def test_an_episode_shows_its_return_and_the_next_begins_on_a_key(view: HandView, qtbot: QtBot) -> None:
    open_game(view, qtbot, "CartPole-v1")
    down(view, Qt.Key.Key_Right)
    wait(qtbot, lambda: view.presenter.phase == "ended")
    assert "Episode 1 ended after" in view.presenter.sentence[0]
    assert view.presenter.keys is not None and view.presenter.keys.down == []
    # Whoever still holds the key, or presses Enter a moment too late for the game, begins nothing.
    down(view, Qt.Key.Key_Right, again=True)
    down(view, Qt.Key.Key_Return)
    qtbot.wait(600)
    assert view.presenter.phase == "ended"
    down(view, Qt.Key.Key_Return)
    wait(qtbot, lambda: view.presenter.phase == "playing")
    assert view.presenter.seed == 8 and view.presenter.untouched
    down(view, Qt.Key.Key_Left)
    wait(qtbot, lambda: view.presenter.phase == "ended")
    assert len(view.presenter.episodes) == 2 and "of 2 episodes" in view.presenter.summary()
    view.stage.seed_wanted.emit(7)
    wait(qtbot, lambda: view.presenter.phase == "playing" and view.presenter.seed == 7)


def test_turns_wait_and_a_held_key_walks_on(view: HandView, qtbot: QtBot) -> None:
    open_game(view, qtbot, "MiniGrid-Empty-8x8-v0")
    assert view.presenter.time == "turns" and view.presenter.mission == "get to the green goal square"
    down(view, Qt.Key.Key_Up)
    wait(qtbot, lambda: message(view).get("step") == 1)
    down(view, Qt.Key.Key_Up, again=True)
    up(view, Qt.Key.Key_Up)
    wait(qtbot, lambda: message(view).get("step") == 2)
    qtbot.wait(200)
    assert message(view)["step"] == 2
    assert dict(view.presenter.numbers())["Left"] == "254 steps"


def test_focus_that_goes_elsewhere_lets_all_keys_go_and_pauses(view: HandView, qtbot: QtBot) -> None:
    open_game(view, qtbot, "Pendulum-v1")
    down(view, Qt.Key.Key_Left)
    wait(qtbot, lambda: message(view).get("action") == [2.0])
    QApplication.sendEvent(view, QFocusEvent(QEvent.Type.FocusOut))
    wait(qtbot, lambda: not view.presenter.running)
    assert view.presenter.keys is not None and view.presenter.keys.down == []


def test_the_mouse_holds_keys_of_the_legend_down(view: HandView, qtbot: QtBot) -> None:
    open_game(view, qtbot, "Pendulum-v1")
    right = next(cap for cap in view.stage.legend.findChildren(KeyCap) if cap.cap.sign == "→")
    qtbot.mousePress(right, Qt.MouseButton.LeftButton)
    assert right.lit
    wait(qtbot, lambda: message(view).get("action") == [-2.0])
    qtbot.mouseRelease(right, Qt.MouseButton.LeftButton)
    wait(qtbot, lambda: message(view)["by"] == "idle")


def test_what_is_played_is_recorded_also_when_the_page_is_left_in_the_middle(
    view: HandView, qtbot: QtBot
) -> None:
    open_game(view, qtbot, "LunarLander-v3")
    send(view, QEvent.Type.KeyPress, Qt.Key.Key_R, "r")
    wait(qtbot, lambda: view.presenter.recording is not None and view.presenter.untouched)
    assert view.presenter.seed == 7 and view.record.isChecked()
    assert ("Episode", "1") in view.presenter.numbers(), "it was begun anew to be recorded from its start"
    down(view, Qt.Key.Key_Up)
    wait(qtbot, lambda: message(view).get("step", 0) >= 3)
    view.leave()
    view.close_view()
    (file,) = view.folder.glob("LunarLander-v3_seed-7_*.npz")
    assert np.load(file)["actions"][0] == 2
    assert len(list(view.folder.iterdir())) == 2


def test_the_speed_is_that_of_the_environment_and_can_be_changed(view: HandView, qtbot: QtBot) -> None:
    open_game(view, qtbot, "LunarLander-v3")
    assert view.presenter.speed_text() == "1× · 50 steps/s"
    send(view, QEvent.Type.KeyPress, Qt.Key.Key_Minus, "-")
    assert view.presenter.speed_text() == "0.75× · 37.5 steps/s"
    send(view, QEvent.Type.KeyPress, Qt.Key.Key_T, "t")
    assert view.presenter.time == "held"
    send(view, QEvent.Type.KeyPress, Qt.Key.Key_Period, ".")
    wait(qtbot, lambda: message(view).get("step") == 1)


@pytest.mark.parametrize(
    ("env_id", "kwargs", "said"),
    [
        ("CartPol-v1", "", "did you mean 'CartPole-v1'?"),
        ("CartPole-v1", '{"colour": 1}', "colour"),
        ("gone:Env-v0", "", "cannot be imported"),
    ],
)
def test_what_cannot_be_played_is_told_where_it_was_chosen(
    env_id: str, kwargs: str, said: str, view: HandView, qtbot: QtBot
) -> None:
    view.offer({"env_id": env_id, "env_kwargs": kwargs})
    view.start.go.click()
    wait(qtbot, lambda: view.presenter.phase == "failed")
    assert said in view.start.text.text() and view.start.go.isEnabled()
    view.offer({"env_id": "CartPole-v1"})
    assert view.presenter.phase == "start"


def test_wrong_fields_leave_the_button_off(view: HandView) -> None:
    view.start.arguments.editor.setText("{")  # type: ignore[union-attr]
    view.start.arguments.editor.textEdited.emit("{")  # type: ignore[union-attr]
    assert not view.start.go.isEnabled() and "JSON" in view.start.arguments.help.text()


def test_a_killed_session_is_told_and_can_be_begun_again(view: HandView, qtbot: QtBot) -> None:
    open_game(view, qtbot, "CartPole-v1")
    assert view.play is not None and view.play.pid is not None
    os.kill(view.play.pid, signal.SIGKILL)
    down(view, Qt.Key.Key_Right)
    wait(qtbot, lambda: view.presenter.phase == "failed")
    assert "SIGKILL" in view.presenter.sentence[0]
    view.start.go.click()
    wait(qtbot, lambda: view.presenter.phase == "playing")


def test_who_played_over_a_form_comes_back_to_it_and_a_run_that_is_chosen_covers_both(
    desktop: Desktop, qtbot: QtBot
) -> None:
    window = desktop.window
    cover = window.cover
    window.open_form("train", {})
    wait(qtbot, lambda: cover.form is not None and cover.currentWidget() is cover.form)
    window.open_form("hand", {"env_id": "Acrobot-v1", "env_kwargs": ""})
    assert cover.plays and cover.hand is not None and cover.hand.start.env_id == "Acrobot-v1"
    qtbot.keyClick(cover.hand, Qt.Key.Key_Escape)
    assert cover.currentWidget() is cover.form and not cover.plays
    window.open_form("hand", {})
    assert cover.plays
    cover.uncover()
    assert not cover.plays and cover.form is None and cover.currentWidget() is window.splitter
