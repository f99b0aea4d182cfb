"""The parameters of an algorithm in two columns with sections that fold, and the stages of a curriculum."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QCompleter,
    QHeaderView,
    QLineEdit,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from gym_gui.models.form_choices import StageTable
from gym_gui.models.form_state import FormState
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.form import Group, ParameterSheet, about_group, help_of
from gym_gui.ui.widgets.basics import Button, Index, hbox, label, named, swap, vbox
from gym_gui.ui.widgets.fields.layouts import PairGrid, Section
from gym_gui.ui.widgets.fields.state_field import StateField

_HELP = (
    "Each stage goes on until its end: a number of steps, or conditions such as "
    "episode_return>=0.9|\u200bsteps>=200000. The last one needs none."
)
_ROW_HEIGHT, _MOST_ROWS = 30, 8


class EnvironmentDelegate(QStyledItemDelegate):
    """Completes the environment that is typed into a cell."""

    def __init__(self, ids: Callable[[], list[str]], parent: QWidget) -> None:
        super().__init__(parent)
        self._ids = ids

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = QLineEdit(parent)
        completer = QCompleter(self._ids(), editor, filterMode=Qt.MatchFlag.MatchContains)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        editor.setCompleter(completer)
        return editor


class StageEditor(QWidget):
    """Shows and changes a `StageTable`. `edited` tells after every change."""

    edited = Signal()

    def __init__(self, stages: StageTable, ids: Callable[[], list[str]]) -> None:
        """`ids` gives the environments that can be trained on."""
        super().__init__()
        self._stages = stages
        self.table = named(QTableWidget(0, 2), "Stages of the curriculum")
        self.table.setWordWrap(False)
        self.table.setTabKeyNavigation(False)
        self.table.setMinimumWidth(120)
        self.table.setHorizontalHeaderLabels(["Environment", "until"])
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft)
        self.table.setColumnWidth(1, 84)
        # The ends of the names tell the stages apart.
        self.table.setTextElideMode(Qt.TextElideMode.ElideLeft)
        self.table.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
        self.table.verticalHeader().setFixedWidth(24)
        self.table.setItemDelegateForColumn(0, EnvironmentDelegate(ids, self.table))
        self.table.itemChanged.connect(self._change)
        row = hbox(spacing=SPACE[0])
        for text, words, act in (
            ("Add", "Add a stage", self._add),
            ("Remove", "Remove the stage", self._remove),
            ("↑", "Move the stage up", lambda: self._move(-1)),
            ("↓", "Move the stage down", lambda: self._move(1)),
        ):
            made = named(Button(text, role="quiet", do=act), words)
            made.setToolTip(words)
            made.setStyleSheet("padding: 0 8px;")
            row.addWidget(made)
        row.addStretch(1)
        vbox(self.table, row, label(_HELP, "help", wraps=True), on=self, spacing=SPACE[0])
        self.refresh()

    def refresh(self) -> None:
        """Show the rows as they are."""
        with QSignalBlocker(self.table):
            self.table.setRowCount(len(self._stages.rows))
            for number, stage in enumerate(self._stages.rows):
                for column, text in enumerate((stage.env_id, stage.ends)):
                    self.table.setItem(number, column, QTableWidgetItem(text))
        shown = min(len(self._stages.rows), _MOST_ROWS)
        self.table.setFixedHeight(_ROW_HEIGHT * (shown + 1) + 6)

    def _change(self, item: QTableWidgetItem) -> None:
        name = "env_id" if item.column() == 0 else "ends"
        self._stages.change(item.row(), **{name: item.text()})
        self.edited.emit()

    def _add(self) -> None:
        self._stages.add()
        self._changed(len(self._stages.rows) - 1)

    def _remove(self) -> None:
        at = self._selected()
        if self._stages.rows:
            self._stages.remove(at)
        self._changed(at)

    def _move(self, by: int) -> None:
        at = self._selected()
        self._stages.move(at, by)
        self._changed(at + by)

    def _selected(self) -> int:
        at = self.table.currentRow()
        return at if at >= 0 else len(self._stages.rows) - 1

    def _changed(self, at: int) -> None:
        self.refresh()
        self.table.setCurrentCell(max(0, min(at, len(self._stages.rows) - 1)), 0)
        self.edited.emit()


class ParameterSheetView(QWidget):
    """Shows one algorithm at a time. `edited` tells the name of a parameter that was changed."""

    edited = Signal(str)

    def __init__(self, sheet: ParameterSheet) -> None:
        super().__init__()
        self._sheet, self._algo = sheet, ""
        self._state: FormState | None = None
        self.fields: dict[str, StateField] = {}
        self._sections: list[tuple[Group, Section]] = []
        self._title = label("", "section")
        self.changed = label("", "help")
        self.reset_all = Button("reset all", role="link", do=self._reset_all)
        head = hbox((self._title, 1), self.changed, self.reset_all)
        self._body = QWidget()
        self._column = vbox(head, self._body, on=self, margins=(0, SPACE[0], 0, 0), spacing=SPACE[2])

    def show_algorithm(self, algo: str) -> None:
        """Show the parameters of an algorithm, as they are now."""
        state = self._sheet.state(algo)
        if algo != self._algo or state is not self._state:
            self._state = state
            self._build(algo)
        for name, field in self.fields.items():
            field.refresh(help_of(state, name))
        for group, section in self._sections:
            section.summarise(about_group(state, group))
        count = len(state.changed())
        self.changed.setText(f"{count} changed ·" if count else "all defaults")
        self.reset_all.setVisible(bool(count))

    def _build(self, algo: str) -> None:
        self._algo = algo
        self._title.setText(f"PARAMETERS OF {Path(algo).name.upper()}")
        self.fields, self._sections = {}, []
        body = QWidget()
        column = vbox(on=body, spacing=0)
        for group in self._sheet.groups(algo):
            if not group.title:
                column.addWidget(self._grid(group))
                continue
            section = Section(group.title, partial(self._grid, group))
            self._sections.append((group, section))
            column.addWidget(section)
        self._body = swap(self._column, self._body, body)

    def field(self, name: str) -> StateField:
        """The field of a parameter; the section that it is in is opened."""
        for group, section in self._sections:
            if name in group.names:
                section.open()
        return self.fields[name]

    def _grid(self, group: Group) -> QWidget:
        state = self._sheet.state(self._algo)
        made = {name: StateField(state, name) for name in group.names}
        for field in made.values():
            field.edited.connect(self.edited)
        self.fields.update(made)
        return PairGrid(made.values(), bottom=SPACE[3])

    def _reset_all(self) -> None:
        self._sheet.state(self._algo).reset()
        self.edited.emit("")
