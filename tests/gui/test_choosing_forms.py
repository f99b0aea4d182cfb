"""The policy form with real files, without a run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from gym_gui.context import Context
from gym_gui.ui.widgets.cleanrl_forms import CleanRLPolicyForm, CleanRLResumeForm
from mosaic.contract.paths import VarPaths
from support.forms import WAIT_MS, check, form_context, open_form, type_into, until_answered
from support.policies import STEP, save_cartpole, save_pendulum


@pytest.fixture
def policies(var: Path) -> list[Path]:
    """Models of two runs."""
    runs = VarPaths(var).runs
    made = []
    for name, save in (("01AAAA", save_cartpole), ("01BBBB", save_pendulum)):
        place = runs / name / "runs" / "results"
        place.mkdir(parents=True)
        made.append(save(place))
    return made


@pytest.fixture
def context(var: Path, qapp: object) -> Iterator[Context]:
    with form_context(var) as made:
        yield made


def test_policies_are_found_by_themselves_and_searched(
    qtbot: QtBot, context: Context, policies: list[Path]
) -> None:
    form = open_form(qtbot, context, CleanRLPolicyForm)
    rows = form.source_picker.list.model.rows
    assert {row.key for row in rows} == {str(path) for path in policies}
    assert "No policy is chosen" in form.footer.told
    qtbot.keyClicks(form.source_picker.list.search, "cartpole")
    assert [row.key for row in form.source_picker.list.model.rows] == [str(policies[0])]


def test_the_environment_is_locked_until_it_is_overridden(
    qtbot: QtBot, context: Context, policies: list[Path]
) -> None:
    form = open_form(qtbot, context, CleanRLPolicyForm)
    form.source_picker.chosen.emit(str(policies[0]))
    qtbot.waitUntil(lambda: form.presenter.facts is not None, timeout=WAIT_MS)
    assert form.environment.box.currentText() == "CartPole-v1" and not form.environment.isEnabled()
    assert f"{STEP:,} steps" in form.about.text()
    assert form.presenter.order().asked["env_id"] is None
    form.override.click()
    assert form.environment.isEnabled()
    form.environment.box.setEditText("Acrobot-v1")
    assert form.presenter.order().asked["env_id"] == "Acrobot-v1"
    check(qtbot, form)
    assert form.report is not None and not form.report.ok and "has other observations" in form.report.sentence
    form.override.click()
    assert form.environment.box.currentText() == "CartPole-v1"
    check(qtbot, form)
    assert form.report is not None and form.report.ok, form.report


def test_a_module_that_only_the_file_names_is_asked_about(
    qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evilmod.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('imported').touch()"
    )
    policy = save_cartpole(tmp_path)
    card = policy.with_name("cart.policy.json")
    card.write_text(card.read_text().replace("CartPole-v1", "evilmod:CartPole-v1"))
    form = open_form(qtbot, context, CleanRLPolicyForm, {"policy": str(policy)})
    check(qtbot, form)
    assert form.report is not None and "names the module 'evilmod'" in form.report.sentence
    assert form.question.isVisible() and not (tmp_path / "imported").exists()
    form.question.keep.click()
    assert not form.question.isVisible() and "trust_modules" not in form.presenter.order().settings.extras
    check(qtbot, form)
    form.question.go.click()
    qtbot.waitUntil(lambda: form.report is not None and form.report.ok, timeout=WAIT_MS)
    assert (tmp_path / "imported").exists() and not form.question.isVisible()
    (config,) = form.report.configs
    assert config["metadata"]["worker"]["config"]["extras"]["trust_modules"] == ["evilmod"]


def test_how_it_is_played_goes_into_the_config(qtbot: QtBot, context: Context, policies: list[Path]) -> None:
    form = open_form(qtbot, context, CleanRLPolicyForm, {"policy": str(policies[0])})
    for name, text in (("batch_size", "5"), ("episodes", "20"), ("seed", "9"), ("gamma", "0.9")):
        type_into(qtbot, form.fields[name].editor, text)
    form.switches["repeat"].click()
    form.switches["deterministic"].click()
    assert form.footer.submit.text() == "Evaluate until cancelled"
    check(qtbot, form)
    assert form.report is not None and form.report.ok, form.report
    worker = form.report.configs[0]["metadata"]["worker"]["config"]
    extras = worker["extras"]
    assert (worker["seed"], extras["eval_batch_size"], extras["eval_episodes"]) == (9, 5, 20)
    assert (extras["eval_repeat"], extras["deterministic"], extras["gamma"]) == (True, False, 0.9)


def test_an_evaluation_is_copied_as_a_command(qtbot: QtBot, context: Context, policies: list[Path]) -> None:
    form = open_form(qtbot, context, CleanRLPolicyForm, {"policy": str(policies[0])})
    type_into(qtbot, form.fields["batch_size"].editor, "5")
    form.copy_command()
    until_answered(qtbot, form)
    words = shlex.split(QGuiApplication.clipboard().text())
    assert words[:3] == ["mosaic", "eval", str(policies[0])] and "--episodes" in words
    form.watch.count.state.put("live_mode", "off")
    form.edited()
    form.copy_command()
    until_answered(qtbot, form)
    assert "no options for some of this" in form.side.result.sentence.text()


def test_what_is_no_policy_is_refused_with_its_reason(
    qtbot: QtBot, context: Context, policies: list[Path]
) -> None:
    form = open_form(qtbot, context, CleanRLPolicyForm, {"policy": "nothing-here"})
    assert "There is no policy 'nothing-here'" in form.footer.told
    type_into(qtbot, form.source_picker.name, str(policies[1]))
    form.source_picker.name.editingFinished.emit()
    qtbot.waitUntil(lambda: form.presenter.facts is not None, timeout=WAIT_MS)
    assert form.environment.box.currentText() == "Pendulum-v1"


def test_a_model_can_be_trained_on_with_any_parameters(
    qtbot: QtBot, context: Context, policies: list[Path]
) -> None:
    form = open_form(qtbot, context, CleanRLResumeForm, {"checkpoint": str(policies[0])})
    # What lies under a closed heading goes with the form too.
    assert all(part.window() is form.window() for part in (form.fixed, form.watch, form.tracking))
    assert form.how.count() == 1 and "a new training starts" in form.about.text()
    assert "learning_rate" in form.fields
    type_into(qtbot, form.total.editor, "2048")
    type_into(qtbot, form.fields["learning_rate"].editor, "0.001")
    check(qtbot, form)
    assert form.report is not None and form.report.ok, form.report
    worker = form.report.configs[0]["metadata"]["worker"]["config"]
    assert worker["total_timesteps"] == 2048 and worker["extras"]["mode"] == "resume_training"
    assert worker["extras"]["algo_params"]["learning_rate"] == 0.001


def test_an_empty_var_folder_says_what_makes_checkpoints(qtbot: QtBot, context: Context) -> None:
    form = open_form(qtbot, context, CleanRLResumeForm)
    assert "no checkpoint yet" in form.source_picker.empty.text()
    assert "No checkpoint is chosen" in form.footer.told


def test_what_the_arrows_come_to_is_what_is_run(qtbot: QtBot, context: Context, policies: list[Path]) -> None:
    form = open_form(qtbot, context, CleanRLPolicyForm, {"policy": str(policies[0])})
    search = form.source_picker.list.search
    qtbot.keyClicks(search, "pendulum")
    assert form.presenter.order().asked["policy"] == str(policies[0]), "searching chooses nothing"
    qtbot.keyClick(search, Qt.Key.Key_Down)
    form.check()
    until_answered(qtbot, form)
    assert form.report is not None and form.report.ok, form.report
    assert form.report.configs[0]["metadata"]["worker"]["config"]["env_id"] == "Pendulum-v1"
    assert form.source_picker.name.text() == str(policies[1])


def test_a_row_that_is_being_read_stays_marked(qtbot: QtBot, context: Context, policies: list[Path]) -> None:
    form = open_form(qtbot, context, CleanRLPolicyForm, {"policy": str(policies[0])})
    picker = form.source_picker
    at = next(n for n, row in enumerate(picker.list.model.rows) if row.key == str(policies[1]))
    area = picker.list.view.visualRect(picker.list.model.index(at))
    qtbot.mouseClick(picker.list.view.viewport(), Qt.MouseButton.LeftButton, pos=area.center())
    form.switches["repeat"].click()
    assert [index.row() for index in picker.list.view.selectedIndexes()] == [at]
    qtbot.waitUntil(lambda: form.presenter.facts.path == str(policies[1]), timeout=WAIT_MS)


def test_a_change_makes_the_result_of_the_check_old(
    qtbot: QtBot, context: Context, policies: list[Path]
) -> None:
    form = open_form(qtbot, context, CleanRLPolicyForm, {"policy": str(policies[0])})
    result = form.side.result
    check(qtbot, form)
    assert result.headline.text().startswith("✓")
    form.switches["repeat"].click()
    assert result.headline.text().startswith("Out of date") and result.headline.property("role") == "warn"
    form.check()
    form.switches["repeat"].click()
    until_answered(qtbot, form)
    assert result.headline.text().startswith("Out of date"), "what was asked is not what stands there now"
    check(qtbot, form)
    assert result.headline.text().startswith("✓")
