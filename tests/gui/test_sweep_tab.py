"""The Sweep tab and its form in the real window: sweeps are searched, looked at, stopped and gone on with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from gym_gui.models.sweep import about_trial
from gym_gui.ui.views.overview import OverviewView
from gym_gui.ui.views.sweep import SweepView
from gym_gui.ui.widgets.sweep_form import SweepForm
from mosaic.client import Client, RunRecord
from mosaic.sweeps.configs import sweep_config
from mosaic.sweeps.study import COMPLETE, FAILED, RUNNING, Study, StudyWriter, Trial
from support.records import plain_record
from support.window import Driver
from sweeps.conftest import quick_spec, quick_table

pytest.importorskip("optuna")
pytestmark = pytest.mark.xdist_group("gui")


@pytest.fixture(autouse=True)
def two_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOSAIC_CPUS", "2")


def sweep(client: Client, **changes: Any) -> RunRecord:
    return client.submit(sweep_config(quick_spec(**changes)))


def opened(driver: Driver, run: RunRecord) -> SweepView:
    """The tab of a sweep."""
    driver.window.select_run(run.run_id)
    driver.until(lambda: SweepView in driver.window.page.views and driver.run.run_id == run.run_id)
    view = driver.window.page.views[SweepView]
    assert isinstance(view, SweepView)
    driver.until(lambda: view.run.run_id == run.run_id and view.isVisible())
    return view


def written(folder: Path, *trials: Trial, **told: Any) -> RunRecord:
    """A sweep that no daemon has, with a study in its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    usual = {"objectives": ("charts/episodic_return (last)",), "directions": ("maximize",), "wanted": 10}
    StudyWriter(folder).begin(Study("s", **{**usual, **told}, trials=trials))
    config = {"metadata": {"worker": {"type": "sweep", "config": {}}, "ui": {}}}
    return plain_record(
        f"0{folder.name:A>25}",
        run_name=f"Sweep {folder.name}",
        worker_type="sweep",
        status="EXEC",
        run_dir=str(folder),
        started_at=1.0,
        config=config,
    )


def shown(driver: Driver, run: RunRecord) -> SweepView:
    """The tab of a sweep that is only written down."""
    driver.desktop.link.runs_changed.emit([run])
    return opened(driver, run)


def test_a_sweep_is_watched_to_its_end_and_its_best_trained(driver: Driver, client: Client) -> None:
    run = sweep(client, trials=6)
    view = opened(driver, run)
    tabs = [driver.window.page.bar.tabText(at) for at in range(driver.window.page.bar.count())]
    assert tabs[0] == "Sweep" and OverviewView.title not in tabs
    driver.until(lambda: view.study is not None and len(view.study.with_state(COMPLETE)) == 6)
    driver.until(lambda: view.run.ended and view.settled)
    assert view.counts.text() == "6 of 6 trials: 6 complete"
    assert view.study is not None and view.study.best is not None
    best = view.study.best
    assert f"in trial {best.number}: lr" in view.best.text()
    driver.until(lambda: view.feed.weights or not view.feed.weighing)

    # One row in the list, which opens.
    model = driver.window.panel.model
    driver.until(lambda: (row := model.listing.row(run.run_id)) is not None and row.count == 6)
    assert model.rowCount() == 1
    model.set_opened(run.run_id, True)
    assert model.rowCount() == 7

    # The table leads to the run of a trial, and a click on the sweep back.
    view.table.mark(best.number)
    QTest.keyClick(view.table, Qt.Key.Key_Return)
    driver.until(lambda: driver.run.run_id == best.runs[0])
    driver.window.select_run(run.run_id)
    driver.until(lambda: view.run.run_id == run.run_id and view.isVisible() and view.picture is not None)

    assert view.orders.train.text() == "Train with the best"
    view.orders.train.click()
    card = view.orders.best_card
    assert card.isVisible() and card.seeds.text() == "2-4"
    card.seeds.setText("1, 7")
    assert "Seed 1 was used by the search" in card.told.text()
    card.steps.setText("many")
    card.go.click()
    assert card.isVisible() and "whole number" in card.told.text()
    card.steps.setText("2k")
    card.go.click()
    driver.until(lambda: any("2 runs are queued" in text for text in driver.told()))
    made = [one for one in client.runs() if one.config["metadata"]["ui"].get("best_of") == run.run_id]
    for one in made:
        assert client.wait(one.run_id, 90).outcome == "completed"
    asked = [one.worker_config for one in made]
    assert sorted(one["seed"] for one in asked) == [1, 7]
    assert all(one["extras"]["algo_params"]["lr"] == best.params["lr"] for one in asked)
    assert all(one["total_timesteps"] == 2000 for one in asked)


