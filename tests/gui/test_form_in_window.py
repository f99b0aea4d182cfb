"""A form in the whole window, by the keyboard: opened, checked, submitted, and its run watched to the end."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gym_gui.ui.widgets.cleanrl_forms import CleanRLPolicyForm, CleanRLTrainForm
from support.forms import Told, type_into
from support.window import Driver


def opened(driver: Driver) -> CleanRLTrainForm:
    """The train form that lies over the window, once it can be used."""
    driver.until(lambda: driver.window.cover.form is not None)
    form = driver.window.cover.form
    assert isinstance(form, CleanRLTrainForm)
    driver.until(lambda: form.footer.submit.isEnabled())
    return form


def test_a_run_goes_from_the_form_to_its_end_and_back_into_a_form(driver: Driver) -> None:
    window = driver.window
    QTest.keyClick(window, Qt.Key.Key_T, Qt.KeyboardModifier.ControlModifier)
    form = opened(driver)
    type_into(driver.qtbot, form.steps.editor, "512")
    type_into(driver.qtbot, form.sheet.field("eval_episodes").editor, "0")
    QTest.keyClick(form, Qt.Key.Key_F5)
    driver.until(lambda: form.report is not None)
    assert form.report is not None and form.report.ok, form.report
    assert window.cover.form is form, "checking starts nothing"
    QTest.keyClick(form, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    driver.until(lambda: window.cover.form is None)
    run = driver.until_state("Completed", "Failed")
    assert run.outcome == "completed", run.reason
    assert run.worker_config["total_timesteps"] == 512

    window.open_form("train", {"config": run.config})
    form = opened(driver)
    assert form.presenter.run.value("total_timesteps") == 512
    assert form.presenter.params.changes() == {"eval_episodes": 0}
    QTest.keyClick(form, Qt.Key.Key_Escape)
    driver.until(lambda: window.cover.form is None)


def test_train_goes_back_to_the_form_that_has_changes_in_it(driver: Driver) -> None:
    window, told = driver.window, Told(driver.window.context.notifications)
    window.toolbar.form_wanted.emit("train")
    form = opened(driver)
    type_into(driver.qtbot, form.steps.editor, "777")

    window.toolbar.form_wanted.emit("train")
    driver.until(lambda: "still has the changes" in " ".join(told.texts))
    assert window.cover.form is form, "what was typed stands"

    window.toolbar.form_wanted.emit("policy")
    driver.until(lambda: isinstance(window.cover.form, CleanRLPolicyForm))
    other = window.cover.form
    assert isinstance(other, CleanRLPolicyForm)
    driver.until(lambda: other.footer.check.isEnabled())
    other.switches["repeat"].click()
    window.toolbar.form_wanted.emit("train")
    driver.until(lambda: window.cover.form is form)
    assert form.steps.editor.text() == "777"  # type: ignore[attr-defined]
    window.toolbar.form_wanted.emit("policy")
    driver.until(lambda: window.cover.form is other)

    QTest.keyClick(other, Qt.Key.Key_Escape)
    window.toolbar.form_wanted.emit("train")
    driver.until(lambda: window.cover.form is form)
    shown = told.notes[-1]
    assert shown.action is not None
    shown.action[1]()
    assert opened(driver).steps.editor.text() == "500,000"  # type: ignore[attr-defined]
