"""A chart under the hands of a person: zoom, values under the pointer, files."""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QGuiApplication, QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from gym_gui.context import Context
from gym_gui.models.charting import ChartOptions, Line, Section, line_of
from gym_gui.models.series import Curve
from gym_gui.theme import theme
from gym_gui.ui.widgets.chart import Chart, LargeChart
from gym_gui.ui.widgets.chart_grid import ChartGrid, rows_of
from support.gui_context import Told, shown, view_context


@pytest.fixture
def given(tmp_path: Path) -> Iterator[tuple[Context, Told]]:
    with view_context(tmp_path) as made:
        yield made


@pytest.fixture
def chart(given: tuple[Context, Told], qtbot: QtBot) -> Iterator[Chart]:
    made = Chart(given[0])
    with shown(made, 600, 400):
        made.show_lines("charts/episodic_return", [wave("one")], ChartOptions())
        qtbot.waitUntil(lambda: bool(made.plot._curves.items))
        yield made


def wave(label: str, count: int = 2000, colour: int = 0) -> Line:
    steps = np.arange(count, dtype=np.float64)
    return line_of(Curve(steps * 100, steps, np.sin(steps / 100)), ChartOptions(), label, colour)


def inside(chart: Chart, share: float) -> QPoint:
    area = chart.plot.plot_rect()
    return QPointF(area.left() + area.width() * share, area.center().y()).toPoint()


def point(chart: Chart, share: float) -> None:
    # A pointer that a test before has left there already would not move.
    for place in (QPoint(1, 1), inside(chart, share)):
        QTest.mouseMove(chart.plot.viewport(), place)


def test_the_pointer_shows_the_values_under_it(chart: Chart, qtbot: QtBot) -> None:
    point(chart, 0.5)
    qtbot.waitUntil(lambda: chart.plot.hover.text != "")
    assert re.match(r"step (9\d|10\d),\d\d\d", chart.plot.hover.text)
    assert "one" in chart.plot.hover.text
    assert "±" in chart.plot.hover.text


def test_the_values_under_the_pointer_hide_no_line(chart: Chart, qtbot: QtBot) -> None:
    steps = np.arange(2000.0)
    learning = Curve(steps, steps, 500 - 480 * np.exp(-steps / 300))
    chart.show_lines("charts/episodic_return", [line_of(learning, ChartOptions())], ChartOptions())
    qtbot.waitUntil(lambda: chart.plot._painted[0].main[1].max() > 400)
    for share in (0.05, 0.3, 0.5, 0.7, 0.95):
        point(chart, share)
        qtbot.waitUntil(lambda: chart.plot.hover.box is not None and chart.plot.hover.box.isVisible())
        box = chart.plot.hover.box
        assert box is not None
        place = QRectF(QPointF(chart.plot.mapFrom(chart.window(), box.pos())), QSizeF(box.size()))
        assert not chart.plot._crosses(place)


def test_the_values_follow_the_lines_while_the_pointer_rests(chart: Chart, qtbot: QtBot) -> None:
    point(chart, 0.5)
    qtbot.waitUntil(lambda: chart.plot.hover.text != "")
    before = chart.plot.hover.text
    chart.show_lines("charts/episodic_return", [wave("one", 4000)], ChartOptions())
    qtbot.waitUntil(lambda: chart.plot.hover.text not in ("", before))


def test_a_curve_of_one_point_is_a_dot_with_its_value(chart: Chart, qtbot: QtBot) -> None:
    chart.show_lines("eval/mean", [wave("one", 1)], ChartOptions())
    lines = chart.plot._curves
    qtbot.waitUntil(lambda: lines.value.isVisible())
    assert (len(lines.dots.points()), lines.value.toPlainText()) == (1, "0.000")
    chart.show_lines("eval/mean", [wave("one")], ChartOptions())
    qtbot.waitUntil(lambda: not lines.value.isVisible())
    assert not len(lines.dots.points())


def test_axes_may_be_logarithmic(chart: Chart, qtbot: QtBot) -> None:
    steps = np.arange(1.0, 1000.0)
    curve = Curve(steps, steps, steps**2)
    options = ChartOptions(log_x=True, log_y=True)
    chart.show_lines("losses/value_loss", [line_of(curve, options)], options)
    qtbot.waitUntil(lambda: 5 < chart.plot._painted[0].main[1].max() < 7)
    point(chart, 0.5)
    qtbot.waitUntil(lambda: chart.plot.hover.text != "")
    assert re.match(r"step [23]\d\n", chart.plot.hover.text)
    chart.show_lines("losses/value_loss", [wave("one")], ChartOptions(log_y=True), "0.5")
    assert chart.note.text() == "not log: ≤ 0 · 0.5"


