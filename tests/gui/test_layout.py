"""On a small screen nothing is cut off, wider than its column or larger than the screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from gym_gui.app import Desktop
from gym_gui.context import Context
from gym_gui.models.charting import Section as MetricSection
from gym_gui.ui.presenters.overview import Headline
from gym_gui.ui.presenters.play import PlayPresenter
from gym_gui.ui.views.play import PlayStart
from gym_gui.ui.widgets.basics import elide_parts, elide_title
from gym_gui.ui.widgets.chart_grid import ChartGrid
from gym_gui.ui.widgets.cleanrl_forms import (
    CleanRLPolicyForm,
    CleanRLResumeForm,
    CleanRLScriptForm,
    CleanRLTrainForm,
)
from gym_gui.ui.widgets.fields.layouts import ScrollColumn, Section
from gym_gui.ui.widgets.form_frame import FormFrame
from gym_gui.ui.widgets.overview_charts import HeadlineCards
from gym_gui.ui.widgets.run_header import RunHeader
from gym_gui.ui.window import LEAST, inside
from support.forms import check, form_context, open_form, pick


@pytest.fixture
def context(var: Path, qapp: object) -> Iterator[Context]:
    with form_context(var) as made:
        yield made


def cut_texts(widget: Any) -> list[str]:
    """The wrapped texts that have less room than they need."""
    labels = [one for one in widget.findChildren(QLabel) if one.wordWrap() and one.isVisible() and one.text()]
    return [one.text() for one in labels if one.height() < one.heightForWidth(one.width())]


@pytest.mark.parametrize("kind", [CleanRLTrainForm, CleanRLPolicyForm, CleanRLResumeForm, CleanRLScriptForm])
def test_a_form_in_the_smallest_window_scrolls_and_is_cut_nowhere(
    qtbot: QtBot, context: Context, kind: type[FormFrame[Any]]
) -> None:
    form = open_form(qtbot, context, kind)
    form.resize(LEAST[0], LEAST[1] - 80)
    for section in form.findChildren(Section):
        section.open()
    if isinstance(form, CleanRLTrainForm):
        pick(form.curriculum, "BABYAI_GOTO_CURRICULUM")
        check(qtbot, form)
    QApplication.processEvents()
    for column in form.findChildren(ScrollColumn):
        if column.isVisible():
            assert column.widget().minimumSizeHint().width() <= column.viewport().width(), column
    assert cut_texts(form) == []
    assert form.minimumSizeHint().width() <= LEAST[0]


@pytest.mark.parametrize("width", [500, 700, 1100, 1600])
def test_the_start_of_play_is_to_be_read_at_every_width(qtbot: QtBot, width: int) -> None:
    start = PlayStart()
    qtbot.addWidget(start)
    start.show_state(PlayPresenter(), ())
    start.resize(width, 400)
    start.show()
    QApplication.processEvents()
    assert cut_texts(start) == []
    assert start.go.height() >= start.go.sizeHint().height()


def test_a_long_title_keeps_what_it_is_known_by(qtbot: QtBot) -> None:
    size = QFontMetrics(QApplication.font())
    title = "rpo_continuous_action · MountainCarContinuous-v0"
    assert elide_title(size, title, 2000) == title
    room = size.horizontalAdvance("rpo_cont… · MountainCarContinuous-v0")
    shown = elide_title(size, title, room)
    assert shown.startswith("rpo_c") and shown.endswith("… · MountainCarContinuous-v0")
    first, second = elide_title(size, title, size.horizontalAdvance("rpo_… · MountainCar…-v0")).split(" · ")
    assert first.startswith("rpo") and second.startswith("Mount") and second.endswith("0")


def test_what_has_no_room_is_left_out_as_a_whole(qtbot: QtBot) -> None:
    size = QFontMetrics(QApplication.font())
    text = "last 288.0 · 896 episodes · 1.00 per step"
    assert elide_parts(size, text, size.horizontalAdvance(text)) == text
    room = size.horizontalAdvance("last 288.0 · 896 episodes · 1.0")
    assert elide_parts(size, text, room) == "last 288.0 · 896 episodes"
    assert elide_parts(size, text, size.horizontalAdvance("last 2…")).endswith("…")


@pytest.mark.parametrize("width", [400, 700, 1100])
def test_the_cards_fill_every_row(qtbot: QtBot, width: int) -> None:
    cards = HeadlineCards()
    qtbot.addWidget(cards)
    cards.show_headlines([Headline(f"number {place}", "1" * 4**place) for place in range(5)])
    cards.show()
    # From wide to narrow and back: no column stays behind.
    for width_now in (1100, 400, width):
        cards.resize(width_now, 300)
        QApplication.processEvents()
    rows: dict[int, list[QRect]] = {}
    for card in cards.cards:
        rows.setdefault(card.geometry().top(), []).append(card.geometry())
    for row in rows.values():
        assert (row[0].left(), row[-1].right()) == (0, width - 1)
        assert max(one.width() for one in row) - min(one.width() for one in row) <= 2


def test_the_main_chart_is_seen_as_a_whole_in_a_low_window(qtbot: QtBot, context: Context) -> None:
    grid = ChartGrid(context, main=True)
    qtbot.addWidget(grid)
    grid.resize(900, 320)
    grid.show()
    grid.show_sections([MetricSection("charts", ("charts/a", "charts/b"))])
    qtbot.waitUntil(lambda: grid.chart("charts/b") is not None)
    heights = []
    for room in (320, 700, 320):
        grid.resize(900, room)
        QApplication.processEvents()
        chart = grid.chart("charts/a")
        assert chart is not None
        bottom = chart.mapTo(grid, chart.rect().bottomLeft()).y()
        assert bottom < room
        heights.append(chart.height())
    assert heights[0] == heights[2] < heights[1]
    grid.stop()


def test_a_title_without_room_beside_its_state_gets_a_line_of_its_own(qtbot: QtBot) -> None:
    header = RunHeader()
    qtbot.addWidget(header)
    header.title.setText("ppo · BabyAI-GoToRedBallNoDists-v0")
    header.state.setText("Running")
    for one in (header.pausing, header.cancel):
        one.hide()
    header.show()
    for width, beside in ((1100, True), (520, False), (1100, True)):
        header.resize(width, 90)
        QApplication.processEvents()
        place = header.state.mapTo(header, header.state.rect().center())
        assert header.title.geometry().adjusted(0, 0, 2000, 0).contains(place) is beside
        assert header.title.width() >= header.title.sizeHint().width()


def test_the_window_lies_on_the_screen_that_is_there(var: Path, qtbot: QtBot) -> None:
    room = QApplication.primaryScreen().availableGeometry()
    first = Desktop(var)
    assert first.window.width() <= room.width() and first.window.height() < room.height()
    first.window.setGeometry(room.right() + 3000, room.bottom() + 3000, 2500, 1900)
    first.window.show()
    first.window.close()
    first.close()
    again = Desktop(var)
    try:
        assert room.contains(again.window.geometry())
        assert again.window.y() > room.top(), "the title bar has room above it"
    finally:
        again.window.close()
        again.close()


def test_an_area_moves_no_further_than_it_must() -> None:
    room = QRect(0, 40, 1000, 700)
    assert inside(QRect(10, 50, 900, 600), room) == QRect(10, 50, 900, 600)
    assert inside(QRect(-50, 0, 900, 700), room) == QRect(0, 40, 900, 700)
    assert inside(QRect(5000, 5000, 900, 600), room) == QRect(100, 140, 900, 600)