def test_a_sweep_is_stopped_and_goes_on(driver: Driver, client: Client) -> None:
    run = sweep(client, trials=50, set={"pause": 0.05})
    view = opened(driver, run)
    driver.until(lambda: view.study is not None and len(view.study.with_state(COMPLETE)) >= 2)
    view.orders.stop.click()
    assert view.orders.confirm.isVisible()
    view.orders.confirm.go.click()
    driver.until(lambda: view.run.ended)
    driver.until(lambda: view.orders.more.isVisible() and not view.orders.stop.isVisible())
    assert not client.runs(filter=f"sweep={run.run_id}", statuses=["EXEC", "INIT", "PAUSE"])
    view.orders.more.click()
    card = view.orders.more_card
    assert int(card.number.text()) > 2
    card.number.setText("0")
    card.go.click()
    assert card.isVisible()
    card.number.setText("1")
    card.go.click()
    driver.until(lambda: driver.run.run_id != run.run_id and driver.run.worker_type == "sweep")
    driver.until(lambda: view.run.run_id == driver.run.run_id and view.study is not None)
    client.cancel(driver.run.run_id)
    client.wait(driver.run.run_id, 60)


def test_what_is_marked_in_one_chart_is_marked_in_all(driver: Driver, tmp_path: Path) -> None:
    space = {
        "lr": {"low": 1e-4, "high": 1e-1, "log": True, "step": None, "whole": False},
        "kind": {"choices": ["a", "b"]},
    }
    trials = [
        Trial(
            at,
            COMPLETE,
            {"lr": 10.0 ** -(1 + at % 3), "kind": "ab"[at % 2]},
            (float(at),),
            {10: at / 2, 20: at},
        )
        for at in range(8)
    ]
    view = shown(driver, written(tmp_path / "marks", *trials, distributions=space))
    driver.until(lambda: view.picture is not None and view.settled)
    assert len(view.slices) == 2 and view.slices[0].figure.x.log
    history = view.history
    driver.until(lambda: history.drawn)
    place = next(
        QPointF(x, y)
        for x in range(0, history.width(), 2)
        for y in range(0, history.height(), 2)
        if history.trial_at(QPointF(x, y)) == 5
    )
    QTest.mouseClick(history, Qt.MouseButton.LeftButton, pos=place.toPoint())
    assert view.table.number == 5
    assert all(plot._marked == 5 for plot in view._plots())
    assert view.orders.train.text() == "Train with trial 5"
    assert view.study is not None
    assert about_trial(view.study, trials[5]).startswith("Trial 5, complete")
    # Each of them paints the mark without a fault, also where the trial has no place.
    for plot in view._plots():
        plot.grab()
    view.mark(99)
    for plot in view._plots():
        plot.grab()


def test_a_live_study_is_followed_and_what_is_marked_stays(driver: Driver, tmp_path: Path) -> None:
    folder = tmp_path / "live"
    run = written(folder, Trial(0, COMPLETE, {"lr": 0.1}, (1.0,)), Trial(1, RUNNING, {"lr": 0.2}))
    view = shown(driver, run)
    driver.until(lambda: view.picture is not None and view.settled)
    view.mark(1)
    StudyWriter(folder).add(1, state=FAILED, reason="exit code 1: it is broken")
    StudyWriter(folder).add(2, state=COMPLETE, params={"lr": 0.3}, values=[7.0])
    driver.until(lambda: view.study is not None and len(view.study.trials) == 3 and view.settled)
    assert view.table.number == 1 and "7.00" in view.best.text()
    assert view.counts.text() == "3 of 10 trials: 2 complete, 1 failed"
    rows = view.table.rows
    reasons = [rows.index(row, rows.table.columns.index("reason")).data() for row in range(3)]
    assert "exit code 1: it is broken" in reasons
    view.table.horizontalHeader().sectionClicked.emit(rows.table.columns.index("value"))
    assert rows.trial(0).number == 2


