"""The Charts tab: every scalar of a run."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtCore import QTimer
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QVBoxLayout

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.models.charting import ChartOptions, Line, batches_line
from gym_gui.models.evaluations import summary_of
from gym_gui.models.facts import RunFacts, is_evaluation
from gym_gui.models.metrics import Section, head_note, sections
from gym_gui.services.chart_feed import ChartFeed
from gym_gui.theme import SPACE
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.chart import LargeChart
from gym_gui.ui.widgets.chart_grid import ChartGrid
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
        self._visible = False
        self.feed = ChartFeed(context.link, context.tasks)
        self.links = RunLinks(context)
        self.bar = ChartOptionsBar(context.settings)
        self.grid = ChartGrid(context)
        self.large = LargeChart(context, self, self.grid, SPACE[4])
        self._timer = QTimer(self, interval=_BATCH_MS)
        self._build()
        self._connect()

    def _build(self) -> None:
        self.bar.row.addWidget(self.links)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, SPACE[3], 0, 0)
        column.setSpacing(SPACE[2])
        # The charts scroll up to the edge of the window; only what does not scroll is set in.
        inset = QVBoxLayout()
        inset.setContentsMargins(SPACE[4], 0, SPACE[4], 0)
        inset.addWidget(self.bar)
        column.addLayout(inset)
        column.addWidget(self.grid, 1)

    def _connect(self) -> None:
        self.feed.tags_changed.connect(lambda _: self._lay_out())
        self.feed.ready.connect(self._show_lines)
        self.bar.changed.connect(self._options_changed)
        self.grid.looked.connect(self._want)
        self.grid.enlarge.connect(self.large.open_chart)
        self._timer.timeout.connect(self._read_summary)
        QShortcut(QKeySequence("/"), self).activated.connect(self.bar.search.setFocus)

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return facts.has_scalars or facts.is_evaluation

    def show_run(self, run: RunRecord) -> None:
        self._run, self._summary, self._lines = run, None, {}
        self.links.show_run(run)
        self.grid.forget_lines()
        if self._visible:
            self.enter()

    def update_run(self, run: RunRecord) -> None:
        self._run = run
        for tag, line in self._lines.items():
            chart = self.grid.chart(tag)
            if chart is not None:
                chart.show_note(head_note(run, tag, line))

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
        tags = self.grid.visible_tags()
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
        line = self._lines[tag]
        self.grid.set_lines(tag, [line], self.bar.options, head_note(self._run, tag, line))

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
        note = f"mean return {words.number(self._summary.overall.mean)}"
        self.grid.set_lines(BATCHES, [batches_line(self._summary)], ChartOptions(axis="batch"), note)
