"""Several runs side by side: overlaid, averaged over seeds, with their differences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gym_gui.ui.views.compare import CompareView
from mosaic.client import Client, RunRecord, train_config
from support.gui_context import shown, view_context
from support.runs import end, wait_for_status

SCRIPT = Path(__file__).parents[1] / "cli" / "scripts" / "curves.py"
TAG = "charts/episodic_return"
WAIT = 60_000


def submitted(client: Client, seed: int, steps: int = 40, **params: Any) -> RunRecord:
    config = train_config(str(SCRIPT), "None-v0", total_timesteps=steps, seed=seed, params=params)
    return client.submit(config)


@pytest.fixture
def view(var: Path) -> Iterator[CompareView]:
    with view_context(var) as (context, _):
        context.link.start()
        made = CompareView(context)
        with shown(made, 1200, 800):
            yield made
            made.close_view()


def line_labels(view: CompareView) -> list[str]:
    chart = view.grid.chart(TAG)
    return [line.label for line in chart.plot.lines] if chart is not None else []


def test_seeds_are_one_line_and_other_settings_another(
    view: CompareView, client: Client, qtbot: QtBot
) -> None:
    runs = [submitted(client, seed) for seed in (1, 2, 3)] + [submitted(client, 1, steps=60)]
    view.show_runs([client.wait(run.run_id, 60) for run in runs])
    view.enter()
    few, many = "total_timesteps 40", "total_timesteps 60"
    qtbot.waitUntil(lambda: line_labels(view) == [few, many], timeout=WAIT)
    chart = view.grid.chart(TAG)
    assert chart is not None
    qtbot.waitUntil(lambda: chart.plot.lines[0].about == "mean of the seeds", timeout=WAIT)
    assert chart.plot.lines[1].about != "mean of the seeds"
    chart.enlarge.emit()
    assert view.large.isVisible() and view.large.chart.title.text() == TAG
    assert not view.back.isVisible()
    QTest.keyClick(view.large.chart.plot, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not view.large.isVisible() and view.back.isVisible())
    header = [view.table.horizontalHeaderItem(at).text() for at in range(view.table.columnCount())]
    returns = ("Mean return", "95 % interval", "IQM")
    assert header == ["Runs", "Seeds", *returns, "Steps", "State", "total_timesteps"]
    assert view.table.item(0, 1).text() == "1–3"
    assert view.table.item(1, 7).text() == "60"

    view.average.click()
    qtbot.waitUntil(
        lambda: line_labels(view) == [f"{few} · seed 1", f"{few} · seed 2", f"{few} · seed 3", many],
        timeout=WAIT,
    )
    view.table.item(0, 0).setCheckState(Qt.CheckState.Unchecked)
    qtbot.waitUntil(lambda: line_labels(view) == [many], timeout=WAIT)


def test_a_run_that_goes_on_is_followed_and_read_again_at_its_end(
    view: CompareView, client: Client, qtbot: QtBot
) -> None:
    done = client.wait(submitted(client, 1).run_id, 60)
    live = submitted(client, 2, steps=100_000, pause=0.02)
    live = wait_for_status(client, live.run_id, "EXEC")
    view.show_runs([done, live])
    view.enter()
    qtbot.waitUntil(lambda: len(line_labels(view)) == 2, timeout=WAIT)
    chart = view.grid.chart(TAG)
    assert chart is not None
    seen = len(chart.plot.lines[1].x)
    qtbot.waitUntil(lambda: len(chart.plot.lines[1].x) > seen, timeout=WAIT)
    end(client, live)
    view.update_runs([client.get(live.run_id)])
    qtbot.waitUntil(lambda: view.compared._sources[live.run_id].live is None, timeout=WAIT)
    assert view.table.item(1, 6).text() == "Cancelled"


def test_leaving_stops_following_and_back_is_asked_for(
    view: CompareView, client: Client, qtbot: QtBot
) -> None:
    view.show_runs([client.wait(submitted(client, 1).run_id, 60)])
    view.enter()
    qtbot.waitUntil(lambda: bool(line_labels(view)), timeout=WAIT)
    with qtbot.waitSignal(view.closed):
        view.back.click()
    view.leave()
    assert not view.average.isVisible()
