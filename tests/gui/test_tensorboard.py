"""The TensorBoard tab: a picture with a way to the browser, and the real page in a window of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gym_gui.models.run_files import RunFacts
from gym_gui.services import web
from gym_gui.ui.views import tensorboard
from gym_gui.ui.views.tensorboard import NOT_YET, TensorBoardView
from mosaic.analytics.event_files import EventWriter
from mosaic.client import Client, RunRecord
from mosaic.contract.extras import absent_for_web, advice_for, qt_folder
from support.runs import end, long_config, script_config
from support.window import Driver

pytestmark = pytest.mark.xdist_group("gui")

CURVES = "../cli/scripts/curves.py"
PAGE = Path(__file__).parents[1] / "scripts" / "shown_page.py"


@pytest.fixture(autouse=True)
def web_is_looked_for_anew() -> Iterator[None]:
    web.look_again()
    yield
    web.look_again()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that the browser was asked to open."""
    found: list[str] = []
    monkeypatch.setattr(tensorboard, "open_url", lambda address, _: found.append(address))
    return found


def curves(client: Client, *seeds: int, steps: int = 5) -> list[RunRecord]:
    runs = [client.submit(script_config(CURVES, steps, seed=seed)) for seed in seeds]
    ended = [client.wait(run.run_id, 90) for run in runs]
    assert [run.outcome for run in ended] == ["completed"] * len(ended)
    return ended


def titles(driver: Driver) -> list[str]:
    bar = driver.window.page.bar
    return [bar.tabText(at) for at in range(bar.count())]


def open_board(driver: Driver, run: RunRecord) -> TensorBoardView:
    window = driver.window
    driver.until(lambda: window.context.runs.get(run.run_id) is not None)
    window.select_run(run.run_id)
    driver.until(lambda: window.page.run is not None and TensorBoardView.title in titles(driver))
    window.page.bar.setCurrentIndex(titles(driver).index(TensorBoardView.title))
    driver.until(lambda: TensorBoardView in window.page.views)
    view = window.page.views[TensorBoardView]
    assert isinstance(view, TensorBoardView)
    return view


def lines(view: TensorBoardView, tag: str = "charts/episodic_return") -> list[str]:
    chart = view.picture.grid.chart(tag)
    return [] if chart is None else [line.label for line in chart.plot.lines if len(line.x)]


def listed(address: str) -> list[str]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{address}data/runs", timeout=90) as answer:
        return list(json.load(answer))


def test_a_picture_of_the_selected_runs_needs_no_server(driver: Driver, client: Client) -> None:
    runs = curves(client, 1, 2)
    view = open_board(driver, runs[0])
    driver.until(lambda: lines(view) == ["seed 1", "seed 2"])
    assert view.stack.currentWidget() is view.picture
    assert web.VARIABLE in view.why.text() and view.why.isVisible()
    assert not driver.window.context.board.running
    driver.window.page._choose_seed(runs[1].run_id)
    driver.until(lambda: lines(view) == ["seed 2"])
    assert "QtWebEngine" not in " ".join(sys.modules)


def test_one_server_for_all_of_the_window(driver: Driver, client: Client, opened: list[str]) -> None:
    first, second = curves(client, 1, 2)
    driver.until(lambda: driver.window.context.runs.get(second.run_id) is not None)
    view = open_board(driver, first)
    driver.window.page._choose_seed(first.run_id)
    QTest.mouseClick(view.browser, Qt.MouseButton.LeftButton)
    assert not view.browser.isEnabled()
    driver.until(lambda: opened)
    assert view.browser.isEnabled() and len(listed(opened[0])) == 1
    board, pid = driver.window.context.board, driver.window.context.board.pid
    # Another run: the same server, and the page in the browser shows that one.
    driver.window.page._choose_seed(second.run_id)
    driver.until(lambda: board.status.ready and "_s2_" in board.status.runs[0])
    assert board.pid == pid
    assert [name.split("_")[1] for name in listed(opened[0])] == ["s2"]
    QTest.mouseClick(view.browser, Qt.MouseButton.LeftButton)
    driver.until(lambda: len(opened) == 2)
    assert opened[1] == opened[0]
    process = psutil.Process(pid)
    family = [process, *process.children(recursive=True)]
    driver.window.close()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive


