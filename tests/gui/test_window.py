"""The window through its own buttons, with real runs: what a person would do in the first hour."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from gym_gui.app import Desktop, catch_faults
from gym_gui.context import Settings
from gym_gui.models.run_files import RunFacts
from gym_gui.theme import theme
from gym_gui.ui.widgets.cleanrl_forms import CleanRLTrainForm
from mosaic.client import Client
from support.runs import end, long_config, script_config, wait_for_status
from support.window import Driver, live, made_run

LEFT = Qt.MouseButton.LeftButton


def click(widget: object) -> None:
    QTest.mouseClick(widget, LEFT)  # type: ignore[arg-type]


def test_the_first_start_trains_cartpole_in_one_click(driver: Driver) -> None:
    window = driver.window
    assert window.middle.currentWidget() is window.empty
    assert window.empty.go.isVisible()
    click(window.empty.go)
    run = driver.until_state("Running")
    assert run.worker_config["env_id"] == "CartPole-v1"
    assert window.middle.currentWidget() is window.page
    assert window.panel.chips["running"].text() == "Running 1"
    titles = [window.page.bar.tabText(at) for at in range(window.page.bar.count())]
    assert titles[0] == "Overview"
    driver.until(lambda: "Live" in [window.page.bar.tabText(at) for at in range(window.page.bar.count())])
    click(window.page.header.cancel)
    click(window.page.header.confirm.go)
    driver.until_state("Cancelled")


def test_a_run_is_paused_continued_and_cancelled_from_its_head(driver: Driver) -> None:
    header = driver.window.page.header
    driver.submit(long_config())
    driver.until_state("Running")
    assert header.pausing.text() == "Pause"
    click(header.pausing)
    driver.until_state("Paused")
    assert header.state.text() == "Paused"
    assert header.pausing.text() == "Resume"
    click(header.pausing)
    driver.until_state("Running")
    place = header.cancel.geometry()
    click(header.cancel)
    assert header.confirm.isVisible()
    click(header.confirm.keep)
    assert not header.confirm.isVisible()
    click(header.cancel)
    click(header.confirm.go)
    driver.until_state("Cancelled")
    assert not header.cancel.isVisible()
    assert not header.evaluate.geometry().intersects(place), "it must not come under the mouse"


def test_the_seeds_of_one_configuration_are_one_row_and_are_cancelled_together(driver: Driver) -> None:
    window = driver.window
    driver.submit(*(long_config(seed=seed) for seed in (1, 2)))
    assert window.panel.model.rowCount() == 1
    assert sorted(chip.text() for chip in window.page.header.seed_buttons.values()) == ["1", "2"]
    assert window.page.header.cancel.text() == "Cancel 2 runs"
    click(window.page.header.cancel)
    click(window.page.header.confirm.go)
    driver.until(lambda: all(run.ended for run in window.context.runs))
    assert {run.outcome for run in window.context.runs} == {"cancelled"}


def test_a_group_is_opened_by_key_and_by_click_and_a_seed_is_shown_alone(driver: Driver) -> None:
    window, rows = driver.window, driver.window.panel.list
    driver.submit(*(script_config("steps.py", seed=seed) for seed in (1, 2)))
    driver.until(lambda: all(run.ended for run in window.context.runs))
    rows.setFocus()
    QTest.keyClick(rows, Qt.Key.Key_Right)
    assert window.panel.model.rowCount() == 3
    QTest.keyClick(rows, Qt.Key.Key_End)
    assert driver.run.worker_config["seed"] == 2
    assert window.page.header.entries["remove"].isEnabled()
    assert window.page.header.seed_buttons[driver.run.run_id].isChecked()
    QTest.keyClick(rows, Qt.Key.Key_Home)
    QTest.keyClick(rows, Qt.Key.Key_Left)
    assert window.panel.model.rowCount() == 1
    row = window.panel.model.row(0)
    assert row is not None
    opener = rows._delegate.opener(row, rows.visualRect(window.panel.model.index(0)))
    QTest.mouseClick(rows.viewport(), LEFT, pos=opener.center())
    assert window.panel.model.rowCount() == 3
    QTest.mouseClick(rows.viewport(), LEFT, pos=rows.visualRect(window.panel.model.index(1)).center())
    assert driver.run.worker_config["seed"] == 1


def test_thousands_of_rows_are_moved_through_by_keys(driver: Driver) -> None:
    window, rows = driver.window, driver.window.panel.list
    window._runs_changed([made_run(number) for number in range(3000)])
    rows.setFocus()
    for key, place in (
        (Qt.Key.Key_End, 2999),
        (Qt.Key.Key_Home, 0),
        (Qt.Key.Key_Down, 1),
        (Qt.Key.Key_Up, 0),
    ):
        QTest.keyClick(rows, key)
        assert rows.currentIndex().row() == place
        assert place in rows.seen()
    QTest.keyClick(rows, Qt.Key.Key_PageDown)
    assert 5 < rows.currentIndex().row() < 30
    assert driver.run.run_id == made_run(2999 - rows.currentIndex().row()).run_id


def test_rows_that_come_above_do_not_move_what_is_read(driver: Driver) -> None:
    window, rows = driver.window, driver.window.panel.list
    window._runs_changed([made_run(number) for number in range(100)])
    rows.verticalScrollBar().setValue(1000)
    before = window.panel.model.row(rows.seen().start)
    window._runs_changed([made_run(number) for number in range(100, 120)])
    window._runs_removed([made_run(98).run_id])
    assert window.panel.model.row(rows.seen().start) == before
    rows.verticalScrollBar().setValue(0)
    window._runs_changed([made_run(200)])
    assert rows.verticalScrollBar().value() == 0


def test_the_window_fits_a_small_screen_whatever_the_names(driver: Driver) -> None:
    window = driver.window
    name = "ppo_continuous_action_with_a_very_long_name_of_its_own_and_then_some_more"
    runs = [
        made_run(at, algo=name, env_id="MiniGrid-DoorKey-16x16-v0", seed=at, total_timesteps=9)
        for at in range(6)
    ]
    window._runs_changed([replace(run, submitted_at=1e6, outcome="failed", reason="x" * 300) for run in runs])
    driver.until(lambda: window.page.bar.count() > 0)
    window.resize(1024, 700)
    assert (window.width(), window.height()) == (1024, 700)
    assert window.page.header.more.visibleRegion().boundingRect().width() > 20


def test_a_filter_hides_rows_and_leaves_what_is_watched(driver: Driver) -> None:
    window = driver.window
    window._runs_changed([made_run(at, algo="dqn" if at % 2 else "ppo") for at in range(10)])
    window.select_run(made_run(4).run_id)
    window.panel.field.setText("algo:dqn")
    driver.until(lambda: window.panel.model.rowCount() == 5)
    assert driver.run.run_id == made_run(4).run_id
    assert window.panel.list.chosen_ids() == []
    window.panel.field.clear()
    driver.until(lambda: window.panel.model.rowCount() == 10)
    assert window.panel.list.chosen_ids() == [made_run(4).run_id]
    QTest.keyClick(window.panel.list, Qt.Key.Key_Down)
    assert driver.run.run_id == made_run(3).run_id


def test_removed_runs_leave_filter_and_selection_as_they_are(driver: Driver) -> None:
    window = driver.window
    window._runs_changed([made_run(at, algo="dqn" if at % 2 else "ppo") for at in range(10)])
    window.panel.field.setText("algo:dqn")
    driver.until(lambda: window.panel.model.rowCount() == 5)
    window.select_run(made_run(5).run_id)
    window._runs_removed([made_run(9).run_id])
    assert driver.run.run_id == made_run(5).run_id
    window._runs_removed([made_run(5).run_id])
    assert driver.run.run_id == made_run(3).run_id, "the next row takes its place"
    assert window.panel.list.chosen_ids() == [made_run(3).run_id]
    assert window.panel.field.text() == "algo:dqn"
    assert window.panel.model.rowCount() == 3


def test_the_buttons_are_for_all_marked_runs_in_sight_or_not(driver: Driver) -> None:
    window, header = driver.window, driver.window.page.header
    window._runs_changed([made_run(at) for at in range(40)])
    window._runs_changed([live(made_run(at)) for at in (38, 39)])
    rows = window.panel.list
    rows.setFocus()
    QTest.keyClick(rows, Qt.Key.Key_Home)
    for _ in range(19):
        QTest.keyClick(rows, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert len(rows.chosen_ids()) == 20
    assert "20 runs selected" in header.meta.text()
    assert header.cancel.text() == "Cancel 2 runs"
    assert header.entries["remove"].text() == "Remove 18 runs…"
    asked: list[int] = []
    window.actions_on_runs.remove = lambda runs: asked.append(len(runs))  # type: ignore[method-assign]
    header.entries["remove"].trigger()
    click(header.confirm.go)
    assert asked == [20], "those that live are left out where runs are removed"
    QTest.keyClick(rows, Qt.Key.Key_Down)
    assert header.entries["remove"].text() == "Remove…"


@pytest.mark.parametrize("purpose", ["policy", "resume"])
def test_a_form_by_key_is_for_the_run_that_is_shown(
    driver: Driver, purpose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = driver.window
    opened: list[dict[str, object]] = []
    monkeypatch.setattr(window.cover, "open_form", lambda _purpose, prefill: opened.append(prefill))
    window._runs_changed([made_run(1), live(made_run(2))])
    window.select_run(made_run(1).run_id)
    window.page._take_facts(made_run(1).run_id, RunFacts(has_policy=True))
    click(getattr(window.toolbar, purpose))
    window._do(purpose)
    window.page._take_facts(made_run(1).run_id, RunFacts())
    click(getattr(window.toolbar, purpose))
    named = {"run_id": made_run(1).run_id, "run_dir": made_run(1).run_dir}
    assert opened == [named, named, {}], "a run without a policy is not offered"


def test_train_again_repeats_the_last_configuration(driver: Driver) -> None:
    window = driver.window
    assert not window.toolbar.again.isEnabled()
    first = driver.submit(script_config("steps.py", seed=7))
    driver.until_state("Completed")
    assert window.toolbar.again.isEnabled()
    window.page.bar.setCurrentIndex(window.page.bar.count() - 1)
    click(window.toolbar.again)
    driver.until(lambda: len(window.context.runs) == 2 and driver.run.run_id != first.run_id)
    assert window.page.bar.currentIndex() == 0, "a new run is watched from its first tab"
    second = driver.until_state("Completed")
    assert second.worker_config["seed"] == 7
    assert second.worker_config["algo"] == first.worker_config["algo"]


def test_a_run_is_removed_only_when_asked_twice(driver: Driver) -> None:
    window = driver.window
    run = driver.submit(script_config("steps.py"))
    driver.until_state("Completed")
    folder = Path(run.run_dir)
    confirm = window.page.header.confirm
    window.page.header.entries["remove"].trigger()
    assert confirm.isVisible()
    click(confirm.keep)
    assert not confirm.isVisible()
    assert folder.is_dir()
    window.page.header.entries["remove"].trigger()
    click(confirm.go)
    driver.until(lambda: len(window.context.runs) == 0)
    assert not folder.exists()
    assert window.middle.currentWidget() is window.empty


def test_name_tags_and_notes_are_changed_in_the_window(driver: Driver) -> None:
    window, header = driver.window, driver.window.page.header
    run = driver.submit(script_config("steps.py"))
    driver.until_state("Completed")
    header.entries["label"].trigger()
    header.label_card.name.setText("The first")
    header.label_card.tags.setText("night")
    notes, low = header.label_card.notes, header.label_card.notes.height()
    notes.setPlainText("mind the step\nand the next")
    assert notes.height() > low
    notes.setFocus()
    QTest.keyClick(notes, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    driver.until(lambda: header.title.text() == "The first")
    assert header.labels.text() == "#night   mind the step and the next"
    header.entries["label"].trigger()
    assert notes.toPlainText() == "mind the step\nand the next"
    click(header.label_card.drop)
    row = window.panel.model.row(0)
    assert row is not None
    assert row.title == "The first" and row.detail.endswith("#night")
    known = window.context.runs.get(run.run_id)
    assert known is not None and known.tags == ["night"]


def test_a_run_that_failed_says_why_in_list_head_and_notification(driver: Driver) -> None:
    window = driver.window
    driver.submit(script_config("steps.py", params={"exit_code": 3, "complain": "the floor is wet"}))
    run = driver.until_state("Failed")
    assert run.reason
    row = window.panel.model.row(0)
    assert row is not None
    assert row.reason.lower() in run.reason.lower()
    assert window.page.header.reason.isVisible()
    driver.until(lambda: any("failed" in text for text in driver.told()))
    click(window.panel.chips["failed"])
    assert window.panel.model.rowCount() == 1
    click(window.panel.chips["waiting"])
    assert window.panel.model.rowCount() == 0
    click(window.panel.clear)
    assert window.panel.model.rowCount() == 1


def test_runs_of_others_appear_and_go_by_themselves(driver: Driver, client: Client) -> None:
    window = driver.window
    run = client.submit(script_config("steps.py"))
    driver.until(lambda: window.context.runs.get(run.run_id) is not None)
    client.wait(run.run_id)
    driver.until(lambda: (known := window.context.runs.get(run.run_id)) is not None and known.ended)
    client.remove(run.run_id)
    driver.until(lambda: window.context.runs.get(run.run_id) is None)


def test_closing_the_window_stops_no_run_and_leaves_no_thread(
    var: Path, client: Client, desktop: Desktop, qtbot: QtBot
) -> None:
    driver = Driver(desktop, qtbot)
    run = driver.submit(long_config())
    driver.until_state("Running")
    desktop.window.close()
    assert not [thread.name for thread in threading.enumerate() if thread.name in ("task", "sparklines")]
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("daemon ")]
    assert wait_for_status(client, run.run_id, "EXEC").status == "EXEC"
    end(client, run)
    assert Settings(var).get("geometry")
    assert Settings(var).get("last_configs")


def test_the_finder_opens_by_key_finds_a_run_and_shows_it(driver: Driver) -> None:
    window = driver.window
    first = driver.submit(script_config("steps.py", seed=1))
    driver.until_state("Completed")
    driver.submit(script_config("steps.py", steps=4, seed=2))
    driver.until(lambda: driver.run.run_id != first.run_id)
    click(window.toolbar.finding)
    assert window.finder.isVisible()
    QTest.keyClicks(window.finder.field, first.run_id.lower())
    assert len(window.finder.list.model.rows) == 1
    QTest.keyClick(window.finder.field, Qt.Key.Key_Return)
    assert not window.finder.isVisible()
    assert driver.run.run_id == first.run_id
    driver.until(lambda: all(run.ended for run in window.context.runs))


def test_the_finder_does_what_the_head_of_the_run_offers(driver: Driver) -> None:
    window = driver.window
    driver.submit(long_config())
    driver.until_state("Running")
    for words, state in (("pause", "Paused"), ("resume", "Running"), ("cancel", "Cancelled")):
        window.finder.open()
        QTest.keyClicks(window.finder.field, words)
        QTest.keyClick(window.finder.field, Qt.Key.Key_Return)
        if window.page.header.confirm.isVisible():
            click(window.page.header.confirm.go)
        driver.until_state(state)
    assert "cancel" not in window.page.header.offers()


def test_several_chosen_runs_are_compared_and_escape_goes_back(driver: Driver) -> None:
    window = driver.window
    for steps in (3, 4):
        before = len(window.context.runs)
        driver.submit(script_config("steps.py", steps=steps))
        driver.until(lambda before=before: len(window.context.runs) == before + 1)
        driver.until(lambda: all(run.ended for run in window.context.runs))
    assert not window.toolbar.compare.isEnabled()
    window.panel.list.selectAll()
    assert window.toolbar.compare.text() == "Compare 2 runs"
    click(window.toolbar.compare)
    assert window.cover.currentWidget() is window.cover.comparison
    window.cover.uncover()
    assert window.cover.comparison is None


@pytest.mark.parametrize("purpose", ["train", "policy", "resume", "script"])
def test_every_form_opens_over_the_window_and_closes_again(driver: Driver, purpose: str) -> None:
    window = driver.window
    click(getattr(window.toolbar, purpose))
    driver.until(lambda: window.cover.form is not None)
    assert window.cover.currentWidget() is window.cover.form
    window.cover.uncover()
    assert window.cover.form is None
    assert window.cover.currentWidget() is window.splitter


def test_a_form_that_was_closed_with_changes_can_be_had_back(driver: Driver) -> None:
    window = driver.window
    click(window.toolbar.train)
    driver.until(lambda: window.cover.form is not None)
    form = window.cover.form
    assert isinstance(form, CleanRLTrainForm)
    driver.until(lambda: hasattr(form, "steps") and form.isVisible() and form.footer.submit.isEnabled())
    form.steps.editor.setFocus()
    QTest.keyClicks(form.steps.editor, "7")
    QTest.keyClick(form.steps.editor, Qt.Key.Key_Escape)
    assert window.cover.form is None and window.cover.currentWidget() is window.splitter
    driver.until(lambda: any("closed with changes" in text for text in driver.told()))
    buttons = window.notification_area.findChildren(QPushButton)
    click(next(one for one in buttons if one.text() == "Open it again"))
    assert window.cover.form is form and window.cover.currentWidget() is form
    assert "7" in form.steps.shown()
    window.cover.uncover(done=True)


def test_the_theme_changes_at_once_and_is_remembered(driver: Driver, var: Path) -> None:
    before = theme.name
    driver.window._do("theme")
    assert theme.name != before
    driver.until(lambda: Settings(var).get("theme") == theme.name)
    driver.window._do("theme")
    assert theme.name == before


@pytest.mark.qt_no_exception_capture
def test_a_fault_anywhere_is_told_and_logged_and_the_window_goes_on(
    driver: Driver, var: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    catch_faults(driver.desktop.notifications)

    def fall(text: str) -> None:
        raise RuntimeError(text)

    QTimer.singleShot(0, lambda: fall("in a slot"))
    driver.until(lambda: any("in a slot" in text for text in driver.told()))
    thread = threading.Thread(target=fall, args=("in a thread",))
    thread.start()
    thread.join()
    driver.until(lambda: any("in a thread" in text for text in driver.told()))
    driver.desktop.tasks.run(lambda: fall("in a task"), lambda _: None)
    driver.until(lambda: any("in a task" in text for text in driver.told()))
    assert "G309" in (var / "logs" / "gym_gui.log").read_text()
    click(driver.window.toolbar.finding)
    assert driver.window.finder.isVisible()


def test_a_damaged_settings_file_is_as_none(var: Path, driver: Driver) -> None:
    (var / "gui").mkdir(exist_ok=True)
    (var / "gui" / "settings.json").write_text("{")
    assert Settings(var).get("theme") is None
