"""A few small charts beside each other, in a narrow window below each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from gym_gui.context import Context
from gym_gui.models.charting import Axis, Line
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.chart import Chart
from gym_gui.ui.widgets.chart_grid import last_value

_WIDTH, _HEIGHT = 205, 230


class ChartRow(QWidget):
    """One chart for each metric that it is given."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context
        self._columns = 0
        self._tags: list[str] = []
        self._lines: Mapping[str, Line] = {}
        self._axis: Axis = "step"
        self.charts: list[Chart] = []
        self._making = QTimer(self, interval=0)
        self._making.timeout.connect(self._make_next)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(SPACE[2])

    def show_tags(self, tags: Sequence[str], empty: str) -> None:
        """Have a chart for each of these metrics; those that are new begin `empty`."""
        for place, chart in enumerate(self.charts):
            chart.setVisible(place < len(tags))
            if place < len(tags) and self._tags[place : place + 1] != [tags[place]]:
                chart.show_lines(tags[place], [], "step", empty=empty)
        self._tags = list(tags)
        self._arrange()
        if len(self.charts) < len(tags):
            self._making.start()

    def _make_next(self) -> None:
        """Make one chart more; all at once would stop the window for a moment."""
        if len(self.charts) >= len(self._tags):
            self._making.stop()
            return
        tag = self._tags[len(self.charts)]
        self.charts.append(Chart(self._context, _HEIGHT))
        self._columns = 0
        self._arrange()
        self.charts[-1].show_lines(tag, [], "step", empty="Reading…")
        self.show_lines(self._lines, self._axis)

    def show_lines(self, lines: Mapping[str, Line], axis: Axis) -> None:
        """Draw those of the lines that belong here."""
        self._lines, self._axis = {**self._lines, **lines}, axis
        for tag, chart in zip(self._tags, self.charts, strict=False):
            if tag in lines:
                chart.show_lines(tag, [lines[tag]], axis, last_value([lines[tag]]))

    def forget(self, empty: str) -> None:
        """Another run: its points are not there yet."""
        self._lines = {}
        for tag, chart in zip(self._tags, self.charts, strict=False):
            chart.plot.zoom_to(None)
            chart.show_lines(tag, [], "step", empty=empty)

    def _arrange(self) -> None:
        count = len(self._tags)
        fit = max(1, min(count, self.width() // _WIDTH))
        # Rows of two look better than three and one.
        fit = 2 if (count, fit) == (4, 3) else fit
        if fit == self._columns or not count:
            return
        self._columns = fit
        for place, chart in enumerate(self.charts):
            self._grid.addWidget(chart, place // fit, place % fit)
        for column in range(max(count, self._grid.columnCount())):
            self._grid.setColumnStretch(column, 1 if column < fit else 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()