def test_several_lines_have_a_legend(chart: Chart) -> None:
    assert [key.text for key in chart.legend.keys] == []
    chart.show_lines("charts/episodic_return", [wave("one"), wave("two", colour=1)], ChartOptions())
    assert [key.text for key in chart.legend.keys] == ["one", "two"]
    assert chart.legend.height() == 18
    chart.show_lines("charts/episodic_return", [wave("one " * 99), wave("two", colour=1)], ChartOptions())
    assert chart.legend.height() == 0, "half a name tells nothing"


def test_another_run_leaves_nothing_of_the_one_before(chart: Chart) -> None:
    chart.show_loading("charts/episodic_return")
    assert chart.empty_text == "Reading…"
    assert all(
        not len(item.getData()[0]) for item in chart.plot._curves.items if item.getData()[0] is not None
    )


def test_a_chart_is_enlarged_and_follows_the_small_one(given: tuple[Context, Told], qtbot: QtBot) -> None:
    page = QWidget()
    column = QVBoxLayout(page)
    small = Chart(given[0])
    column.addWidget(small)
    large = LargeChart(given[0], page, small)
    small.enlarge.connect(lambda: large.open_chart(small))
    with shown(page, 800, 600):
        small.show_lines("losses/entropy", [wave("one")], ChartOptions(), "0.5")
        QTest.keyClick(small.plot, Qt.Key.Key_Return)
        assert large.isVisible() and large.geometry() == small.geometry()
        assert (large.chart.title.text(), large.chart.note.text()) == ("losses/entropy", "0.5")
        small.show_lines("losses/entropy", [wave("one"), wave("two")], ChartOptions())
        assert [key.text for key in large.chart.legend.keys] == ["one", "two"]
        QTest.keyClick(large.chart.plot, Qt.Key.Key_Escape)
        qtbot.waitUntil(lambda: not large.isVisible())
        QTest.keyClick(small.plot, Qt.Key.Key_Return)
        assert large.isVisible()
        small.hide()
        assert not large.isVisible(), "another run has no such metric"


@pytest.mark.parametrize(
    ("count", "most", "main", "rows"),
    [
        (5, 4, False, [3, 2]),
        (4, 3, False, [2, 2]),
        (1, 4, False, [1]),
        (5, 4, True, [1, 4]),
        (0, 3, False, []),
    ],
)
def test_charts_fill_the_width(count: int, most: int, main: bool, rows: list[int]) -> None:
    tags = [str(number) for number in range(count)]
    found = rows_of(tags, most, main)
    assert sorted(map(len, found), reverse=not main) == rows
    assert [tag for row in found for tag in row] == tags


def test_dragging_zooms_and_a_double_click_shows_all_again(chart: Chart) -> None:
    view = chart.plot.viewport()
    QTest.mousePress(view, Qt.MouseButton.LeftButton, pos=inside(chart, 0.25))
    QTest.mouseMove(view, inside(chart, 0.4))
    QTest.mouseRelease(view, Qt.MouseButton.LeftButton, pos=inside(chart, 0.5))
    assert chart.plot.piece is not None
    low, high = chart.plot.piece
    assert low == pytest.approx(50_000, rel=0.02) and high == pytest.approx(100_000, rel=0.02)
    QTest.mouseDClick(view, Qt.MouseButton.LeftButton, pos=inside(chart, 0.5))
    assert chart.plot.piece is None


def test_new_points_leave_the_zoom_as_it_is(chart: Chart) -> None:
    chart.plot.zoom_to((1000.0, 2000.0))
    chart.show_lines("charts/episodic_return", [wave("one", 4000)], ChartOptions())
    assert chart.plot.piece == (1000.0, 2000.0)
    chart.show_lines("charts/episodic_return", [wave("one", 4000)], ChartOptions(axis="time"))
    assert chart.plot.piece is None


