"""The tabs of real runs, in the real window."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PySide6.QtGui import QGuiApplication

from gym_gui.ui.views.artifacts import ArtifactsView
from gym_gui.ui.views.base import RunView
from gym_gui.ui.views.charts import BATCHES, ChartsView
from gym_gui.ui.views.logs import ConfigView
from gym_gui.ui.views.overview import OverviewView
from gym_gui.ui.widgets.plot_area import PlotArea
from mosaic.client import Client, RunRecord, eval_config, train_config
from support.runs import end, script_config
from support.window import Driver

if TYPE_CHECKING:
    from conftest import RunMosaic

pytestmark = pytest.mark.xdist_group("gui")


def trained(client: Client, steps: int = 4000, **options: object) -> RunRecord:
    config = train_config("ppo", "CartPole-v1", total_timesteps=steps, params={"save_model": True}, **options)
    run = client.wait(client.submit(config).run_id, 120)
    assert run.outcome == "completed", run.reason
    return run


def open_tab(driver: Driver, run: RunRecord, kind: type[RunView]) -> RunView:
    """Select a run and go to one of its tabs."""
    window = driver.window
    driver.until(lambda: window.context.runs.get(run.run_id) is not None)
    window.select_run(run.run_id)
    bar = window.page.bar

    def place() -> int:
        titles = [bar.tabText(at) for at in range(bar.count())]
        shown = window.page.run is not None and window.page.run.run_id == run.run_id
        return titles.index(kind.title) if shown and kind.title in titles else -1

    driver.until(lambda: place() >= 0)
    bar.setCurrentIndex(place())
    driver.until(lambda: kind in window.page.views)
    view: RunView = window.page.views[kind]
    return view


def test_a_finished_run_in_every_tab(driver: Driver, client: Client, run_mosaic: RunMosaic) -> None:
    run = trained(client)

    overview = open_tab(driver, run, OverviewView)
    assert isinstance(overview, OverviewView)
    driver.until(lambda: overview.charts.main.plot.lines and len(overview.charts.main.plot.lines[0].x) > 0)
    assert overview.charts.main.title.text() == "charts/episodic_return"
    # The curves may be there before the news that it has ended.
    driver.until(lambda: overview.cards.cards[3].name.text() == "Took")
    assert [card.name.text() for card in overview.cards.cards][1:4] == [
        "Steps per second",
        "Progress",
        "Took",
    ]
    driver.until(lambda: "per step" in overview.cards.cards[0].detail.text())
    losses = json.loads((Path(run.run_dir) / "provenance.json").read_text())["losses"]
    assert losses and {one["by"] for one in losses.values()} <= {"kernel", "torch"}
    driver.until(overview.computed.isVisible)
    assert all(f"{one['by']}: {one['why']}" in overview.computed.text() for one in losses.values())
    assert not overview.live_card.isVisible()
    # Words that may take two lines make the page no higher than the window.
    driver.window.resize(1440, 900)
    driver.until(lambda: overview.height() > 700)
    assert overview.charts.main.height() < overview.height() / 2 + 40
    told = overview.cards.cards
    driver.until(lambda: overview.charts.main.note.text() == f"mean return {told[0].value.text()}")
    below = overview.charts.below.charts
    driver.until(lambda: "charts/SPS" in [chart.title.text() for chart in below])
    speed = next(chart for chart in below if chart.title.text() == "charts/SPS")
    driver.until(lambda: speed.plot.lines)
    driver.until(lambda: speed.note.text() == f"{told[1].value.text()} steps/s")
    for chart in (overview.charts.main, speed):
        chart.enlarge.emit()
        assert overview.large.isVisible() and overview.large.chart.title.text() == chart.title.text()
        overview.large.back.click()
        assert not overview.large.isVisible()

    charts = open_tab(driver, run, ChartsView)
    assert isinstance(charts, ChartsView)
    tags = client.metrics(run.run_id).names
    driver.until(lambda: sorted(charts.grid.tags()) == tags)
    driver.until(lambda: all(charts.grid.chart(tag) is not None for tag in tags))
    first = charts.grid.chart("charts/episodic_return")
    assert first is not None
    driver.until(lambda: first.plot.lines and len(first.plot.lines[0].x) > 0)
    before = first.plot.lines[0].shown
    charts.bar.slider.setValue(charts.bar.slider.maximum())
    driver.until(lambda: first.plot.lines[0].shown is not before)
    charts.bar.search.setText("entropy")
    assert charts.grid.tags() == ["losses/entropy"]
    charts.bar.search.clear()
    first.enlarge.emit()
    driver.until(lambda: charts.large.isVisible() and charts.large.chart.plot.lines)
    charts.large.back.click()
    assert not charts.large.isVisible()
    table = Path(client.paths.root) / "all.csv"
    charts.export.export_to(table)
    driver.until(table.exists)
    assert len(table.read_text().splitlines()) == 1 + len(client.metrics(run.run_id))

    config = open_tab(driver, run, ConfigView)
    assert isinstance(config, ConfigView)
    driver.until(lambda: config.payload.toPlainText())
    path = client.paths.run_config(run.run_id)
    assert config.path.text() == str(path)
    assert config.payload.toPlainText() == path.read_text().rstrip("\n")
    config.copy_command.click()
    words = shlex.split(QGuiApplication.clipboard().text())
    again = run_mosaic(*words[words.index("train") :], "--json")
    assert '"completed"' in again.stdout

    files = open_tab(driver, run, ArtifactsView)
    assert isinstance(files, ArtifactsView)
    model = next(file.path for file in client.artifacts(run.run_id) if file.kind == "model")
    driver.until(lambda: files.files.choose(model))
    assert files.evaluate.isVisible() and files.resume.isVisible()
    files.copy.click()
    assert QGuiApplication.clipboard().text() == str(Path(run.run_dir) / model)
    QGuiApplication.clipboard().clear()


def test_a_run_that_trains_shows_its_picture_and_its_numbers(driver: Driver, client: Client) -> None:
    config = train_config("ppo", "CartPole-v1", total_timesteps=50_000_000, params={"num_envs": 2})
    run = client.submit(config)
    overview = open_tab(driver, run, OverviewView)
    assert isinstance(overview, OverviewView)
    driver.until(lambda: overview.live.view.count == 2)
    driver.until(lambda: overview.live.state.text() == "connected")
    driver.until(lambda: overview.cards.cards and overview.cards.cards[1].value.text() not in ("–", ""))
    driver.until(lambda: overview.charts.main.plot.lines and len(overview.charts.main.plot.lines[0].x) > 5)
    seen = len(overview.charts.main.plot.lines[0].x)
    driver.until(lambda: len(overview.charts.main.plot.lines[0].x) > seen)
    end(client, run)
    driver.until(lambda: not overview.live_card.isVisible())


def test_seeds_of_one_configuration_are_averaged_in_the_overview(driver: Driver, client: Client) -> None:
    script = Path(__file__).parents[1] / "cli" / "scripts" / "curves.py"
    configs = [train_config(str(script), "None-v0", total_timesteps=40, seed=seed) for seed in (1, 2)]
    runs = [client.wait(run.run_id, 120) for run in map(client.submit, configs)]
    overview = open_tab(driver, runs[0], OverviewView)
    assert isinstance(overview, OverviewView)
    main = overview.charts.main
    driver.until(lambda: [line.label for line in main.plot.lines] == ["seed 1", "mean of 2 seeds"])
    assert main.plot.lines[1].trend is not None
    assert main.note.text() == "± standard deviation of 2 seeds"
    assert [key.text for key in main.legend.keys] == ["seed 1", "mean of 2 seeds"]


def test_on_changing_runs_nothing_of_the_old_one_stays(driver: Driver, client: Client) -> None:
    script = Path(__file__).parents[1] / "cli" / "scripts" / "curves.py"
    configs = [train_config(str(script), "None-v0", total_timesteps=steps) for steps in (40, 60)]
    old, new = [client.wait(run.run_id, 120) for run in map(client.submit, configs)]
    for kind in (OverviewView, ChartsView):
        view = open_tab(driver, old, kind)
        assert isinstance(view, OverviewView | ChartsView)

        def drawn(view: RunView = view) -> set[bool]:
            return {bool(plot.lines) for plot in view.findChildren(PlotArea) if plot.isVisible()}

        driver.until(lambda drawn=drawn: drawn() == {True})
        driver.window.select_run(new.run_id)
        assert drawn() == {False}, "they are gone before the window is drawn again"
        driver.until(lambda drawn=drawn: drawn() == {True})


def test_an_evaluation_plots_its_returns_batch_by_batch(driver: Driver, client: Client) -> None:
    policy = trained(client)
    config = eval_config(policy.run_dir, episodes=12, batch_size=3)
    run = client.wait(client.submit(config).run_id, 120)
    assert run.outcome == "completed", run.reason
    charts = open_tab(driver, run, ChartsView)
    assert isinstance(charts, ChartsView)

    def batches() -> list[float]:
        chart = charts.grid.chart(BATCHES)
        lines = chart.plot.lines if chart is not None else []
        return lines[0].x.tolist() if lines else []

    driver.until(lambda: batches() == [1.0, 2.0, 3.0, 4.0])
    overview = open_tab(driver, run, OverviewView)
    assert isinstance(overview, OverviewView)
    driver.until(lambda: overview.cards.cards[2].value.text() == "12")
    assert overview.charts.main.title.text() == "Return of each batch"


def test_a_run_that_ends_without_a_point_says_so(driver: Driver, client: Client) -> None:
    driver.submit(script_config("steps.py", params={"exit_code": 3, "pause": 1.0}))
    # Before its first step a run says that it starts, and this one takes none.
    driver.until_state("Starting", "Running")
    driver.until(lambda: OverviewView in driver.window.page.views)
    overview = driver.window.page.views[OverviewView]
    assert isinstance(overview, OverviewView)
    driver.until(lambda: "first points appear" in overview.charts.main.empty_text)
    driver.until_state("Failed")
    driver.until(lambda: overview.charts.main.empty_text == "It has written no curves")


def test_a_damaged_event_file_is_told_where_its_curves_would_be(driver: Driver, client: Client) -> None:
    run = trained(client, steps=2000)
    (file,) = Path(run.run_dir).glob("runs/*/events.*")
    file.write_bytes(file.read_bytes() + b"what no writer has ever written")
    for kind in (OverviewView, ChartsView):
        view = open_tab(driver, run, kind)
        assert isinstance(view, OverviewView | ChartsView)
        driver.until(view.problems.isVisible)
        assert "is damaged at byte" in view.problems.text() and file.name in view.problems.text()
    other = trained(client, steps=2000, seed=2)
    charts = open_tab(driver, other, ChartsView)
    assert isinstance(charts, ChartsView)
    driver.until(lambda: charts.grid.tags() != [] and not charts.problems.isVisible())
