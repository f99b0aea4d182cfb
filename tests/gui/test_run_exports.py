"""Reports, figures and archives of runs, from the window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib import font_manager
from PySide6.QtWidgets import QFileDialog

from gym_gui.services.tasks import Notification
from gym_gui.ui.widgets import run_exports
from gym_gui.ui.widgets.run_exports import RunExports, with_ending
from gym_gui.ui.widgets.run_header import run_menu
from mosaic.client import Client, RunRecord
from support.runs import script_config
from support.window import Driver, live, made_run

pytestmark = pytest.mark.xdist_group("gui")


@pytest.fixture
def fonts_are_closed() -> Iterator[None]:
    """What matplotlib has opened for a figure it keeps, for each thread."""
    yield
    cached: Any = font_manager
    cached._get_font.cache_clear()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What was opened in other programs."""
    found: list[Path] = []
    monkeypatch.setattr(run_exports, "open_path", lambda path, _: found.append(path))
    return found


def curves(driver: Driver, client: Client, *seeds: int) -> list[RunRecord]:
    asked = [client.submit(script_config("../cli/scripts/curves.py", 40, seed=seed)) for seed in seeds]
    runs = [client.wait(run.run_id, 90) for run in asked]
    driver.until(lambda: all(driver.window.context.runs.get(run.run_id) for run in runs))
    return runs


def answer(monkeypatch: pytest.MonkeyPatch, path: Path, kind: str = "") -> None:
    """What the person says in the dialog."""
    for name in ("getSaveFileName", "getOpenFileName"):
        monkeypatch.setattr(QFileDialog, name, lambda *_: (str(path), kind))


def ended(driver: Driver, exports: RunExports) -> str:
    """What is told when the work is done."""
    driver.until(lambda: exports.card.isHidden())
    return answers(driver)[-1].text


def answers(driver: Driver) -> list[Notification]:
    """What was told of what the person did."""
    return [one for one in driver.window.context.notifications.history if not one.aside]


@pytest.mark.usefixtures("fonts_are_closed")
def test_what_runs_came_to_as_files(
    driver: Driver, client: Client, tmp_path: Path, opened: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = curves(driver, client, 1, 2)
    window, exports = driver.window, driver.window.exports
    window.select_run(runs[0].run_id)
    report, figure = tmp_path / "report.html", tmp_path / "curves.pdf"
    answer(monkeypatch, report)
    window.page.header.ask("report")
    driver.until(lambda: opened == [report])
    assert "<html" in report.read_text() and runs[1].run_id[:8] in report.read_text()
    # Without an ending it is of the kind that was chosen.
    answer(monkeypatch, figure.with_suffix(""), "Document (*.pdf)")
    window.page.header.ask("plot")
    driver.until(lambda: opened == [report, figure])
    assert figure.read_bytes().startswith(b"%PDF")
    exports.write("plot", runs, tmp_path / "curves.xyz")
    assert ".svg" in ended(driver, exports)
    assert opened == [report, figure]


def test_runs_go_away_and_come_back(
    driver: Driver, client: Client, tmp_path: Path, opened: list[Path]
) -> None:
    runs = curves(driver, client, 1, 2)
    window, exports = driver.window, driver.window.exports
    archive = tmp_path / "runs.tar.gz"
    exports.write("export", runs, archive)
    assert "files" in ended(driver, exports)
    assert archive.is_file() and opened == []
    exports.take_in(archive)
    assert ended(driver, exports) == "The runs of runs.tar.gz exist already."
    for run in runs:
        client.remove(run.run_id)
    driver.until(lambda: not len(window.context.runs))
    exports.take_in(archive)
    driver.until(lambda: len(window.context.runs) == 2)
    driver.until(lambda: window.page.run is not None)
    # A run that has other files than the archive is not touched; it comes under a new id when asked.
    file = next(Path(runs[0].run_dir).glob("runs/*/events*"))
    file.write_bytes(file.read_bytes()[:-1])
    exports.take_in(archive)
    driver.until(lambda: exports.card.isHidden())
    told = answers(driver)[-1]
    assert "already exists with other files" in told.text and told.action is not None
    told.action[1]()
    driver.until(lambda: len(window.context.runs) == 4)


def test_a_damaged_archive_is_told_of_in_a_sentence(driver: Driver, tmp_path: Path) -> None:
    damaged = tmp_path / "runs.tar.gz"
    damaged.write_bytes(b"nothing of the kind")
    driver.window.exports.take_in(damaged)
    told = ended(driver, driver.window.exports)
    assert "runs.tar.gz" in told and "Something unexpected" not in told


def test_work_that_is_stopped_leaves_nothing(driver: Driver, client: Client, tmp_path: Path) -> None:
    runs = curves(driver, client, 1)
    exports = driver.window.exports
    archive = tmp_path / "runs.tar"
    exports.write("export", runs, archive)
    exports.card.stop.click()
    assert not exports.card.stop.isEnabled()
    exports.write("report", runs, tmp_path / "report.html")
    driver.until(lambda: exports.card.isHidden())
    told = [one.text for one in answers(driver)]
    assert told[-2].startswith("Something is being exported")
    assert told[-1] == "It was stopped, and nothing was written."
    assert not list(tmp_path.glob("*runs*")) and not list(tmp_path.glob("*.html"))


def test_the_menu_offers_an_archive_of_ended_runs_only(driver: Driver) -> None:
    window = driver.window
    for runs, expected in (([made_run(1), made_run(2)], True), ([made_run(1), live(made_run(2))], False)):
        menu = run_menu(window, runs, 2, print)
        texts = [action.text() for action in menu.actions()]
        assert ("Export…" in texts, "Report…" in texts, "Plot…" in texts) == (expected, True, True)
        menu.deleteLater()


def test_files_get_an_ending() -> None:
    assert with_ending("/a/runs", "Archive (*.tar.gz *.tar)") == Path("/a/runs.tar.gz")
    assert with_ending("/a/runs.tar", "Archive (*.tar.gz *.tar)") == Path("/a/runs.tar")
