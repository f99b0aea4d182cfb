"""The Play view with a real policy in a real session."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QPushButton, QSlider
from pytestqt.qtbot import QtBot

from gym_gui.context import Context, Settings
from gym_gui.models.run_files import policies_of, read_facts
from gym_gui.models.runs import RunBook
from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.play_session import Play
from gym_gui.services.tasks import Notifications, Tasks
from gym_gui.ui.presenters.play import Closed, News, Opened, Refusal, Seen
from gym_gui.ui.views.play import PlayView
from gym_gui.ui.widgets.play_actions import ChoiceButton
from mosaic.client import RunRecord
from support.policies import STEP, save_cartpole, save_pendulum
from support.records import plain_record

MILLISECONDS = 60_000


def run_with(folder: Path, save: Callable[[Path], Path]) -> RunRecord:
    """An ended run that has left one policy."""
    place = folder / "runs" / "CartPole-v1__ppo__3__1"
    place.mkdir(parents=True)
    save(place)
    return plain_record(
        folder.name,
        run_name="cart",
        outcome="completed",
        run_dir=str(folder),
        started_at=0.0,
        ended_at=1.0,
        exit_code=0,
    )


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
def view(context: Context, qtbot: QtBot) -> Iterator[PlayView]:
    made = PlayView(context)
    qtbot.addWidget(made)
    made.resize(1080, 700)
    made.show()
    yield made
    made.close_view()


def press(view: PlayView, text: str) -> None:
    """Click the visible button with these words."""
    (found,) = [one for one in view.findChildren(QPushButton) if one.text() == text and one.isVisible()]
    found.click()


def open_session(view: PlayView, run: RunRecord, qtbot: QtBot) -> None:
    assert PlayView.wanted(run, read_facts(run))
    view.show_run(run)
    view.enter()
    (go,) = [one for one in view.findChildren(QPushButton) if one.text() == "Play this policy"]
    qtbot.waitUntil(go.isEnabled, timeout=MILLISECONDS)
    go.click()
    assert view.presenter.phase == "loading"
    qtbot.waitUntil(lambda: view.presenter.phase != "loading", timeout=MILLISECONDS)
    assert view.presenter.phase == "playing", view.presenter.sentence


def wait_for_step(view: PlayView, qtbot: QtBot, least: int) -> None:
    def stepped() -> bool:
        seen = view.presenter.seen
        return seen is not None and (seen.message.get("step", 0) >= least or seen.last)

    qtbot.waitUntil(stepped, timeout=MILLISECONDS)


def test_a_policy_is_stepped_through_taken_over_and_run_to_the_end_of_its_episode(
    view: PlayView, tmp_path: Path, qtbot: QtBot
) -> None:
    open_session(view, run_with(tmp_path / "01RUN", save_cartpole), qtbot)
    presenter = view.presenter
    assert presenter.seen is not None and presenter.seen.picture.shape[2] == 3
    press(view, "Step")
    wait_for_step(view, qtbot, 1)
    assert presenter.seen.message["by"] == "policy"
    left, right = [one for one in view.findChildren(ChoiceButton) if one.isVisible()]
    right.click()
    wait_for_step(view, qtbot, 2)
    assert (presenter.seen.message["by"], presenter.seen.message["action"]) == ("caller", 1)
    qtbot.keyClick(view, Qt.Key.Key_Left)
    wait_for_step(view, qtbot, 3)
    assert (presenter.seen.message["by"], presenter.seen.message["action"]) == ("caller", 0)
    qtbot.keyClick(view, Qt.Key.Key_Space)
    wait_for_step(view, qtbot, 4)
    press(view, "Run")
    qtbot.waitUntil(lambda: presenter.phase == "ended", timeout=MILLISECONDS)
    assert not presenter.running and presenter.episodes[0].yours == 2
    assert not left.isEnabled()
    seed = presenter.seed
    press(view, "Again")
    qtbot.waitUntil(lambda: presenter.phase == "playing", timeout=MILLISECONDS)
    assert presenter.seed == seed
    qtbot.keyClick(view, Qt.Key.Key_N)
    qtbot.waitUntil(lambda: presenter.seed == (seed or 0) + 1, timeout=MILLISECONDS)


def test_continuous_actions_are_set_with_sliders_and_may_be_kept_while_it_runs(
    view: PlayView, tmp_path: Path, qtbot: QtBot
) -> None:
    open_session(view, run_with(tmp_path / "01RUN", save_pendulum), qtbot)
    presenter = view.presenter
    assert "statistics" in presenter.sentence[0]
    (slider,) = [one for one in view.stage.takeover.findChildren(QSlider) if one.isVisible()]
    slider.setValue(slider.maximum())
    press(view, "Take action")
    wait_for_step(view, qtbot, 1)
    assert presenter.seen is not None
    assert (presenter.seen.message["by"], presenter.seen.message["action"]) == ("caller", [2.0])
    (hold,) = view.stage.takeover.findChildren(QCheckBox)
    hold.setChecked(True)
    slider.setValue(0)
    press(view, "Run")
    qtbot.waitUntil(
        lambda: presenter.seen is not None and presenter.seen.message["action"] == [-2.0],
        timeout=MILLISECONDS,
    )
    press(view, "Pause")
    qtbot.waitUntil(lambda: not presenter.running, timeout=MILLISECONDS)
    hold.setChecked(False)
    press(view, "Set to policy's")
    policys = presenter.next_action()[0]
    assert abs(4.0 * slider.value() / slider.maximum() - 2.0 - policys) < 0.02


def test_a_seed_brings_an_episode_back_and_a_wrong_one_is_told(
    view: PlayView, tmp_path: Path, qtbot: QtBot
) -> None:
    open_session(view, run_with(tmp_path / "01RUN", save_cartpole), qtbot)
    controls = view.stage.controls
    controls.seed.setText("7")
    press(view, "New episode")
    qtbot.waitUntil(lambda: view.presenter.seed == 7, timeout=MILLISECONDS)
    assert view.presenter.seen is not None
    first = view.presenter.seen.message["observation"]
    press(view, "New episode")
    qtbot.waitUntil(lambda: view.presenter.seed == 8, timeout=MILLISECONDS)
    controls.seed.setText("7")
    press(view, "New episode")
    qtbot.waitUntil(lambda: view.presenter.seed == 7, timeout=MILLISECONDS)
    assert view.presenter.seen.message["observation"] == first
    controls.seed.setText("seven")
    press(view, "New episode")
    assert "whole number" in controls.complaint.text() and view.presenter.seed == 7


def test_a_killed_session_is_told_in_a_sentence_and_can_be_begun_again(
    view: PlayView, tmp_path: Path, qtbot: QtBot
) -> None:
    open_session(view, run_with(tmp_path / "01RUN", save_cartpole), qtbot)
    assert view.play is not None and view.play.pid is not None
    os.kill(view.play.pid, signal.SIGKILL)
    press(view, "Step")
    qtbot.waitUntil(lambda: view.presenter.phase == "failed", timeout=MILLISECONDS)
    assert "SIGKILL" in view.presenter.sentence[0]
    press(view, "Try again")
    qtbot.waitUntil(lambda: view.presenter.phase == "playing", timeout=MILLISECONDS)


def test_the_session_ends_with_the_visit(view: PlayView, tmp_path: Path, qtbot: QtBot) -> None:
    open_session(view, run_with(tmp_path / "01RUN", save_cartpole), qtbot)
    assert view.play is not None and view.play.pid is not None
    pid = view.play.pid
    view.leave()
    assert view.presenter.phase == "start"
    qtbot.waitUntil(lambda: not Path(f"/proc/{pid}").exists(), timeout=MILLISECONDS)


def test_a_session_that_still_loads_can_be_closed_at_once(tmp_path: Path, var: Path, qapp: Any) -> None:
    play = Play(str(save_cartpole(tmp_path)), tmp_path, var)
    play.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "play"]
    assert not [one for one in play.take() if isinstance(one, Opened | Closed)]


def test_what_runs_past_unseen_is_left_out_but_no_end_of_an_episode(
    tmp_path: Path, var: Path, qapp: Any, qtbot: QtBot
) -> None:
    play = Play(str(save_cartpole(tmp_path)), tmp_path, var, seed=5)
    try:
        with qtbot.waitSignal(play.arrived, timeout=MILLISECONDS):
            pass
        play.set_speed(1000.0)
        play.run(True)
        news: list[News] = []

        def ended() -> bool:
            news.extend(play.take())
            return any(isinstance(one, Seen) and one.last for one in news)

        qtbot.waitUntil(ended, timeout=MILLISECONDS)
        play.step(7)
        play.step(7)
        qtbot.waitUntil(lambda: any(isinstance(one, Refusal) for one in play.take()), timeout=MILLISECONDS)
    finally:
        play.close()


def test_policies_of_a_run_are_named_with_their_steps(tmp_path: Path) -> None:
    run = run_with(tmp_path / "01RUN", save_cartpole)
    (found,) = policies_of(run)
    assert found.text == f"Model · {STEP:,} steps" and found.folder == Path(run.run_dir)


def test_a_run_without_a_policy_is_told_so(view: PlayView, tmp_path: Path, qtbot: QtBot) -> None:
    run = run_with(tmp_path / "01RUN", lambda folder: folder)
    assert not PlayView.wanted(run, read_facts(run))
    view.show_run(run)
    view.enter()
    qtbot.waitUntil(lambda: "no policy yet" in view.start.text.text(), timeout=MILLISECONDS)
