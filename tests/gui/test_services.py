"""What works beside the window: tasks, streams of the daemon, thumbnail curves, settings."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from gym_gui.context import Settings
from gym_gui.services.curves import LiveMetrics
from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.sparklines import Sparklines
from gym_gui.services.tasks import Follower, Notification, Notifications, Tasks, close_followers
from gym_gui.theme import put_on
from gym_gui.ui.presenters.window import machine_words
from gym_gui.ui.widgets.notification_area import NotificationArea, NotificationHistory
from mosaic.client import Client, train_config
from mosaic.contract.errors import UnavailableError, UserError
from support.runs import end, long_config, wait_for_status
from support.window import Driver, live, made_run

PATIENCE_MS = 90_000


@pytest.fixture
def tasks(qtbot: QtBot) -> Iterator[Tasks]:
    made = Tasks(Notifications())
    yield made
    made.close()


def test_a_task_works_beside_the_window_and_its_result_comes_back_to_it(tasks: Tasks, qtbot: QtBot) -> None:
    worked, came = list[threading.Thread](), list[threading.Thread]()
    tasks.run(
        lambda: worked.append(threading.current_thread()), lambda _: came.append(threading.current_thread())
    )
    qtbot.waitUntil(lambda: bool(came), timeout=PATIENCE_MS)
    assert came == [threading.main_thread()]
    assert worked != came


def test_many_tasks_share_a_few_threads_and_all_are_done(tasks: Tasks, qtbot: QtBot) -> None:
    done: list[int] = []
    for number in range(50):
        tasks.run(lambda number=number: number, done.append)
    qtbot.waitUntil(lambda: len(done) == 50, timeout=PATIENCE_MS)
    assert sorted(done) == list(range(50))
    assert sum(thread.name == "task" for thread in threading.enumerate()) <= 4


def test_an_error_goes_to_who_asked_else_to_the_notifications(qtbot: QtBot) -> None:
    notifications = Notifications()
    tasks, caught, told = Tasks(notifications), list[Exception](), list[Notification]()
    notifications.posted.connect(told.append)

    def refuse() -> None:
        raise UserError("No such thing.")

    tasks.run(refuse, lambda _: None, caught.append)
    tasks.run(refuse, lambda _: None)
    qtbot.waitUntil(lambda: bool(caught and told), timeout=PATIENCE_MS)
    tasks.close()
    assert str(caught[0]) == "No such thing."
    assert (told[0].text, told[0].kind) == ("No such thing.", "bad")


def test_a_result_for_somebody_who_is_gone_is_dropped(tasks: Tasks, qtbot: QtBot) -> None:
    class Owner(QObject):
        def take(self, result: int) -> None:
            taken.append(result)

    taken, passed = list[int](), list[int]()
    go = threading.Event()
    gone = Owner()
    tasks.run(lambda: int(go.wait(60)), gone.take)
    gone.deleteLater()
    qtbot.wait(10)
    go.set()
    tasks.run(lambda: 1, passed.append)
    qtbot.waitUntil(lambda: bool(passed), timeout=PATIENCE_MS)
    assert taken == []


def test_closing_drops_what_waits_and_delivers_nothing_more(qtbot: QtBot) -> None:
    tasks, done = Tasks(Notifications()), list[int]()
    for number in range(100):
        tasks.run(lambda number=number: number, done.append)
    tasks.close()
    qtbot.wait(10)
    assert done == []
    tasks.run(lambda: 1, done.append)
    assert not [thread for thread in threading.enumerate() if thread.name == "task"]


def test_closing_a_client_ends_the_stream_that_another_thread_reads(client: Client, var: Path) -> None:
    followed, ended = threading.Event(), threading.Event()

    def follow(own: Client) -> None:
        followed.set()
        for _ in own.watch():
            pass
        ended.set()

    follower = Follower(var, follow, "watching")
    follower.start()
    assert followed.wait(60)
    time.sleep(0.2)
    follower.close()
    follower.join()
    assert ended.is_set()
    close_followers()


def test_a_closed_client_says_so_and_starts_no_daemon(var: Path, client: Client) -> None:
    own = Client.connect(var)
    own.close()
    with pytest.raises(UnavailableError, match="closed"):
        own.health()
    assert list(own.watch()) == []


def test_a_listener_is_told_when_the_daemon_goes_and_comes(var: Path) -> None:
    heard: list[bool] = []
    with Client.connect(var, heard.append) as client:
        pid = client.health().pid
        assert heard == []
        subprocess.run(["kill", "-9", str(pid)], check=True)
        assert client.health().pid != pid
        assert heard == [False, True]


def test_metrics_of_a_run_are_followed_to_its_end_and_its_curve_is_drawn(
    var: Path, client: Client, qtbot: QtBot
) -> None:
    run = client.submit(train_config("ppo", "CartPole-v1", total_timesteps=3000, folder=var))
    link = DaemonLink(var)
    metrics, changes = LiveMetrics(link, run.run_id), list[int]()
    metrics.changed.connect(lambda: changes.append(1))
    client.wait(run.run_id, timeout=120)
    expected = client.metrics(run.run_id).to_csv()

    def all_read() -> bool:
        return metrics.metrics is not None and metrics.metrics.to_csv() == expected

    qtbot.waitUntil(all_read, timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: bool(changes), timeout=PATIENCE_MS)
    metrics.close()
    sparklines = Sparklines(var)
    ended = client.get(run.run_id)
    with qtbot.waitSignal(sparklines.changed, timeout=PATIENCE_MS):
        sparklines.request([ended])
    assert len(sparklines.curve(run.run_id)) > 1
    assert not sparklines.take(ended)
    sparklines.close()
    link.close()


def test_the_link_without_a_daemon_says_what_it_waits_for(var: Path, qtbot: QtBot) -> None:
    link = DaemonLink(var)
    with pytest.raises(UnavailableError, match="Connecting to the daemon"):
        link.client()
    link.close()


def test_settings_are_kept_and_written_only_when_they_change(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    settings.save()
    assert not settings.path.exists()
    settings.set("theme", "light")
    settings.set("width", 3)
    settings.set("width", None)
    settings.save()
    assert Settings(tmp_path).get("theme") == "light"
    assert Settings(tmp_path).get("width", 7) == 7
    settings.path.unlink()
    settings.save()
    assert not settings.path.exists()


def test_the_machine_tells_how_busy_it_is() -> None:
    cpu, memory, _ = machine_words()
    load = re.fullmatch(r"CPU (\d+) %", cpu)
    room = re.fullmatch(r"Memory (\d+\.\d) of (\d+) GB", memory)
    assert load is not None and 0 <= int(load[1]) <= 100
    assert room is not None and 0 < float(room[1]) < float(room[2])


def test_the_program_opens_the_window_and_a_signal_closes_it(client: Client, var: Path) -> None:
    run = client.submit(long_config())
    wait_for_status(client, run.run_id, "EXEC")
    process = subprocess.Popen([sys.executable, "-m", "mosaic", "gui"], stderr=subprocess.PIPE, text=True)
    log = var / "logs" / "gym_gui.log"
    deadline = time.monotonic() + 90
    while not (log.exists() and "G200 run=- alive" in log.read_text()):
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "G101" in log.read_text()
    assert wait_for_status(client, run.run_id, "EXEC")
    end(client, run)


def test_only_the_newest_message_is_seen_and_the_history_has_all(qtbot: QtBot) -> None:
    over = QWidget()
    qtbot.addWidget(over)
    over.resize(900, 600)
    over.show()
    told = Notifications()
    area, history = NotificationArea(told, over, 40), NotificationHistory(told, over, 40)
    told.tell("It cannot be done: " + "a long story " * 20, "bad")
    told.tell("A run has ended.", "good", aside=True)
    assert [card.isVisible() for card in area.cards] == [False, True]
    assert area.cards[-1].more.text() == "1 more"
    assert area.geometry().bottom() <= 600 - 40
    area.cards[-1].close_card()
    (card,) = area.cards
    assert card.isVisible() and not card.more.isVisible(), "what was not dismissed comes back"
    area.dismiss()
    assert not area.isVisible()
    history.muted.connect(lambda muted: setattr(area, "muted", muted))
    history.mute.setChecked(True)
    told.tell("Another has ended.", aside=True)
    assert area.cards == []
    told.tell("This is an answer.")
    assert len(area.cards) == 1
    history.open()
    shown = [one.text() for one in history.findChildren(QLabel)]
    assert shown.index("This is an answer.") < shown.index("Another has ended."), "the newest comes first"
    QTest.keyClick(history, Qt.Key.Key_Escape)
    assert not history.isVisible()
    area.dismiss()


def test_a_history_is_as_high_as_its_messages(qtbot: QtBot) -> None:
    over = QWidget()
    qtbot.addWidget(over)
    over.resize(900, 600)
    over.show()
    put_on("dark")
    told = Notifications()
    history = NotificationHistory(told, over, 40)
    heights = set()
    for number in range(36, 60):
        told.tell("words " * (number // 6) + "w" * (number % 6), action=("Show", str))
        history.open()
        assert not history._area.verticalScrollBar().isVisible()
        page, seen = history._area.widget(), history._area.viewport()
        assert page.height() == seen.height() >= page.layout().totalHeightForWidth(seen.width())
        heights.add(history.height())
        history.open()
        told.history.clear()
    assert 1 < len(heights) < 4 and max(heights) < 140
    history.open()
    for number in range(40):
        told.tell(f"Message {number}.")
    assert history.height() == 420
    history.hide()


def test_runs_that_end_together_are_told_of_in_one_sentence(driver: Driver) -> None:
    window = driver.window
    window._runs_changed([live(made_run(at)) for at in range(4)])
    window._runs_changed([made_run(0), made_run(1), made_run(2, outcome="failed", reason="it fell")])
    window._runs_changed([made_run(3)])
    driver.until(lambda: driver.told() == ["4 runs ended: 3 completed, 1 failed."])
    assert window.status.messages.text() == "Messages 1"
    window.history.open()
    assert window.status.messages.text() == "Messages"
    assert driver.told() == []


def test_a_history_goes_when_somebody_clicks_elsewhere(driver: Driver) -> None:
    window, left = driver.window, Qt.MouseButton.LeftButton
    window.activateWindow()
    for open_ in (True, False, True):
        QTest.mouseClick(window.status.messages, left)
        assert window.history.isVisible() is open_, "its button opens and closes it"
    QTest.mouseClick(window.history.mute, left)
    assert window.history.isVisible()
    QTest.mouseClick(window.panel.field, left)
    assert not window.history.isVisible()
