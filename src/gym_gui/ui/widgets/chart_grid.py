"""All charts of a page, by section, as many beside each other as fit."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from gym_gui.context import Context
from gym_gui.models.charting import Axis, Line
from gym_gui.models.metrics import Section
from gym_gui.models.scales import value_text
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import label
from gym_gui.ui.widgets.chart import Chart

_WIDTH = 330
_HEIGHT = 232
_AHEAD = 240
"""Charts so many pixels outside of the window are made ready as well."""


class ChartGrid(QScrollArea):
    """Charts are made one at a time, so that opening a page with fifty of them never stops the window."""

    looked = Signal()
    """Other charts than before can be seen."""
    enlarge = Signal(str)

    def __init__(self, context: Context, margin: int = SPACE[4]) -> None:
        super().__init__()
        self._context = context
        self._margin = margin
        self._charts: dict[str, Chart] = {}
        self._sections: list[Section] = []
        self._headings: list[QLabel] = []
        self._places: dict[str, tuple[int, int]] = {}
        """Row and column of each chart."""
        self._columns = 0
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._page = QWidget()
        column = QVBoxLayout(self._page)
        column.setContentsMargins(margin, 0, margin, SPACE[3])
        self._grid = QGridLayout()
        self._grid.setSpacing(SPACE[2])
        column.addLayout(self._grid)
        column.addStretch(1)
        self.setWidget(self._page)
        self._making = QTimer(self, interval=0)
        self._making.timeout.connect(self._make_next)
        self._looking = QTimer(self, singleShot=True, interval=30)
        self._looking.timeout.connect(self.looked)
        self.verticalScrollBar().valueChanged.connect(lambda _: self._looking.start())

    def show_sections(self, sections: Sequence[Section]) -> None:
        """Lay these metrics out; their lines come later."""
        if list(sections) != self._sections:
            self._sections = list(sections)
            self._lay_out()

    def chart(self, tag: str) -> Chart | None:
        return self._charts.get(tag)

    def tags(self) -> list[str]:
        """The metrics that are laid out."""
        return [tag for section in self._sections for tag in section.tags]

    def visible_tags(self) -> list[str]:
        """The metrics whose charts can be seen, or nearly."""
        window = QRect(QPoint(0, self.verticalScrollBar().value()), self.viewport().size())
        window.adjust(0, -_AHEAD, 0, _AHEAD)
        return [
            tag
            for tag in self.tags()
            if tag in self._charts
            and window.intersects(
                QRect(self._charts[tag].mapTo(self._page, QPoint(0, 0)), self._charts[tag].size())
            )
        ]

    def set_lines(self, tag: str, lines: Sequence[Line], axis: Axis, note: str | None = None) -> None:
        """Draw a metric."""
        chart = self._charts.get(tag)
        if chart is not None:
            chart.show_lines(tag, lines, axis, note if note is not None else last_value(lines))

    def forget_lines(self) -> None:
        """Another run: its points are not there yet."""
        for tag, chart in self._charts.items():
            chart.plot.zoom_to(None)
            chart.show_lines(tag, [], "step", empty="Reading…")

    def _make_next(self) -> None:
        missing = next((tag for tag in self.tags() if tag not in self._charts), None)
        if missing is None:
            self._making.stop()
            return
        chart = Chart(self._context, _HEIGHT)
        chart.show_lines(missing, [], "step", empty="Reading…")
        chart.enlarge.connect(lambda tag=missing: self.enlarge.emit(tag))
        self._charts[missing] = chart
        self._place(missing)
        self._looking.start()

    def _lay_out(self) -> None:
        self._columns = self._fit()
        shown = set(self.tags())
        for tag, chart in self._charts.items():
            chart.setVisible(tag in shown)
            self._grid.removeWidget(chart)
        for heading in self._headings:
            heading.deleteLater()
        self._headings = [label(section.name.upper(), "section") for section in self._sections]
        self._places = {}
        row = 0
        for section, heading in zip(self._sections, self._headings, strict=True):
            self._grid.addWidget(heading, row, 0, 1, self._columns)
            for at, tag in enumerate(section.tags):
                self._places[tag] = (row + 1 + at // self._columns, at % self._columns)
                self._place(tag)
            row += 1 + -(-len(section.tags) // self._columns)
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, 1 if column < self._columns else 0)
        self._making.start()
        self._looking.start()

    def _fit(self) -> int:
        """How many charts fit beside each other."""
        return max(1, (self.viewport().width() - 2 * self._margin) // _WIDTH)

    def _place(self, tag: str) -> None:
        if tag in self._charts and tag in self._places:
            self._grid.addWidget(self._charts[tag], *self._places[tag])
            self._charts[tag].show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._sections and self._fit() != self._columns:
            self._lay_out()
        self._looking.start()

    def stop(self) -> None:
        """Run no timer while nobody looks."""
        self._making.stop()
        self._looking.stop()

    def go_on(self) -> None:
        """Somebody looks again."""
        self._making.start()
        self._looking.start()


def last_value(lines: Sequence[Line]) -> str:
    """What stands at the end of a lone line, and how many of its values are no numbers."""
    if len(lines) != 1 or not len(lines[0].shown):
        return ""
    lost = f"{lines[0].lost:,} not a number · " if lines[0].lost else ""
    return lost + value_text(float(lines[0].shown[-1]))