def test_several_objectives_have_a_front_and_are_chosen_from(driver: Driver, tmp_path: Path) -> None:
    trials = [Trial(at, COMPLETE, {"lr": 0.1 * at}, (float(at), float(-at))) for at in range(5)]
    told = {"objectives": ("a/x (last)", "b/y (last)"), "directions": ("maximize", "maximize")}
    view = shown(driver, written(tmp_path / "front", *trials, **told))
    driver.until(lambda: view.picture is not None and view.settled and len(view.fronts) == 1)
    assert view.objective.isVisible() and not view.orders.train.isEnabled()
    assert "Mark a trial" in view.orders.train.toolTip()
    view.objective.setCurrentIndex(1)
    view.objective.activated.emit(1)
    driver.until(lambda: view.picture is not None and view.picture.objective == 1)
    assert view.history.figure.y.title == "y"
    view.mark(2)
    assert view.orders.train.isEnabled() and view.orders.train.text() == "Train with trial 2"


def test_columns_have_room_for_what_comes_after_the_table_was_opened(driver: Driver, tmp_path: Path) -> None:
    space = {"a_long_parameter": {"low": 0.0, "high": 1.0, "log": False, "step": None, "whole": False}}
    view = shown(driver, written(tmp_path / "new", distributions=space))
    driver.until(lambda: view.picture is not None and view.settled)
    writer, wide = StudyWriter(tmp_path / "new"), "01M7TYT7EH0JF01M7TYT7EH0JF"
    for at, told in enumerate((0.5, 0.000123456)):
        writer.add(at, state=RUNNING, params={"a_long_parameter": told}, runs=[wide])
        driver.until(lambda at=at: view.table.rows.rowCount() == at + 1)
        for column in range(view.table.rows.columnCount()):
            needed = max(view.table.sizeHintForColumn(column), view.table._head.sectionSizeHint(column))
            assert view.table.columnWidth(column) >= needed, view.table.rows.table.columns[column]


def test_a_sweep_with_fewer_pictures_follows_one_with_more(driver: Driver, tmp_path: Path) -> None:
    names, ways = ("a/x", "b/y", "c/z"), ("maximize",) * 3
    three = [Trial(at, COMPLETE, {"lr": 0.1 * at}, (1.0, float(at), float(-at))) for at in range(5)]
    view = shown(driver, written(tmp_path / "three", *three, objectives=names, directions=ways))
    driver.until(lambda: view.picture is not None and view.settled and len(view.fronts) == 3)
    cells = [Trial(0, COMPLETE, {"algo": "ppo", "env": "A-v0", "seed": 1}, (1.0,), runs=("r",))]
    space = {"algo": {"choices": ["ppo"]}, "env": {"choices": ["A-v0"]}}
    bench = written(tmp_path / "bench", *cells, benchmark=True, distributions=space)
    for run, fronts in ((bench, 1), (written(tmp_path / "one", three[0], objectives=("x",)), 0)):
        assert shown(driver, run) is view
        driver.until(lambda: view.picture is not None and view.settled)
        seen = [card.isVisibleTo(view) for card in view._front_cards]
        assert seen == [at < fronts for at in range(3)]
        assert view.importance_card.isVisibleTo(view) == (run is not bench)
        assert view.history_card.isVisibleTo(view) == (run is not bench)


@pytest.mark.parametrize("lines", [None, "", "{torn", '{"format": 1}\n', "nothing\n" * 3])
def test_a_study_that_is_not_there_or_damaged_is_told(
    driver: Driver, tmp_path: Path, lines: str | None
) -> None:
    run = written(tmp_path / "bad")
    path = tmp_path / "bad" / "study.jsonl"
    path.unlink()
    if lines is not None:
        path.write_text(lines)
    view = shown(driver, run)
    driver.until(lambda: "trials will appear here" in view.empty.text())
    assert view.empty.isVisible() and not view.orders.train.isEnabled()


def form(driver: Driver, prefill: dict[str, Any] | None = None) -> SweepForm:
    driver.window.open_form("sweep", prefill or {})
    driver.until(lambda: isinstance(driver.window.cover.form, SweepForm))
    made = driver.window.cover.form
    assert isinstance(made, SweepForm)
    driver.until(lambda: made._source is not None)
    return made


