"""The live picture: frames from a segment of the test's own, and words when there are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gym_gui.models.run_files import RunFacts
from gym_gui.ui.views.overview import LiveView, OverviewView
from gym_gui.ui.widgets.frame_view import FrameView
from mosaic.analytics.eval_summary import EvalScores, EvalSummary
from mosaic.fastlane import slots
from mosaic.fastlane.layout import lacks_package
from mosaic.fastlane.segment import Segment, create_segment, remove_segment
from mosaic.fastlane.writer import SlotWriter
from support.gui_context import shown, view_context
from support.gui_records import record

RUN = "01LIVE"


@pytest.fixture
def writers() -> Iterator[list[SlotWriter]]:
    """Two environments that show frames."""
    path = create_segment(RUN, "grid", limit=8)
    segments = [Segment(path), Segment(path)]
    made = []
    for segment in segments:
        slot = slots.claim(segment, slots.Owner.myself())
        assert slot is not None
        made.append(SlotWriter(segment, slot))
    yield made
    made.clear()
    remove_segment(RUN)


@pytest.fixture
def view(tmp_path: Path) -> Iterator[LiveView]:
    with view_context(tmp_path) as (context, _):
        made = LiveView(context)
        with shown(made):
            yield made
            made.close_view()


def test_frames_are_shown_with_their_numbers(view: LiveView, writers: list[SlotWriter], qtbot: QtBot) -> None:
    view.show_run(record(RUN, headline={"mean_return": 487.3, "sps": 21_940.0}))
    view.enter()
    for writer in writers:
        writer.publish(np.full((40, 60, 3), 200, np.uint8), 1.0, 42.0, 900.0)
    qtbot.waitUntil(lambda: view.panel.view.count == 2)
    qtbot.waitUntil(lambda: view.panel.state.text() == "connected")
    assert [(name.text(), value.text()) for name, value in view.panel._values] == [
        ("reward", "1.00"),
        ("mean return", "487.3"),
        ("steps/s", "21,940"),
    ]
    view.update_run(record(RUN, headline={"mean_return": 490.0, "sps": 20_000.0}))
    told = [value.text() for _, value in view.panel._values]
    assert told == ["1.00", "490.0", "20,000"], "at once, not with the next picture"
    picture = view.panel.view.grab().toImage()
    places = view.panel.view.places()
    middle = (places[0].left() + places[0].width() / 2, places[0].top() + places[0].height() / 2)
    assert picture.pixelColor(round(middle[0]), round(middle[1])).red() == 200
    view.leave()


def test_nobody_looks_while_the_tab_is_hidden(
    view: LiveView, writers: list[SlotWriter], qtbot: QtBot
) -> None:
    view.show_run(record(RUN))
    view.enter()
    writers[0].publish(np.zeros((8, 8, 3), np.uint8), 0.0, 0.0, 0.0)
    qtbot.waitUntil(lambda: view.panel.view.count == 1)
    view.leave()
    assert view.panel.frames._thread is None
    assert view.panel.view.count == 1, "the last picture stays"


def test_an_ended_run_keeps_its_last_picture_with_a_word_over_it(
    view: LiveView, writers: list[SlotWriter], qtbot: QtBot
) -> None:
    view.show_run(record(RUN))
    view.enter()
    writers[0].publish(np.zeros((8, 8, 3), np.uint8), 0.0, 0.0, 0.0)
    qtbot.waitUntil(lambda: view.panel.view.count == 1)
    remove_segment(RUN)
    qtbot.waitUntil(lambda: view.panel.state.text() == "ended")
    assert view.panel.view.word == "The run has ended"


def test_an_environment_without_a_picture_says_why(
    view: LiveView, writers: list[SlotWriter], qtbot: QtBot
) -> None:
    view.show_run(record(RUN, headline={"mean_return": 487.3, "sps": 21_940.0}))
    view.enter()
    for writer in writers:
        writer.no_picture("render() gave None")
    qtbot.waitUntil(lambda: view.panel.state.text() == "no picture")
    assert "Render() gave None" in view.panel.advice.text()


def test_what_a_picture_needs_is_installed_by_a_button_in_its_place(
    view: LiveView, writers: list[SlotWriter], qtbot: QtBot
) -> None:
    view.show_run(record(RUN))
    view.enter()
    for writer in writers:
        writer.no_picture(lacks_package("pygame"))
    qtbot.waitUntil(lambda: view.panel.install.isVisible())
    assert "'pygame', which is not installed" in view.panel.absent.text()
    assert view.panel.install.button.text() == "Install classic"
    assert view.panel.install.command.text() == "mosaic extras install classic"
    writers[0].publish(np.zeros((8, 8, 3), np.uint8), 0.0, 0.0, 0.0)
    qtbot.waitUntil(lambda: view.panel.view.isVisible() and not view.panel.install.isVisible())


def test_words_in_place_of_a_picture_take_no_more_room_than_one(tmp_path: Path) -> None:
    with view_context(tmp_path) as (context, _):
        overview = OverviewView(context)
        with shown(overview, 1060, 720):
            overview.show_run(record("01OTHER"))
            QApplication.processEvents()
            assert overview.live.absent.text() and overview.live_card.height() < 400
            overview.close_view()


def test_another_interpreter_is_told_its_own_command(
    view: LiveView, writers: list[SlotWriter], qtbot: QtBot
) -> None:
    run = record(RUN)
    run.config["metadata"]["worker"]["python"] = "/their/python"
    view.show_run(run)
    view.enter()
    for writer in writers:
        writer.no_picture(lacks_package("pygame"))
    qtbot.waitUntil(lambda: "/their/python -m pip install pygame" in view.panel.advice.text())
    assert not view.panel.install.isVisible(), "what is installed here would not help there"


def test_a_run_that_has_not_begun_says_so(view: LiveView) -> None:
    view.show_run(record("01OTHER", status="INIT", reason="waits for 1 more CPU"))
    assert "not begun" in view.panel.absent.text()
    assert "Waits for 1 more CPU" in view.panel.advice.text()


def test_an_evaluation_has_its_batch_in_the_hud(
    view: LiveView, writers: list[SlotWriter], tmp_path: Path, qtbot: QtBot
) -> None:
    batch = EvalScores(3, 50, 112.3, 110, 90.1, 142.6, 12.0, (0, 0), 0, 0, 0, 0, 0, 1.0)
    EvalSummary({}, 200, batch, (batch,)).write(tmp_path)
    extras = {"mode": "policy_eval"}
    view.show_run(record(RUN, asked={"extras": extras}, run_dir=str(tmp_path)))
    view.enter()
    writers[0].publish(np.zeros((8, 8, 3), np.uint8), 0.0, 0.0, 0.0)
    qtbot.waitUntil(lambda: "eval batch 3" in view.panel.batch.text() and len(view.panel._values) > 0)
    assert view.panel._values[0][0].text() == "reward (Eval)"


def test_the_tab_is_there_while_there_can_be_a_picture() -> None:
    off = record(asked={"extras": {"fastlane_video_mode": "off"}})
    ended = record(status="TERM", outcome="completed")
    assert LiveView.wanted(record(), RunFacts())
    assert not LiveView.wanted(off, RunFacts())
    assert not LiveView.wanted(ended, RunFacts())


def test_small_frames_stay_sharp_blocks(qtbot: QtBot) -> None:
    view = FrameView()
    with shown(view, 400, 400):
        pixels = np.zeros((4, 4, 3), np.uint8)
        pixels[::2, ::2] = pixels[1::2, 1::2] = 255
        view.show_pictures([((0, 1), pixels)])
        picture = view.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
        colours = {picture.pixelColor(x, 150).lightness() for x in range(1, 399)}
        assert colours == {0, 255}
