"""The parameters of an algorithm: the main ones in two columns, the others in sections that fold."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gym_gui.models.form_state import FormState
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.form_parameters import Group, ParameterSheet, about_group, help_of
from gym_gui.ui.widgets.basics import button, label
from gym_gui.ui.widgets.fields.layouts import PairGrid
from gym_gui.ui.widgets.fields.section import Section
from gym_gui.ui.widgets.fields.state_field import StateField


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
        self._changed = label("", "help")
        self.reset_all = button("reset all", role="link")
        self.reset_all.clicked.connect(self._reset_all)
        head = QHBoxLayout()
        head.setSpacing(SPACE[1])
        head.addWidget(self._title, 1)
        head.addWidget(self._changed)
        head.addWidget(self.reset_all)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, SPACE[0], 0, 0)
        self._column.setSpacing(SPACE[2])
        self._column.addLayout(head)
        self._body = QWidget()
        self._column.addWidget(self._body)

    @property
    def changed_text(self) -> str:
        return self._changed.text()

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
        self._changed.setText(f"{count} changed ·" if count else "all as by default")
        self.reset_all.setVisible(bool(count))

    def _build(self, algo: str) -> None:
        self._algo = algo
        self._title.setText(f"PARAMETERS OF {Path(algo).name.upper()}")
        self.fields, self._sections = {}, []
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for group in self._sheet.groups(algo):
            if not group.title:
                column.addWidget(self._grid(group))
                continue
            section = Section(group.title, partial(self._grid, group))
            self._sections.append((group, section))
            column.addWidget(section)
        self._column.replaceWidget(self._body, body)
        self._body.hide()
        self._body.deleteLater()
        self._body = body

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
