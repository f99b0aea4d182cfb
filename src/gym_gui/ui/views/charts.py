"""The Charts tab: every scalar of a run, and where else its curves can be seen."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import ClassVar

from PySide6.QtCore import QObject, QProcess, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QFileDialog, QWidget

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.models.charting import ChartOptions, Line, Section, batches_line, head_note, sections
from gym_gui.models.run_files import RunFacts, read_facts, summary_of
from gym_gui.models.words import is_evaluation
from gym_gui.services.curves import ChartFeed
from gym_gui.theme import SPACE
from gym_gui.ui.views.base import RunView
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


class TensorBoards(QObject):
    """One TensorBoard for each run, each in a process of its own: `mosaic tensorboard RUN`."""

    ready = Signal(str)
    """Its address."""
    failed = Signal(str)
    """Why there is none."""

    def __init__(self, var: Path) -> None:
        super().__init__()
        self._var = var
        self._processes: dict[str, QProcess] = {}
        self._addresses: dict[str, str] = {}
        self._last = "TensorBoard has ended without a word."

    def open(self, run_id: str) -> None:
        """Tell the address of a run's TensorBoard, at once or when it has started."""
        if run_id in self._addresses:
            self.ready.emit(self._addresses[run_id])
        elif run_id not in self._processes:
            process = self._processes[run_id] = QProcess(self)
            process.setProcessChannelMode(QProcess.ProcessChannelMode.MergedChannels)
            process.setStandardInputFile(QProcess.nullDevice())
            process.readyReadStandardOutput.connect(lambda: self._listen(run_id, process))
            process.finished.connect(lambda: self._end(run_id))
            process.start(sys.executable, ["-m", "mosaic", "tensorboard", run_id, "--var", str(self._var)])

    def close(self) -> None:
        """End them all."""
        self.blockSignals(True)
        for process in self._processes.values():
            process.terminate()
        for process in list(self._processes.values()):
            process.waitForFinished(_END_MS)

    def _listen(self, run_id: str, process: QProcess) -> None:
        while process.canReadLine():
            line = bytes(process.readLine().data()).decode(errors="replace").strip()
            self._last = line or self._last
            found = _ADDRESS.search(line)
            if found:
                self._addresses[run_id] = found[0]
                self.ready.emit(found[0])

    def _end(self, run_id: str) -> None:
        self._processes.pop(run_id).deleteLater()
        if self._addresses.pop(run_id, None) is None:
            self.failed.emit(self._last)


class RunLinks(QWidget):
    """A row of buttons; those that lead nowhere are not shown."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context
        self._run: RunRecord | None = None
        self._wandb_url = ""
        self.boards = TensorBoards(context.link.var)
        self.wandb = Button("W&&B ↗", do=lambda: open_url(self._wandb_url, context.notifications))
        self.wandb.setToolTip("Weights & Biases")
        self.wandb.setAccessibleName("Weights & Biases")
        self.tensorboard = Button("TensorBoard ↗", do=self._open_tensorboard)
        self.export = Button("Export CSV…", do=self._ask_and_export)
        self.wandb.hide()
        hbox(self.wandb, self.tensorboard, self.export, on=self)
        self.boards.ready.connect(self._board_ready)
        self.boards.failed.connect(self._board_failed)

    def show_run(self, run: RunRecord) -> None:
        """Lead to this run from now on."""
        self._run, self._wandb_url = run, ""
        self.wandb.hide()

    def refresh(self) -> None:
        """Look for what the run has elsewhere."""
        run = self._run
        if run is not None:
            self._context.tasks.run(lambda: (run.run_id, read_facts(run)), self._show_facts)

    def close_links(self) -> None:
        """End what was started."""
        self.boards.close()

    def _show_facts(self, found: tuple[str, RunFacts]) -> None:
        run_id, facts = found
        if self._run is not None and run_id == self._run.run_id:
            self._wandb_url = facts.wandb_url or ""
            self.wandb.setVisible(bool(facts.wandb_url))

    def _open_tensorboard(self) -> None:
        if self._run is not None:
            self.tensorboard.setEnabled(False)
            self._context.notifications.tell("TensorBoard is starting; it opens in the browser.")
            self.boards.open(self._run.run_id)

    def _board_ready(self, address: str) -> None:
        self.tensorboard.setEnabled(True)
        open_url(address, self._context.notifications)

    def _board_failed(self, why: str) -> None:
        self.tensorboard.setEnabled(True)
        self._context.notifications.tell(why, "bad")

    def _ask_and_export(self) -> None:
        if self._run is None:
            return
        asked, _ = QFileDialog.getSaveFileName(
            self.window(), "Export every point of this run", f"{self._run.run_name}.csv", "Table (*.csv)"
        )
        if asked:
            self.export_to(Path(asked))

    def export_to(self, path: Path) -> None:
        """Write every point of every metric to a table."""
        assert self._run is not None
        run_id, link = self._run.run_id, self._context.link

        self._context.tasks.run(
            lambda: write_atomic(path, link.client().metrics(run_id).to_csv().encode()),
            lambda _: self._context.notifications.tell(f"Saved {path}.", "good"),
            owner=self,
        )


class ChartsView(RunView):
    """Smoothing, the axis and a search above; the charts below; one of them large when asked for."""

    title: ClassVar[str] = "Charts"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._summary: EvalSummary | None = None
        self._lines: dict[str, Line] = {}
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
        column = vbox(on=self, margins=(0, SPACE[3], 0, 0), spacing=SPACE[2])
        # The charts scroll up to the edge of the window; only what does not scroll is set in.
        inset = vbox(self.bar, margins=(SPACE[4], 0, SPACE[4], 0))
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
        super().enter()
        self.bar.reload()
        self.feed.open(self._run.run_id)
        self.grid.go_on()
        self._want()
        self.links.refresh()
        if is_evaluation(self._run):
            self._read_summary()
            self._timer.start()

    def leave(self) -> None:
        super().leave()
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
        if self._run is None or not self.is_shown(run_id):
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
