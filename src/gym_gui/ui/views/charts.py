"""The Charts tab: every scalar of a run."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtCore import QTimer
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from gym_gui.context import Context
from gym_gui.models.charting import Line, batches_line
from gym_gui.models.evaluations import summary_of
from gym_gui.models.facts import RunFacts, is_evaluation
from gym_gui.models.metrics import Section, sections
from gym_gui.services.chart_feed import ChartFeed
from gym_gui.theme import SPACE
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.basics import button
from gym_gui.ui.widgets.chart import Chart
from gym_gui.ui.widgets.chart_grid import ChartGrid, last_value
from gym_gui.ui.widgets.chart_options import ChartOptionsBar
from gym_gui.ui.widgets.run_links import RunLinks
from mosaic.analytics.eval_summary import EvalSummary
from mosaic.client import RunRecord

BATCHES = "Return of each batch"
_BATCH_MS = 1000


class ChartsView(RunView):
    """Smoothing, the axis and a search above; the charts below; one of them large when asked for."""

    title: ClassVar[str] = "Charts"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._run: RunRecord | None = None
        self._summary: EvalSummary | None = None
        self._lines: dict[str, Line] = {}
        self._large = ""
        self._visible = False
        self.feed = ChartFeed(context.link, context.tasks)
        self.links = RunLinks(context)
        self.bar = ChartOptionsBar(context.settings)
        self.grid = ChartGrid(context)
        self.single = Chart(context)
        self._timer = QTimer(self, interval=_BATCH_MS)
        self._build()
        self._connect()

    def _build(self) -> None:
        self.bar.row.addWidget(self.links)
        self.back = button("All charts", "Esc")
        self.back.hide()
        self.bar.row.insertWidget(0, self.back)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.grid)
        page = QWidget()
        around = QVBoxLayout(page)
        around.setContentsMargins(SPACE[4], 0, SPACE[4], SPACE[3])
        around.addWidget(self.single)
        self.stack.addWidget(page)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, SPACE[3], 0, 0)
        column.setSpacing(SPACE[2])
        # The charts scroll up to the edge of the window; only what does not scroll is set in.
        inset = QVBoxLayout()
        inset.setContentsMargins(SPACE[4], 0, SPACE[4], 0)
        inset.addWidget(self.bar)
        column.addLayout(inset)
        column.addWidget(self.stack, 1)

    def _connect(self) -> None:
        self.feed.tags_changed.connect(lambda _: self._lay_out())
        self.feed.ready.connect(self._show_lines)
        self.bar.changed.connect(self._options_changed)
        self.grid.looked.connect(self._want)
        self.grid.enlarge.connect(self.show_large)
        self.single.enlarge.connect(lambda: self.show_large(""))
        self.back.clicked.connect(lambda: self.show_large(""))
        self._timer.timeout.connect(self._read_summary)
        QShortcut(QKeySequence("/"), self).activated.connect(self.bar.search.setFocus)

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return facts.has_scalars or facts.is_evaluation

    def show_run(self, run: RunRecord) -> None:
        self._run, self._summary, self._lines = run, None, {}
        self.links.show_run(run)
        self.grid.forget_lines()
        self.show_large("")
        if self._visible:
            self.enter()

    def update_run(self, run: RunRecord) -> None:
        self._run = run

    def enter(self) -> None:
        if self._run is None:
            return
        self._visible = True
        self.bar.reload()
        self.feed.open(self._run.run_id)
        self.grid.go_on()
        self._want()
        self.links.refresh()
        if is_evaluation(self._run):
            self._read_summary()
            self._timer.start()

    def leave(self) -> None:
        self._visible = False
        self.feed.close()
        self.grid.stop()
        self._timer.stop()

    def close_view(self) -> None:
        self.leave()
        self.links.close_links()

    def _lay_out(self) -> None:
        found = sections(self.feed.tags, self.bar.search.text())
        if self._run is not None and is_evaluation(self._run) and not self.bar.search.text():
            found = [Section("evaluation", (BATCHES,)), *found]
        self.grid.show_sections(found)
        self._show_batches()

    def _options_changed(self) -> None:
        self._lay_out()
        self._want()

    def _want(self) -> None:
        tags = [self._large] if self._large else self.grid.visible_tags()
        self.feed.want([tag for tag in tags if tag != BATCHES], self.bar.options)
        self._show_batches()
        for tag in tags:
            if tag in self._lines:
                self._draw(tag)

    def _show_lines(self, lines: dict[str, Line]) -> None:
        self._lines |= lines
        for tag in lines:
            self._draw(tag)

    def _draw(self, tag: str) -> None:
        lines, axis = [self._lines[tag]], self.bar.options.axis
        if tag == self._large:
            self.single.show_lines(tag, lines, axis, last_value(lines))
        else:
            self.grid.set_lines(tag, lines, axis)

    def show_large(self, tag: str) -> None:
        """One chart alone, or with an empty name all of them."""
        self._large = tag
        self.back.setVisible(bool(tag))
        self.stack.setCurrentIndex(1 if tag else 0)
        if tag:
            self.single.plot.zoom_to(None)
            self.single.plot.setFocus()
            self._want()

    def _read_summary(self) -> None:
        run = self._run
        if run is not None:
            self.context.tasks.run(lambda: summary_of(run), self._take_summary)

    def _take_summary(self, found: tuple[str, EvalSummary | None]) -> None:
        run_id, summary = found
        if self._run is None or run_id != self._run.run_id:
            return
        if self._run.ended:
            self._timer.stop()
        if summary is not None and summary != self._summary:
            self._summary = summary
            self._lay_out()

    def _show_batches(self) -> None:
        if self._summary is None:
            return
        line, note = batches_line(self._summary), "mean ± standard deviation"
        if self._large == BATCHES:
            self.single.show_lines(BATCHES, [line], "batch", note)
        else:
            self.grid.set_lines(BATCHES, [line], "batch", note)
