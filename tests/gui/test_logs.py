"""The Logs tab: it follows, is searched, keeps errors apart, and forgets what is too old."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gym_gui.services.log_stream import MOST_LINES
from gym_gui.ui.views.logs import LogsView, LogView
from mosaic.client import Client
from support.gui_context import shown, view_context
from support.runs import end, script_config, wait_for_status

WAIT = 60_000


@pytest.fixture
def view(var: Path) -> Iterator[LogsView]:
    with view_context(var) as (context, _):
        made = LogsView(context)
        with shown(made):
            yield made
            made.close_view()


def test_output_and_errors_are_apart_and_can_be_searched(
    view: LogsView, client: Client, qtbot: QtBot
) -> None:
    params = {"complain": "it hurts", "exit_code": 3}
    run = client.wait(client.submit(script_config("steps.py", steps=20, params=params)).run_id, 60)
    view.show_run(run)
    assert view.stream == "stderr", "who looks at a run that failed wants to know why"
    view.enter()
    qtbot.waitUntil(lambda: "it hurts" in view.view.toPlainText(), timeout=WAIT)
    QTest.mouseClick(view.streams["stdout"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "step=19" in view.view.toPlainText(), timeout=WAIT)
    assert "it hurts" not in view.view.toPlainText()
    view.search.setText("step=1")
    assert view.found.text() == "11 lines"
    assert view.view.textCursor().selectedText() == "step=1"
    first = view.view.textCursor().position()
    QTest.keyClick(view.search, Qt.Key.Key_Return)
    assert view.view.textCursor().position() != first
    view.search.setText("nowhere")
    assert view.found.text() == "no line"


def test_a_run_that_goes_on_is_followed(view: LogsView, client: Client, qtbot: QtBot) -> None:
    run = client.submit(script_config("steps.py", steps=100_000, params={"pause": 0.02}))
    wait_for_status(client, run.run_id, "EXEC")
    view.show_run(client.get(run.run_id))
    view.enter()
    qtbot.waitUntil(lambda: view.view.blockCount() > 5, timeout=WAIT)
    seen = view.view.blockCount()
    qtbot.waitUntil(lambda: view.view.blockCount() > seen, timeout=WAIT)
    view.leave()
    end(client, run)


def test_scrolling_up_stops_following_and_the_end_starts_it_again(qtbot: QtBot) -> None:
    log = LogView()
    with shown(log, 400, 200):
        log.add_lines([f"line {number}" for number in range(500)])
        assert log.follows
        bar = log.verticalScrollBar()
        assert bar.value() == bar.maximum()
        bar.setValue(10)
        assert not log.follows
        log.add_lines(["more"] * 50)
        assert bar.value() == 10
        log.set_follows(True)
        assert bar.value() == bar.maximum()


def test_the_oldest_lines_are_forgotten(qtbot: QtBot) -> None:
    log = LogView()
    with shown(log, 400, 200):
        for start in range(0, MOST_LINES + 1000, 1000):
            log.add_lines([f"line {number}" for number in range(start, start + 1000)])
        assert log.blockCount() == MOST_LINES
        assert log.document().firstBlock().text() == "line 1000"