def test_the_keyboard_zooms_moves_and_shows_all(chart: Chart) -> None:
    chart.plot.setFocus()
    QTest.keyClick(chart.plot, Qt.Key.Key_Plus)
    first = chart.plot.piece
    assert first is not None
    QTest.keyClick(chart.plot, Qt.Key.Key_Right)
    assert chart.plot.piece is not None and chart.plot.piece[0] > first[0]
    QTest.keyClick(chart.plot, Qt.Key.Key_0)
    assert chart.plot.piece is None


def test_the_wheel_zooms_with_ctrl_and_is_left_to_the_page_without(chart: Chart) -> None:
    def turn(keys: Qt.KeyboardModifier) -> bool:
        at = QPointF(inside(chart, 0.5))
        event = QWheelEvent(
            at,
            chart.plot.mapToGlobal(at),
            QPoint(),
            QPoint(0, 120),
            Qt.MouseButton.NoButton,
            keys,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(chart.plot.viewport(), event)
        return event.isAccepted()

    assert not turn(Qt.KeyboardModifier.NoModifier)
    assert chart.plot.piece is None
    turn(Qt.KeyboardModifier.ControlModifier)
    assert chart.plot.piece is not None


def test_a_chart_is_saved_as_png_svg_and_csv(
    chart: Chart, given: tuple[Context, Told], tmp_path: Path, qtbot: QtBot
) -> None:
    for suffix in ("png", "svg", "csv"):
        chart.save(tmp_path / f"chart.{suffix}")
    qtbot.waitUntil(lambda: len(given[1].texts) == 3)
    picture = QImage(str(tmp_path / "chart.png"))
    assert picture.width() == 2 * (chart.plot.width() + 28)
    colours = {
        picture.pixel(x, y) for x in range(0, picture.width(), 7) for y in range(0, picture.height(), 7)
    }
    assert len(colours) > 5
    drawing = (tmp_path / "chart.svg").read_text()
    assert "charts/episodic_return" in "".join(ET.fromstring(drawing).itertext())
    assert "<path" in drawing or "<polyline" in drawing
    with (tmp_path / "chart.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2000
    assert rows[5]["step"] == "500"


def test_a_folder_that_cannot_be_written_is_told(
    chart: Chart, given: tuple[Context, Told], tmp_path: Path, qtbot: QtBot
) -> None:
    chart.save(tmp_path / "gone" / "chart.csv")
    qtbot.waitUntil(lambda: bool(given[1].texts))
    assert "cannot be written" in given[1].texts[0]


def test_the_picture_can_be_copied(chart: Chart) -> None:
    chart.copy_picture()
    assert not QGuiApplication.clipboard().image().isNull()
    QGuiApplication.clipboard().clear()


def test_without_points_it_says_so_and_offers_no_file(given: tuple[Context, Told]) -> None:
    made = Chart(given[0])
    with shown(made):
        made.show_lines("losses/value_loss", [], ChartOptions(), empty="No points yet")
        assert made._empty.isVisible() and made._empty.text() == "No points yet"
        assert not made.menu_button.isEnabled()


def test_the_lines_take_the_colours_of_the_theme(chart: Chart, qapp: QApplication, qtbot: QtBot) -> None:
    dark = chart.grab().toImage()
    theme.apply(qapp, "light")
    try:
        QTest.qWait(50)
        light = chart.grab().toImage()
        assert light.pixelColor(8, 8).lightness() > 200 > dark.pixelColor(8, 8).lightness()
    finally:
        theme.apply(qapp, "dark")


def test_a_page_of_charts_is_made_one_by_one_and_knows_what_is_seen(
    given: tuple[Context, Told], qtbot: QtBot
) -> None:
    tags = tuple(f"losses/{number:02}" for number in range(30))
    grid = ChartGrid(given[0])
    with shown(grid, 1000, 600):
        grid.show_sections([Section("losses", tags)])
        assert grid.chart(tags[0]) is None
        qtbot.waitUntil(lambda: all(grid.chart(tag) is not None for tag in tags))
        qtbot.waitUntil(lambda: tags[0] in grid.visible_tags())
        assert tags[-1] not in grid.visible_tags()
        with qtbot.waitSignal(grid.looked):
            grid.verticalScrollBar().setValue(grid.verticalScrollBar().maximum())
        assert tags[-1] in grid.visible_tags()
        grid.show_sections([Section("losses", tags[:1])])
        qtbot.waitUntil(lambda: grid.visible_tags() == [tags[0]])
        grid.stop()
