"""The Charts tab: every scalar of a run, and where else its curves can be seen."""

from __future__ import annotations

import re
import sys
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QProcess
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QFileDialog

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.models.charting import ChartOptions, Section, batches_line, head_note, sections
from gym_gui.models.run_files import RunFacts, read_facts, summary_of
from gym_gui.models.words import is_evaluation
from gym_gui.services.curves import ChartFeed, LineMaker
from gym_gui.services.tasks import timer
from gym_gui.theme import SPACE
from gym_gui.ui.views.base import RunView, View
from gym_gui.ui.widgets.basics import Button, hbox, open_url, vbox
from gym_gui.ui.widgets.chart import LargeChart
from gym_gui.ui.widgets.chart_grid import ChartGrid, ChartOptionsBar
from mosaic.analytics.eval_summary import EvalSummary
from mosaic.client import RunRecord
from mosaic.contract.atomic import write_atomic

_ADDRESS = re.compile(r"http://\S+")
_END_MS = 10_000
BATCHES = "Return of each batch"
_BATCH_MS = 1000


class CurvesView(View):
    """Charts in a grid, and above it a search and how they are drawn; `maker` makes their lines."""

    def __init__(self, context: Context, maker: LineMaker, grid: ChartGrid) -> None:
        super().__init__(context)
        maker.setParent(self)
        self._maker, self.grid = maker, grid
        self._lines: dict[str, Any] = {}
        """What the maker has made of each metric."""
        self.bar = ChartOptionsBar(context.settings)
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


class RunLinks(RunView):
    """A row of buttons; those that lead nowhere are not shown.

    Each run has a TensorBoard of its own, in a process of its own: `mosaic tensorboard RUN`.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._wandb_url = ""
        self._boards: dict[str, QProcess] = {}
        self._addresses: dict[str, str] = {}
        self._last = "TensorBoard has ended without a word."
        self.wandb = Button("W&&B ↗", do=lambda: open_url(self._wandb_url, context.notifications))
        self.wandb.setToolTip("Weights & Biases")
        self.wandb.setAccessibleName("Weights & Biases")
        self.tensorboard = Button("TensorBoard ↗", do=self._open_tensorboard)
        self.export = Button("Export CSV…", do=self._ask_and_export)
        self.wandb.hide()
        hbox(self.wandb, self.tensorboard, self.export, on=self)

    def show_run(self, run: RunRecord) -> None:
        super().show_run(run)
        self.wandb.hide()

    def enter(self) -> None:
        super().enter()
        self.read(read_facts, self._show_facts)

    def close_view(self) -> None:
        """End every TensorBoard."""
        for process in self._boards.values():
            process.blockSignals(True)
            process.terminate()
        for process in self._boards.values():
            process.waitForFinished(_END_MS)

    def _show_facts(self, facts: RunFacts) -> None:
        self._wandb_url = facts.wandb_url or ""
        self.wandb.setVisible(bool(facts.wandb_url))

    def _open_tensorboard(self) -> None:
        run_id = self.run.run_id
        self.tensorboard.setEnabled(False)
        self.context.notifications.tell("TensorBoard is starting; it opens in the browser.")
        if run_id in self._addresses:
            self._show_board(run_id)
        elif run_id not in self._boards:
            process = self._boards[run_id] = QProcess(self)
            process.setProcessChannelMode(QProcess.ProcessChannelMode.MergedChannels)
            process.setStandardInputFile(QProcess.nullDevice())
            process.readyReadStandardOutput.connect(lambda: self._listen(run_id, process))
            process.finished.connect(lambda: self._board_ended(run_id))
            var = str(self.context.link.var)
            process.start(sys.executable, ["-m", "mosaic", "tensorboard", run_id, "--var", var])

    def _listen(self, run_id: str, process: QProcess) -> None:
        while process.canReadLine():
            line = bytes(process.readLine().data()).decode(errors="replace").strip()
            self._last = line or self._last
            found = _ADDRESS.search(line)
            if found:
                self._addresses[run_id] = found[0]
                self._show_board(run_id)

    def _show_board(self, run_id: str) -> None:
        self.tensorboard.setEnabled(True)
        open_url(self._addresses[run_id], self.context.notifications)

    def _board_ended(self, run_id: str) -> None:
        self._boards.pop(run_id).deleteLater()
        if self._addresses.pop(run_id, None) is None:
            self.tensorboard.setEnabled(True)
            self.context.notifications.tell(self._last, "bad")

    def _ask_and_export(self) -> None:
        asked, _ = QFileDialog.getSaveFileName(
            self.window(), "Export every point of this run", f"{self.run.run_name}.csv", "Table (*.csv)"
        )
        if asked:
            self.export_to(Path(asked))

    def export_to(self, path: Path) -> None:
        """Write every point of every metric to a table."""
        run_id, link = self.run.run_id, self.context.link
        self.context.tasks.run(
            lambda: write_atomic(path, link.client().metrics(run_id).to_csv().encode()),
            lambda _: self.context.notifications.tell(f"Saved {path}.", "good"),
            owner=self,
        )


class ChartsView(CurvesView, RunView):
    """Smoothing, the axis and a search above; the charts below; one of them large when asked for."""

    title = "Charts"

    def __init__(self, context: Context) -> None:
        self._summary: EvalSummary | None = None
        self.feed = ChartFeed(context.link, context.tasks)
        super().__init__(context, self.feed, ChartGrid(context))
        self.links = RunLinks(context)
        self.large = LargeChart(context, self, self.grid, SPACE[4])
        self.grid.enlarge.connect(self.large.open_chart)
        self._timer = timer(self, _BATCH_MS, self._read_summary)
        self.bar.row.addWidget(self.links)
        # The charts scroll up to the edge of the window; only what does not scroll is set in.
        inset = vbox(self.bar, margins=(SPACE[4], 0, SPACE[4], 0))
        vbox(inset, (self.grid, 1), on=self, margins=(0, SPACE[3], 0, 0), spacing=SPACE[2])

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return facts.has_scalars or facts.is_evaluation

    def show_run(self, run: RunRecord) -> None:
        super().show_run(run)
        self._summary, self._lines = None, {}
        self.links.show_run(run)
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
        self.links.enter()
        if is_evaluation(self.run):
            self._read_summary()
            self._timer.start()

    def leave(self) -> None:
        super().leave()
        self._timer.stop()

    def close_view(self) -> None:
        super().close_view()
        self.links.close_view()

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
