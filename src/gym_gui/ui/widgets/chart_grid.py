"""All charts of a page, by section, and how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from PySide6.QtCore import QPoint, QRect, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QComboBox, QGridLayout, QScrollArea, QWidget

from gym_gui.context import Context, Settings
from gym_gui.models.charting import Axis, ChartOptions, Line, Section
from gym_gui.services.tasks import timer
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import (
    Button,
    ElidedLabel,
    Gap,
    NumberLabel,
    empty,
    fill,
    hbox,
    label,
    named,
    search_field,
    slider,
    vbox,
)
from gym_gui.ui.widgets.chart import Chart

_AXES: tuple[tuple[str, Axis], ...] = (("Steps", "step"), ("Time", "time"))
_WINDOW, _AXIS, _LOG_X, _LOG_Y = "charts.window", "charts.axis", "charts.log_x", "charts.log_y"
_SHARES = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""How long the window may be, as a share of the axis."""
_ROOMY = 800
_WIDTH = 330
_HEIGHT, _MAIN_HEIGHT, _HEADING = 232, 320, 30
_SMALL_WIDTH, _SMALL_HEIGHT = 230, 168
_AHEAD = 240
"""Charts so many pixels outside of the window are made ready as well."""


class ChartOptionsBar(QWidget):
    """A row of controls; what is chosen is remembered."""

    changed = Signal()

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self.search = search_field("Find…   /", "Find")
        self.search.setMinimumWidth(84)
        self.search.setMaximumWidth(280)
        self.slider = slider(len(_SHARES) - 1, "Smoothing")
        self.slider.setPageStep(1)
        self.slider.setMinimumWidth(64)
        self.slider.setMaximumWidth(120)
        self.slider.setToolTip("Smoothing: the length of the averaging window")
        self._value = NumberLabel("0.2 %")
        self._value.setMinimumWidth(self._value.sizeHint().width())
        self.axis = named(QComboBox(), "Horizontal axis")
        for words, axis in _AXES:
            self.axis.addItem(words, axis)
        self.log_x, self.log_y = (Button(f"log {one}", role="chip", checkable=True) for one in "xy")
        self._name = label("Smoothing", "label")
        hint = ElidedLabel("Drag to zoom · double-click to reset · Enter to enlarge", "faint")
        smoothing = (self._name, (self.slider, 1), self._value)
        self.row = hbox((self.search, 1), Gap(SPACE[1]), *smoothing, Gap(SPACE[1]), on=self)
        fill(self.row, self.axis, self.log_x, self.log_y, (hint, 1))
        self.reload()
        self.slider.valueChanged.connect(self._choose)
        self.axis.currentIndexChanged.connect(self._choose)
        self.log_x.toggled.connect(self._choose)
        self.log_y.toggled.connect(self._choose)
        self.search.textChanged.connect(self.changed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # Where there is little room the slider speaks for itself, and its tooltip for it.
        self._name.setVisible(event.size().width() >= _ROOMY)

    @property
    def options(self) -> ChartOptions:
        share = _SHARES[self.slider.value()]
        return ChartOptions(share, self.axis.currentData(), self.log_x.isChecked(), self.log_y.isChecked())

    def reload(self) -> None:
        """Take what was chosen last, maybe on another page."""
        chosen = remembered_options(self._settings)
        controls = (self.slider, self.axis, self.log_x, self.log_y)
        for control in controls:
            control.blockSignals(True)
        nearest = min(range(len(_SHARES)), key=lambda at: abs(_SHARES[at] - chosen.smoothing))
        self.slider.setValue(nearest)
        self.axis.setCurrentIndex(max(0, self.axis.findData(chosen.axis)))
        self.log_x.setChecked(chosen.log_x)
        self.log_y.setChecked(chosen.log_y)
        for control in controls:
            control.blockSignals(False)
        self._tell()

    def _tell(self) -> None:
        share = self.options.smoothing
        self._value.setText(f"{share * 100:g} %" if share else "off")

    def _choose(self) -> None:
        self._tell()
        options = self.options
        chosen = (options.smoothing, options.axis, options.log_x, options.log_y)
        for name, value in zip((_WINDOW, _AXIS, _LOG_X, _LOG_Y), chosen, strict=True):
            self._settings.set(name, value)
        self.changed.emit()


def remembered_options(settings: Settings) -> ChartOptions:
    """What was chosen last."""
    usual = ChartOptions()
    return ChartOptions(
        float(settings.get(_WINDOW, usual.smoothing)),
        settings.get(_AXIS, usual.axis),
        bool(settings.get(_LOG_X, False)),
        bool(settings.get(_LOG_Y, False)),
    )


class ChartGrid(QScrollArea):
    """Charts are made one at a time, so that opening a page with fifty of them never stops the window."""

    looked = Signal()
    """Other charts than before can be seen."""
    enlarge = Signal(object)
    """The Chart that somebody wants to see larger."""

    def __init__(
        self, context: Context, margin: int = SPACE[4], main: bool = False, small: bool = False
    ) -> None:
        """With `main` the first chart has a row of its own, higher than the others; `small` shows more."""
        super().__init__(widgetResizable=True)
        self._context = context
        self._margin = margin
        self._main = main
        self._least, self._height = (_SMALL_WIDTH, _SMALL_HEIGHT) if small else (_WIDTH, _HEIGHT)
        self._charts: dict[str, Chart] = {}
        self._sections: list[Section] = []
        self._places: dict[str, tuple[QGridLayout, int]] = {}
        """The row of each chart, and its column there."""
        self._columns = 0
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._page = QWidget()
        self._rows = vbox(spacing=SPACE[2])
        vbox(self._rows, 1, on=self._page, margins=(margin, 0, margin, SPACE[3]))
        self.setWidget(self._page)
        self._making = timer(self, 0, self._make_next)
        self._looking = timer(self, 30, self.looked, once=True)
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
        made = [(tag, self._charts[tag]) for tag in self.tags() if tag in self._charts]
        places = [(tag, QRect(chart.mapTo(self._page, QPoint(0, 0)), chart.size())) for tag, chart in made]
        return [tag for tag, place in places if window.intersects(place)]

    def set_lines(self, tag: str, lines: Sequence[Line], options: ChartOptions, note: str = "") -> None:
        """Draw a metric."""
        chart = self._charts.get(tag)
        if chart is not None:
            chart.show_lines(tag, lines, options, note)

    def forget_lines(self) -> None:
        """Another run: its points are not there yet."""
        for tag, chart in self._charts.items():
            chart.show_loading(tag)

    def _make_next(self) -> None:
        missing = next((tag for tag in self.tags() if tag not in self._charts), None)
        if missing is None:
            self._making.stop()
            return
        chart = Chart(self._context, self._height)
        chart.show_loading(missing)
        chart.enlarge.connect(lambda: self.enlarge.emit(chart))
        self._charts[missing] = chart
        self._place(missing)
        self._looking.start()

    def _lay_out(self) -> None:
        self._columns = self._fit()
        shown = set(self.tags())
        for tag, chart in self._charts.items():
            chart.setVisible(tag in shown)
        # A row lets go of its charts when it is deleted.
        empty(self._rows)
        self._places = {}
        for section in self._sections:
            self._rows.addWidget(label(section.name.upper(), "section"))
            for tags in rows_of(section.tags, self._columns, self._main and section is self._sections[0]):
                row = QGridLayout()
                row.setSpacing(SPACE[2])
                self._rows.addLayout(row)
                for at, tag in enumerate(tags):
                    row.setColumnStretch(at, 1)
                    self._places[tag] = row, at
                    self._place(tag)
        self._making.start()
        self._looking.start()

    def _fit(self) -> int:
        """How many charts fit beside each other."""
        return max(1, (self.viewport().width() - 2 * self._margin) // self._least)

    def _place(self, tag: str) -> None:
        if tag in self._charts and tag in self._places:
            row, at = self._places[tag]
            row.addWidget(self._charts[tag], 0, at)
            self._charts[tag].setMinimumHeight(self._height_of(tag))
            self._charts[tag].show()

    def _height_of(self, tag: str) -> int:
        """The first chart is higher, as far as it can still be seen as a whole."""
        first = self._main and tag == self._sections[0].tags[0]
        return (
            min(_MAIN_HEIGHT, max(self._height, self.viewport().height() - _HEADING))
            if first
            else self._height
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._sections and self._fit() != self._columns:
            self._lay_out()
        for tag in self._charts.keys() & self._places.keys():
            self._charts[tag].setMinimumHeight(self._height_of(tag))
        self._looking.start()

    def stop(self) -> None:
        """Run no timer while nobody looks."""
        self._making.stop()
        self._looking.stop()

    def go_on(self) -> None:
        """Somebody looks again."""
        self._making.start()
        self._looking.start()


def rows_of(tags: Sequence[str], most: int, main: bool = False) -> list[list[str]]:
    """Which charts stand beside each other: at most so many, and in each row about the same number."""
    if main and len(tags) > 1:
        return [[tags[0]], *rows_of(tags[1:], most)]
    count = -(-len(tags) // most)
    edges = [round(number * len(tags) / count) for number in range(count + 1)] if count else [0]
    return [list(tags[start:end]) for start, end in pairwise(edges)]
