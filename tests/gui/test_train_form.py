"""The train form, used as a person uses it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from gym_gui.context import Context
from gym_gui.models.form_choices import NONE, OWN
from gym_gui.ui.widgets.cleanrl_forms import CleanRLTrainForm
from gym_gui.ui.widgets.form_side import RESULT
from mosaic.client import Client
from support.forms import (
    WAIT_MS,
    Told,
    check,
    form_context,
    open_form,
    pick,
    submit,
    type_into,
    until_answered,
)


@pytest.fixture
def context(var: Path, qapp: object) -> Iterator[Context]:
    with form_context(var) as made:
        yield made


@pytest.fixture
def form(qtbot: QtBot, context: Context) -> CleanRLTrainForm:
    return open_form(qtbot, context, CleanRLTrainForm)


def test_a_changed_parameter_is_marked_and_one_click_from_its_default(
    qtbot: QtBot, form: CleanRLTrainForm
) -> None:
    field = form.sheet.fields["learning_rate"]
    assert field.mark.isHidden()
    type_into(qtbot, field.editor, "0.001")
    assert not field.mark.isHidden() and "0.00025" in field.badge.text()
    assert "1 changed" in form.sheet.changed.text()
    qtbot.mouseClick(field.badge, Qt.MouseButton.LeftButton)
    assert (field.shown(), field.mark.isHidden()) == ("0.00025", True)
    assert "default" in form.sheet.changed.text()


def test_a_changed_field_is_left_and_brought_back_by_key(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    field = form.sheet.fields["learning_rate"]
    type_into(qtbot, field.editor, "0.001")
    assert field.badge.focusPolicy() == Qt.FocusPolicy.NoFocus
    qtbot.keyClick(field.editor, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
    assert (field.shown(), field.mark.isHidden()) == ("0.00025", True)
    qtbot.keyClick(field.editor, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
    assert field.shown() == "0.00025"


def test_all_parameters_go_back_at_once(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    type_into(qtbot, form.sheet.fields["gamma"].editor, "0.9")
    pick(form.sheet.fields["anneal_lr"].editor, "off")
    assert form.presenter.params.changes() == {"anneal_lr": False, "gamma": 0.9}
    qtbot.mouseClick(form.sheet.reset_all, Qt.MouseButton.LeftButton)
    assert form.presenter.params.changes() == {}
    assert form.sheet.fields["gamma"].shown() == "0.99"


def test_a_wrong_value_says_what_is_right_under_its_field(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    field = form.sheet.fields["num_envs"]
    type_into(qtbot, field.editor, "none")
    assert "must be a whole number" in field.help.text() and field.editor.property("invalid")
    assert "num_envs" in form.footer.told
    qtbot.mouseClick(form.footer.submit, Qt.MouseButton.LeftButton)
    assert form.side.tabs.currentIndex() == RESULT and "num_envs" in form.side.result.sentence.text()
    assert not form.busy, "nobody was asked"


def test_an_optional_parameter_may_be_empty(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    field = form.sheet.field("target_kl")
    type_into(qtbot, field.editor, "0.02")
    assert form.presenter.params.changes() == {"target_kl": 0.02}
    type_into(qtbot, field.editor, "")
    assert form.presenter.params.changes() == {} and form.presenter.problems() == []


def test_an_algorithm_brings_its_parameters_and_its_page(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    qtbot.waitUntil(lambda: "proximal" in form.side.about.text, timeout=WAIT_MS)
    pick(form.algorithm, "sac_continuous_action")
    assert "autotune" in form.sheet.fields and "clip_coef" not in form.sheet.fields
    assert form.presenter.problems() == [], "the environment is one that fits"
    assert form.side.tabs.tabToolTip(0) == "About sac_continuous_action"
    qtbot.waitUntil(lambda: "soft actor-critic" in form.side.about.text, timeout=WAIT_MS)


def test_an_environment_is_searched_and_chosen(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    form.environment.box.showPopup()
    picker = form.environment.picker
    assert picker.isVisible()
    qtbot.keyClicks(picker.list.search, "acrob")
    assert [row.key for row in picker.list.model.rows] == ["Acrobot-v1", "acrob"]
    qtbot.keyClick(picker.list.search, Qt.Key.Key_Return)
    assert not picker.isVisible() and form.presenter.env_id() == "Acrobot-v1"
    assert form.environment.box.currentText() == "Acrobot-v1"
    assert "6 numbers in, 3 actions" in form.environment.help.text()


def test_the_list_of_environments_is_used_with_the_keyboard_alone(
    qtbot: QtBot, form: CleanRLTrainForm
) -> None:
    qtbot.keyClick(form.environment.box, Qt.Key.Key_Down)
    picker = form.environment.picker
    assert picker.isVisible()
    qtbot.keyClick(picker.list.search, Qt.Key.Key_Escape)
    assert not picker.isVisible() and form.presenter.env_id() == "CartPole-v1"
    qtbot.keyClick(form.environment.box, Qt.Key.Key_Down)
    qtbot.keyClicks(picker.list.search, "mountaincar")
    qtbot.keyClick(picker.list.search, Qt.Key.Key_Down)
    qtbot.keyClick(picker.list.search, Qt.Key.Key_Return)
    assert form.presenter.env_id() == "MountainCar-v0"


def test_a_click_or_a_letter_in_the_name_opens_the_list(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    box = form.environment.box
    qtbot.mouseClick(box.lineEdit(), Qt.MouseButton.LeftButton)
    picker = form.environment.picker
    assert picker.isVisible() and picker.list.search.text() == ""
    picker.hide()
    qtbot.keyClick(box, "a")
    assert picker.isVisible() and picker.list.search.text() == "a"
    picker.list.search.setText("mine:Own-v0")
    qtbot.keyClick(picker.list.search, Qt.Key.Key_Return)
    assert form.presenter.env_id() == "mine:Own-v0" == box.currentText()
    box.showPopup()
    assert picker.list.search.text() == "mine:Own-v0", "an id of one's own is changed there"
    picker.hide()


def test_what_does_not_fit_is_shown_on_demand_and_refused(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    form.environment.box.showPopup()
    picker = form.environment.picker
    qtbot.keyClicks(picker.list.search, "pendulum-v1")
    keys = [row.key for row in picker.list.model.rows]
    assert "Pendulum-v1" not in keys
    picker.everything.setChecked(True)
    assert "Pendulum-v1" in [row.key for row in picker.list.model.rows]
    picker.list.chosen.emit("Pendulum-v1")
    assert "ppo takes" in form.environment.help.text() and "ppo takes" in form.footer.told


def test_a_missing_set_is_shown_with_the_command_that_installs_it(
    qtbot: QtBot, form: CleanRLTrainForm
) -> None:
    form.presenter.take_installed({"box2d": False})
    form.environment.box.setEditText("LunarLander-v3")
    assert form.install.isVisible() and "box2d" in form.install.button.text()
    assert "mosaic extras install box2d" in form.install.command.text()
    check(qtbot, form)
    assert form.report is not None and not form.report.ok and "box2d" in form.footer.told
    form.environment.box.setEditText("CartPole-v1")
    assert not form.install.isVisible()


def test_seeds_say_how_many_runs_will_start(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    type_into(qtbot, form.seeds.editor, "1, 2, 3")
    assert form.footer.submit.text() == "Train 3 runs" and form.seeds.help.text() == "3 runs"
    type_into(qtbot, form.seeds.editor, "1-")
    assert "1-5" in form.seeds.help.text() and form.footer.submit.text() == "Train"


def test_a_curriculum_is_chosen_and_changed(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    pick(form.curriculum, "BABYAI_DOORKEY_CURRICULUM")
    assert form.stages.isVisible() and form.stages.table.rowCount() == 4
    assert not form.environment.isEnabled()
    form.stages.table.item(0, 1).setText("50,000")
    assert form.presenter.stages.rows[0].ends == "50,000" and form.curriculum.currentText() == OWN
    check(qtbot, form)
    assert form.report is not None and form.report.ok, form.report
    pick(form.curriculum, NONE)
    assert not form.stages.isVisible() and form.environment.isEnabled()


def test_the_check_runs_beside_the_window_and_is_forgotten_by_a_change(
    qtbot: QtBot, form: CleanRLTrainForm
) -> None:
    check(qtbot, form)
    assert form.footer.told.startswith("✓ Checked") and "nothing missing" in form.footer.told
    assert ("runs", "cleanrl_worker.algorithms.ppo") in form.side.result.facts
    type_into(qtbot, form.sheet.fields["gamma"].editor, "0.9")
    assert form.report is None and "Checked" not in form.footer.told


def test_what_is_changed_during_a_check_is_not_taken_as_checked(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    form.check()
    type_into(qtbot, form.sheet.fields["gamma"].editor, "0.5")
    until_answered(qtbot, form)
    assert form.report is None and "Checked" not in form.footer.told
    assert form.sheet.fields["gamma"].shown() == "0.5"


def test_the_command_is_copied(qtbot: QtBot, context: Context, form: CleanRLTrainForm) -> None:
    told = Told(context.notifications)
    type_into(qtbot, form.seeds.editor, "4-6")
    qtbot.mouseClick(form.footer.copy, Qt.MouseButton.LeftButton)
    until_answered(qtbot, form)
    command = QGuiApplication.clipboard().text()
    assert command.startswith("mosaic train ppo CartPole-v1") and "--seeds 4-6" in command
    assert any("clipboard" in text for text in told.texts)


def test_tracking_asks_for_what_it_needs_and_hides_the_key(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    assert not form.tracking.fields
    form.tracking.wandb.click()
    key = form.tracking.fields["wandb_api_key"]
    assert key.isVisible() and isinstance(key.editor, QLineEdit)
    type_into(qtbot, key.editor, "very-secret")
    assert key.editor.echoMode() == QLineEdit.EchoMode.Password
    assert form.presenter.run.text("wandb_api_key") == "very-secret"
    form.tracking.wandb.click()
    assert not key.isVisible() and "wandb_api_key" not in form.presenter.order().asked["extras"]


def test_sections_fold_and_say_what_is_set(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    assert not form.resources.is_open and "1 CPU · no GPU" in form.resources.summary
    form.resources.open()
    type_into(qtbot, form.resources.fields["cpus"].editor, "2")
    form.resources.open(False)
    assert "2 CPUs" in form.resources.summary


def test_a_form_without_a_daemon_says_so(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    form.submit()
    until_answered(qtbot, form)
    assert "daemon" in form.footer.told and form.footer.submit.isEnabled()


def test_leaving_is_free_while_nothing_is_submitted(qtbot: QtBot, form: CleanRLTrainForm) -> None:
    with qtbot.waitSignal(form.closed):
        qtbot.mouseClick(form.footer.cancel, Qt.MouseButton.LeftButton)
    assert form.leave_safely()


def test_a_form_is_filled_from_a_run(qtbot: QtBot, context: Context) -> None:
    form = open_form(
        qtbot, context, CleanRLTrainForm, {"algo": "dqn", "env_id": "Acrobot-v1", "seeds": [3, 4]}
    )
    assert (form.algorithm.currentText(), form.environment.box.currentText()) == ("dqn", "Acrobot-v1")
    assert form.footer.submit.text() == "Train 2 runs"


def test_runs_are_trained_from_the_form_to_their_end(qtbot: QtBot, var: Path, qapp: object) -> None:
    with form_context(var, live=True) as context:
        form = open_form(qtbot, context, CleanRLTrainForm, {"total_timesteps": 1024})
        type_into(qtbot, form.seeds.editor, "1, 2")
        type_into(qtbot, form.sheet.field("eval_episodes").editor, "1")
        qtbot.waitUntil(lambda: context.link.state == "alive", timeout=WAIT_MS)
        runs = submit(qtbot, form)
        assert [run.worker_config["seed"] for run in runs] == [1, 2]
        with Client.connect(var) as client:
            ended = [client.wait(run.run_id, timeout=120) for run in runs]
        assert [run.outcome for run in ended] == ["completed", "completed"]
        assert ended[0].worker_config["extras"]["algo_params"] == {"eval_episodes": 1}
