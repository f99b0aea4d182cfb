"""The Charts tab: every scalar of a run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QFileDialog, QLabel

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.models.charting import ChartOptions, Section, batches_line, head_note, sections
from gym_gui.models.run_files import RunFacts, summary_of
from gym_gui.models.words import is_evaluation
from gym_gui.services.curves import ChartFeed, LineMaker
from gym_gui.services.tasks import timer
from gym_gui.theme import SPACE
from gym_gui.ui.views.base import RunView, View
from gym_gui.ui.widgets.basics import Button, vbox
from gym_gui.ui.widgets.chart import LargeChart
from gym_gui.ui.widgets.chart_grid import ChartGrid, ChartOptionsBar
from mosaic.analytics.eval_summary import EvalSummary
from mosaic.client import RunRecord
from mosaic.contract.atomic import write_atomic

BATCHES = "Return of each batch"
_BATCH_MS = 1000
_MOST_PROBLEMS = 3


class Problems(QLabel):
    """What is wrong with the event files that are read, in plain text: their names are not ours."""

    def __init__(self, maker: LineMaker) -> None:
        super().__init__(textFormat=Qt.TextFormat.PlainText, wordWrap=True)
        self.setProperty("role", "warn")
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.hide()
        maker.problems_changed.connect(self.show_problems)

    def show_problems(self, problems: Sequence[str]) -> None:
        more = f"\nand {len(problems) - _MOST_PROBLEMS} more" if len(problems) > _MOST_PROBLEMS else ""
        self.setText("\n".join(problems[:_MOST_PROBLEMS]) + more)
        self.setVisible(bool(problems))


class CurvesView(View):
    """Charts in a grid, and above it a search and how they are drawn; `maker` makes their lines."""

    def __init__(self, context: Context, maker: LineMaker, grid: ChartGrid) -> None:
        super().__init__(context)
        maker.setParent(self)
        self._maker, self.grid = maker, grid
        self._lines: dict[str, Any] = {}
        """What the maker has made of each metric."""
        self.bar = ChartOptionsBar(context.settings)
        self.problems = Problems(maker)
        maker.tags_changed.connect(self._lay_out)
        maker.ready.connect(self._show_lines)
        self.bar.changed.connect(self._lay_out)
        grid.looked.connect(self._want)
        QShortcut(QKeySequence("/"), self).activated.connect(self.bar.search.setFocus)

    def enter(self) -> None:
        super().enter()
        self.bar.reload()
        self.grid.go_on()

    def leave(self) -> None:
        super().leave()
        self.grid.stop()
        self._maker.close()

    def _sections(self) -> list[Section]:
        """The metrics that are searched for."""
        return sections(self._maker.tags, self.bar.search.text())

    def _lay_out(self) -> None:
        self.grid.show_sections(self._sections())
        self._want()

    def _want(self) -> None:
        tags = self.grid.visible_tags()
        self._maker.want(tags, self.bar.options)
        for tag in tags:
            if tag in self._lines:
                self._draw(tag)

    def _show_lines(self, lines: Mapping[str, Any]) -> None:
        self._lines |= lines
        for tag in lines:
            self._draw(tag)

    @abstractmethod
    def _draw(self, tag: str) -> None:
        """Show the lines of a metric."""


class ExportButton(Button):
    """Writes every point of the run that is shown to a table."""

    def __init__(self, context: Context) -> None:
        super().__init__("Export CSV…", do=self._ask_and_export)
        self._context = context
        self.run: RunRecord | None = None

    def _ask_and_export(self) -> None:
        name = "" if self.run is None else f"{self.run.run_name}.csv"
        asked, _ = QFileDialog.getSaveFileName(
            self.window(), "Export every point of this run", name, "Table (*.csv)"
        )
        if asked:
            self.export_to(Path(asked))

    def export_to(self, path: Path) -> None:
        """Write every point of every metric to a table."""
        assert self.run is not None
        run_id, link = self.run.run_id, self._context.link
        self._context.tasks.run(
            lambda: write_atomic(path, link.client().metrics(run_id).to_csv().encode()),
            lambda _: self._context.notifications.tell(f"Saved {path}.", "good"),
            owner=self,
        )


class ChartsView(CurvesView, RunView):
    """Smoothing, the axis and a search above; the charts below; one of them large when asked for."""

    title = "Charts"

    def __init__(self, context: Context) -> None:
        self._summary: EvalSummary | None = None
        self.feed = ChartFeed(context.link, context.tasks)
        super().__init__(context, self.feed, ChartGrid(context))
        self.export = ExportButton(context)
        self.large = LargeChart(context, self, self.grid, SPACE[4])
        self.grid.enlarge.connect(self.large.open_chart)
        self._timer = timer(self, _BATCH_MS, self._read_summary)
        self.bar.row.addWidget(self.export)
        # The charts scroll up to the edge of the window; only what does not scroll is set in.
        inset = vbox(self.bar, self.problems, margins=(SPACE[4], 0, SPACE[4], 0))
        vbox(inset, (self.grid, 1), on=self, margins=(0, SPACE[3], 0, 0), spacing=SPACE[2])

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return facts.has_scalars or facts.is_evaluation

    def show_run(self, run: RunRecord) -> None:
        super().show_run(run)
        self._summary, self._lines = None, {}
        self.export.run = run
        self.grid.forget_lines()

    def update_run(self, run: RunRecord) -> None:
        super().update_run(run)
        for tag in self._lines:
            chart = self.grid.chart(tag)
            if chart is not None:
                chart.show_note(self._note(tag))

    def enter(self) -> None:
        super().enter()
        self.feed.open(self.run.run_id)
        self._want()
        if is_evaluation(self.run):
            self._read_summary()
            self._timer.start()

    def leave(self) -> None:
        super().leave()
        self._timer.stop()

    def _sections(self) -> list[Section]:
        own = is_evaluation(self.run) and not self.bar.search.text()
        return [*([Section("evaluation", (BATCHES,))] if own else []), *super()._sections()]

    def _draw(self, tag: str) -> None:
        options = ChartOptions(axis="batch") if tag == BATCHES else self.bar.options
        self.grid.set_lines(tag, [self._lines[tag]], options, self._note(tag))

    def _note(self, tag: str) -> str:
        """What stands beside the name of a metric."""
        if tag == BATCHES and self._summary is not None:
            return f"mean return {words.number(self._summary.overall.mean)}"
        return head_note(self.run, tag, self._lines[tag])

    def _read_summary(self) -> None:
        self.read(summary_of, self._take_summary)

    def _take_summary(self, summary: EvalSummary | None) -> None:
        if self.run.ended:
            self._timer.stop()
        if summary is not None and summary != self._summary:
            self._summary, self._lines[BATCHES] = summary, batches_line(summary)
            self._lay_out()