def test_a_form_checks_as_the_command_line_does_and_starts_a_sweep(
    driver: Driver, tmp_path: Path, client: Client
) -> None:
    from mosaic.sweeps.toml_text import to_toml

    path = tmp_path / "quick.toml"
    path.write_text(to_toml(quick_table(trials=3)))
    made = form(driver)
    made.open_file(path)
    driver.until(lambda: made.draft.state.said("trials") == "3")
    assert 'metric = "charts/episodic_return"' in made.side.text.toPlainText()
    made.draft.lines[made.draft.algos[0]][0].low = "2"
    made._edited()
    made.check()
    assert made.report is not None and "start below the end" in made.report.sentence
    made.draft.lines[made.draft.algos[0]][0].low = "1e-5"
    made.draft.state.set("metric", "charts/episodic_return")
    made._edited()
    made.check()
    driver.until(lambda: made.report is not None)
    assert made.report is not None and made.report.ok, made.report.sentence
    assert ("trials", "3") in made.report.facts
    saved = tmp_path / "saved.toml"
    made.save(saved)
    driver.until(saved.exists)
    assert saved.read_text() == made.side.text.toPlainText()
    made.submit()
    driver.until(lambda: driver.window.cover.form is None)
    driver.until(lambda: driver.window.page.run is not None and driver.run.worker_type == "sweep")
    assert client.wait(driver.run.run_id, 120).outcome == "completed"
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob("mosaic-sweep-*.toml"))


def test_what_optuna_refuses_is_told_in_the_form(driver: Driver) -> None:
    made = form(driver, {"algo": "ppo", "env_id": "CartPole-v1", "set": {"gamma": 0.97}})
    assert made.draft.table()["set"] == {"gamma": 0.97}
    made.draft.state.set("sampler", "grid")
    made._edited()
    made.check()
    driver.until(lambda: made.report is not None)
    assert made.report is not None and not made.report.ok
    assert "needs a step or choices for every parameter" in made.report.sentence
    driver.window.cover.uncover()


def test_a_line_is_typed_dropped_and_added(driver: Driver) -> None:
    made = form(driver, {"algo": "ppo"})
    (lines,) = made.lines.values()
    first = lines.lines[0]
    assert {line.choices.cursorPosition() for line in lines.lines} == {0}
    field: QLineEdit = first.low
    field.selectAll()
    QTest.keyClicks(field, "5")
    assert "start below the end" in first.help.text() and "start below the end" in made.footer.told
    first.away.click()
    assert first.draft.name not in made.draft.table()["space"]
    at = lines.more.findText(first.draft.name)
    lines.more.setCurrentIndex(at)
    lines.more.activated.emit(at)
    assert first.draft.name in made.draft.table()["space"]
    others = made.source.others(made.draft)
    assert "dqn" in others and not {"ppo", "ppo_atari", "sac_continuous_action"} & set(others)
    made.add_algorithm("dqn")
    assert set(made.draft.table()["space"]) == {"ppo", "dqn"} and len(made.lines) == 2
    made._drop_algorithm("dqn")
    assert made.draft.table()["algo"] == "ppo"
    assert made.has_changes
    driver.window.cover.uncover()


def test_the_train_form_leads_to_the_search(driver: Driver) -> None:
    from gym_gui.ui.widgets.cleanrl_forms import CleanRLTrainForm

    driver.window.open_form("train", {"algo": "ppo", "env_id": "Acrobot-v1", "total_timesteps": 7000})
    driver.until(lambda: isinstance(driver.window.cover.form, CleanRLTrainForm))
    train = driver.window.cover.form
    assert isinstance(train, CleanRLTrainForm)
    driver.until(lambda: train.footer.submit.isEnabled())
    train.presenter.params.put("learning_rate", 0.002)
    train.edited()
    train.sweep.click()
    driver.until(lambda: isinstance(driver.window.cover.form, SweepForm))
    made = driver.window.cover.form
    assert isinstance(made, SweepForm)
    driver.until(lambda: made._source is not None)
    table = made.draft.table()
    assert (table["algo"], table["env"], table["total_timesteps"]) == ("ppo", "Acrobot-v1", 7000)
    assert table["set"] == {"learning_rate": 0.002} and "learning_rate" not in table["space"]
    driver.window.cover.uncover()


def test_a_sweep_is_run_again_with_changes(driver: Driver, client: Client) -> None:
    run = sweep(client, trials=2)
    opened(driver, run)
    client.wait(run.run_id, 90)
    driver.until(lambda: driver.run.ended)
    driver.window.actions_on_runs.do("change", driver.run, [driver.run])
    driver.until(lambda: isinstance(driver.window.cover.form, SweepForm))
    made = driver.window.cover.form
    assert isinstance(made, SweepForm)
    driver.until(lambda: made._source is not None)
    assert made.draft.table()["space"] == {"lr": {"low": 1e-5, "high": 1.0, "log": True}}
    driver.window.cover.uncover()
