"""The page that compares runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem

from gym_gui.context import Context
from gym_gui.models.compare import Cell, note_of, table_of
from gym_gui.services.curves import ComparedRuns
from gym_gui.theme import SPACE, number_font, theme
from gym_gui.ui.views.charts import CurvesView
from gym_gui.ui.widgets.basics import Button, Card, gap_splitter, hbox, label, vbox
from gym_gui.ui.widgets.chart import LargeChart
from gym_gui.ui.widgets.chart_grid import ChartGrid
from gym_gui.ui.widgets.plot_parts import line_colour
from mosaic.client import RunRecord
from mosaic.client.groups import Group, defaults_for, group_runs

_RIGHT_FROM = 1
_DOT = 10
_TABLE_HEIGHT, _ROW_HEIGHT, _MOST_ROWS = 112, 30, 5


class CompareTableView(QTableWidget):
    """A tick before a row shows its lines; settings that are not the default stand out."""

    shown_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._table: tuple[list[str], list[list[Cell]]] = ([], [])
        self._groups: Sequence[Group] = ()
        self._hidden: set[str] = set()
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.setShowGrid(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(30)
        self._header = self.horizontalHeader()
        self._header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self._header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.setIconSize(QSize(_DOT, _DOT))
        self.setAccessibleName("Compared runs and their differences")
        self.itemChanged.connect(self._ticked)
        theme.changed.connect(self._recolour)

    def show_table(self, columns: list[str], rows: list[list[Cell]], groups: Sequence[Group]) -> None:
        """Renew the rows; what was hidden stays so."""
        self.blockSignals(True)
        self._table, self._groups = (columns, rows), groups
        # Measured once at the end: with each label it would be all cells again.
        self._header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.setColumnCount(len(columns))
        self.setHorizontalHeaderLabels(columns)
        self.setRowCount(len(rows))
        for place, cells in enumerate(rows):
            row = [QTableWidgetItem(cell.text) for cell in cells]
            for column, (cell, item) in enumerate(zip(cells, row, strict=True)):
                if column >= _RIGHT_FROM:
                    item.setFont(number_font())
                if cell.role != "text":
                    item.setForeground(theme.palette.colour(cell.role))
                self.setItem(place, column, item)
            first = row[0]
            first.setFlags(first.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            hidden = self._groups[place].label in self._hidden
            first.setCheckState(Qt.CheckState.Unchecked if hidden else Qt.CheckState.Checked)
            first.setIcon(_dot(line_colour(self._groups[place].colour)))
        self._header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self._header.setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        # The tick and the dot before a name are not counted by its size hint.
        self.setColumnWidth(0, self.sizeHintForColumn(0) + 2 * _DOT)
        self.blockSignals(False)

    def shown(self) -> list[Group]:
        """The groups that are to be drawn."""
        return [group for group in self._groups if group.label not in self._hidden]

    def _ticked(self, item: QTableWidgetItem) -> None:
        if item.column() != 0:
            return
        name = self._groups[item.row()].label
        if item.checkState() == Qt.CheckState.Checked:
            self._hidden.discard(name)
        else:
            self._hidden.add(name)
        self.shown_changed.emit()

    def _recolour(self) -> None:
        if self._groups:
            self.show_table(*self._table, self._groups)


def _dot(colour: QColor) -> QIcon:
    picture = QPixmap(_DOT * 2, _DOT * 2)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawEllipse(2, 2, _DOT * 2 - 4, _DOT * 2 - 4)
    painter.end()
    return QIcon(picture)


class CompareView(CurvesView):
    """Overlaid charts above, a row for each configuration below."""

    closed = Signal()
    """The person wants to go back."""

    def __init__(self, context: Context) -> None:
        self._runs: dict[str, RunRecord] = {}
        self._groups: list[Group] = []
        self._defaults: Mapping[str, Mapping[str, Any]] = {}
        self.compared = ComparedRuns(context.link, context.tasks)
        super().__init__(context, self.compared, ChartGrid(context, margin=0, main=True))
        self.heading = label("", "title")
        self.state = label("", "dim")
        self.back = Button("Back", "Esc")
        self.average = Button("Mean of seeds", role="chip", checkable=True)
        self.average.setChecked(True)
        self.table = CompareTableView()
        head = hbox(self.heading, (self.state, 1), self.back, spacing=SPACE[2])
        self.bar.row.addWidget(self.average)
        below = Card(label("Differences", "strong"), (self.table, 1))
        self.split = split = gap_splitter(Qt.Orientation.Vertical, self.grid, below)
        edge = (SPACE[4], SPACE[3], SPACE[4], SPACE[2])
        vbox(head, self.bar, self.problems, (split, 1), on=self, margins=edge, spacing=SPACE[2])
        self.large = LargeChart(context, self, split)
        self.back.clicked.connect(self.closed)
        self.average.toggled.connect(lambda _: self._regroup())
        self.grid.enlarge.connect(self.large.open_chart)
        # Esc closes what is enlarged before it closes the page.
        policy = self.back.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.back.setSizePolicy(policy)
        self.large.opened.connect(self.back.setHidden)
        self.table.shown_changed.connect(self._regroup)
        self.compared.progress.connect(self._show_progress)

    def show_runs(self, runs: Sequence[RunRecord]) -> None:
        """These runs were chosen."""
        self._runs = {run.run_id: run for run in runs}
        self._lines = {}
        self.heading.setText(f"{len(runs)} run{'s' * (len(runs) != 1)} compared")
        self.grid.forget_lines()
        self._arrange()
        # All rows of the table where they are few, and the rest for the charts.
        rows = min(len(self._groups), _MOST_ROWS)
        table = min(_TABLE_HEIGHT + _ROW_HEIGHT * rows, self.height() // 3)
        self.split.setSizes([self.height() - table, table])
        self.context.tasks.run(lambda: defaults_for(runs), self._take_defaults)

    def update_runs(self, runs: Sequence[RunRecord]) -> None:
        """Some of them have news."""
        known = [run for run in runs if run.run_id in self._runs]
        ended = [run for run in known if run.ended and not self._runs[run.run_id].ended]
        self._runs |= {run.run_id: run for run in known}
        if known:
            self._arrange()
        if ended and self._visible:
            self.compared.open(list(self._runs.values()))

    def enter(self) -> None:
        super().enter()
        self.compared.open(list(self._runs.values()))
        self._regroup()
        self._lay_out()

    def _take_defaults(self, defaults: dict[str, dict[str, Any]]) -> None:
        self._defaults = defaults
        self._arrange()
        self._regroup()

    def _arrange(self) -> None:
        self._groups = group_runs(list(self._runs.values()), self._defaults)
        self.table.show_table(*table_of(self._groups, self._defaults), self._groups)
        self.average.setVisible(any(len(group.runs) > 1 for group in self._groups))

    def _regroup(self) -> None:
        self.state.setText(note_of(self._groups, self.average.isChecked()))
        self.compared.show(self.table.shown(), self.average.isChecked())

    def _draw(self, tag: str) -> None:
        self.grid.set_lines(tag, self._lines[tag], self.bar.options)

    def _show_progress(self, done: int, total: int) -> None:
        note = note_of(self._groups, self.average.isChecked())
        self.state.setText(f"reading {done} of {total} runs" if done < total else note)