def test_a_server_that_dies_is_told_of_and_started_again(
    driver: Driver, client: Client, opened: list[str]
) -> None:
    (run,) = curves(client, 1)
    view = open_board(driver, run)
    QTest.mouseClick(view.browser, Qt.MouseButton.LeftButton)
    driver.until(lambda: opened)
    board = driver.window.context.board
    psutil.Process(board.pid).kill()
    driver.until(lambda: not board.running)
    assert board.status.error == "TensorBoard has ended by itself."
    QTest.mouseClick(view.browser, Qt.MouseButton.LeftButton)
    driver.until(lambda: len(opened) == 2)


def test_the_tab_comes_with_the_first_event_file(driver: Driver, client: Client) -> None:
    run = driver.submit(long_config())
    driver.until_state("Running")
    driver.until(lambda: "Overview" in titles(driver))
    assert not TensorBoardView.wanted(run, RunFacts())
    folder = Path(run.run_dir) / "runs" / "late"
    had = TensorBoardView.title in titles(driver)
    if not had:
        writer = EventWriter(folder)
        writer.close()
    view = open_board(driver, run)
    if not had:
        driver.until(lambda: view.picture.empty.isVisible())
        assert view.picture.empty.text() == NOT_YET
        writer = EventWriter(folder)
        writer.add_scalar("charts/episodic_return", 1.0, 1)
        writer.close()
    driver.until(lambda: lines(view))
    assert not view.picture.empty.isVisible()
    end(client, driver.run)


@pytest.mark.skipif(not (qt_folder() / "QtWebEngineWidgets.abi3.so").exists(), reason="needs the set 'web'")
def test_the_real_page_in_the_window(client: Client, var: Path) -> None:
    (run,) = curves(client, 1)
    done = subprocess.run(
        [sys.executable, str(PAGE), str(var), run.run_id, "TensorBoard", "gym_gui.ui.views.tensorboard"],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert told["at_start"] == [], "QtWebEngine is not for the start of the window"
    assert told["address"].startswith("http://127.0.0.1:") and told["still"] == told["address"]
    assert told["said"] == ["refused"] * 5, "a page reaches its server and nothing else"
    assert told["bridge"] == "undefinedundefined"
    assert told["opened"] == ["https://mosaic.invalid/elsewhere"]
    assert told["colours"] > 5, "it is drawn"
    assert told["messages"] == []
    assert not psutil.pid_exists(told["board"])


def test_what_keeps_pages_away_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(web.VARIABLE)
    monkeypatch.setattr(web, "is_installed", lambda name: False)
    missing = web.look_for_web()
    assert missing.installable and "'web'" in missing.problem
    web.look_again()
    monkeypatch.setattr(web, "is_installed", lambda name: True)
    monkeypatch.setattr(web, "absent_for_web", lambda: ["libnss3.so"])
    assert "libnss3.so: run `apt-get install libnss3`" in web.look_for_web().problem
    web.look_again()
    monkeypatch.setattr(web, "absent_for_web", list)
    (tmp_path / "crashing_page.py").write_text("import os\nos.abort()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(web, "_PAGE", "crashing_page")
    crashed = web.look_for_web()
    assert crashed.problem == "QtWebEngine does not run here: it ended with code -6."
    assert not crashed.installable


@pytest.mark.skipif(not (qt_folder() / "QtWebEngineWidgets.abi3.so").exists(), reason="needs the set 'web'")
def test_libraries_that_are_missing_are_named_with_their_packages(tmp_path: Path) -> None:
    assert absent_for_web() == []
    helper = tmp_path / "Qt" / "libexec" / "QtWebEngineProcess"
    helper.parent.mkdir(parents=True)
    shutil.copy(qt_folder() / "Qt" / "libexec" / "QtWebEngineProcess", helper)
    assert "libQt6WebEngineCore.so.6" in absent_for_web(tmp_path)
    named = advice_for(["libnss3.so", "libsmime3.so", "libXcomposite.so.1", "libgbm.so.1"])
    assert named == "run `apt-get install libgbm1 libnss3 libxcomposite1` (on Debian and Ubuntu)"
