"""The page that compares runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout

from gym_gui.context import Context
from gym_gui.models.charting import Line
from gym_gui.models.compare import Group, group_runs
from gym_gui.models.metrics import sections
from gym_gui.services.compared_runs import ComparedRuns
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.compare import defaults_for, note_of, table_of
from gym_gui.ui.views.base import RunsView
from gym_gui.ui.widgets.basics import button, card, label
from gym_gui.ui.widgets.chart import LargeChart
from gym_gui.ui.widgets.chart_grid import ChartGrid
from gym_gui.ui.widgets.chart_options import ChartOptionsBar
from gym_gui.ui.widgets.compare_table import CompareTableView
from gym_gui.ui.widgets.splitting import gap_splitter
from mosaic.client import RunRecord

_TABLE_HEIGHT, _ROW_HEIGHT, _MOST_ROWS = 112, 30, 5


class CompareView(RunsView):
    """Overlaid charts above, a row for each configuration below."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._runs: dict[str, RunRecord] = {}
        self._groups: list[Group] = []
        self._defaults: Mapping[str, Mapping[str, Any]] = {}
        self._lines: dict[str, list[Line]] = {}
        self._visible = False
        self.compared = ComparedRuns(context.link, context.tasks, self)
        self.heading = label("", "title")
        self.state = label("", "dim")
        self.back = button("Back", "Esc")
        self.bar = ChartOptionsBar(context.settings)
        self.average = button("Mean of seeds", role="chip")
        self.average.setCheckable(True)
        self.average.setChecked(True)
        self.grid = ChartGrid(context, margin=0, main=True)
        self.table = CompareTableView()
        self._build()
        self._connect()

    def _build(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(SPACE[2])
        head.addWidget(self.heading)
        head.addWidget(self.state, 1)
        head.addWidget(self.back)
        self.bar.row.addWidget(self.average)
        below = card()
        below.column.addWidget(label("Differences", "strong"))
        below.column.addWidget(self.table, 1)
        self.split = split = gap_splitter(Qt.Orientation.Vertical, self.grid, below)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE[4], SPACE[3], SPACE[4], SPACE[2])
        column.setSpacing(SPACE[2])
        column.addLayout(head)
        column.addWidget(self.bar)
        column.addWidget(split, 1)
        self.large = LargeChart(self.context, self, split)

    def _connect(self) -> None:
        self.back.clicked.connect(self.closed)
        self.bar.changed.connect(self._lay_out)
        QShortcut(QKeySequence("/"), self).activated.connect(self.bar.search.setFocus)
        self.average.toggled.connect(lambda _: self._regroup())
        self.grid.looked.connect(self._want)
        self.grid.enlarge.connect(self.large.open_chart)
        # Esc closes what is enlarged before it closes the page.
        policy = self.back.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.back.setSizePolicy(policy)
        self.large.opened.connect(self.back.setHidden)
        self.table.shown_changed.connect(self._regroup)
        self.compared.tags_changed.connect(lambda _: self._lay_out())
        self.compared.ready.connect(self._show_lines)
        self.compared.progress.connect(self._show_progress)

    def show_runs(self, runs: Sequence[RunRecord]) -> None:
        self._runs = {run.run_id: run for run in runs}
        self._lines = {}
        self.heading.setText(f"{len(runs)} run{'s' * (len(runs) != 1)} compared")
        self.grid.forget_lines()
        self._arrange()
        # All rows of the table where they are few, and the rest for the charts.
        rows = min(len(self._groups), _MOST_ROWS)
        table = min(_TABLE_HEIGHT + _ROW_HEIGHT * rows, self.height() // 3)
        self.split.setSizes([self.height() - table, table])
        chosen = list(runs)
        self.context.tasks.run(lambda: defaults_for(chosen), self._take_defaults)
        if self._visible:
            self.enter()

    def update_runs(self, runs: Sequence[RunRecord]) -> None:
        known = [run for run in runs if run.run_id in self._runs]
        ended = [run for run in known if run.ended and not self._runs[run.run_id].ended]
        self._runs |= {run.run_id: run for run in known}
        if known:
            self._arrange()
        if ended and self._visible:
            self.compared.open(list(self._runs.values()))

    def enter(self) -> None:
        self._visible = True
        self.bar.reload()
        self.grid.go_on()
        self.compared.open(list(self._runs.values()))
        self._regroup()
        self._lay_out()

    def leave(self) -> None:
        self._visible = False
        self.grid.stop()
        self.compared.close()

    def close_view(self) -> None:
        self.leave()

    def _take_defaults(self, defaults: dict[str, dict[str, Any]]) -> None:
        self._defaults = defaults
        self._arrange()
        self._regroup()

    def _arrange(self) -> None:
        self._groups = group_runs(list(self._runs.values()), self._defaults)
        self.table.show_table(table_of(self._groups, self._defaults), self._groups)
        self.average.setVisible(any(len(group.runs) > 1 for group in self._groups))

    def _regroup(self) -> None:
        self.state.setText(note_of(self._groups, self.average.isChecked()))
        self.compared.show(self.table.shown(), self.average.isChecked())

    def _lay_out(self) -> None:
        self.grid.show_sections(sections(self.compared.tags, self.bar.search.text()))
        self._want()

    def _want(self) -> None:
        tags = self.grid.visible_tags()
        self.compared.want(tags, self.bar.options)
        for tag in tags:
            if tag in self._lines:
                self._draw(tag)

    def _show_lines(self, lines: dict[str, list[Line]]) -> None:
        self._lines |= lines
        for tag in lines:
            self._draw(tag)

    def _draw(self, tag: str) -> None:
        self.grid.set_lines(tag, self._lines[tag], self.bar.options)

    def _show_progress(self, done: int, total: int) -> None:
        note = note_of(self._groups, self.average.isChecked())
        self.state.setText(f"reading {done} of {total} runs" if done < total else note)
