"""Everything by which a person takes over: a button for each action, or a slider for each number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QVBoxLayout, QWidget

from gym_gui.models.play_actions import ActionSpace
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.play_values import Bar
from gym_gui.ui.widgets.basics import button
from gym_gui.ui.widgets.play_choice import ChoiceButton
from gym_gui.ui.widgets.play_field import FieldRow


class ActionPanel(QWidget):
    """The actions of one environment."""

    chosen = Signal(object)
    """An action that is to be taken now."""
    held = Signal(object)
    """The action that every step is to have while it runs; None: the policy's own."""

    def __init__(self) -> None:
        super().__init__()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(SPACE[0])
        self._body: QWidget | None = None
        self._space: ActionSpace | None = None
        self._choices: list[ChoiceButton] = []
        self._rows: list[FieldRow] = []
        self._policys: Any = None
        self._last: Any = None
        self._hold = QCheckBox("Keep my action while it runs")
        self._hold.toggled.connect(self._tell_held)

    def set_space(self, space: ActionSpace) -> None:
        """Make the controls for another environment."""
        if self._body is not None:
            self._hold.setParent(None)
            self._body.hide()
            self._body.deleteLater()
        self._space, self._choices, self._rows, self._last = space, [], [], None
        self._hold.setChecked(False)
        self._body = QWidget()
        column = QVBoxLayout(self._body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE[0])
        for choice in space.choices:
            one = ChoiceButton(choice)
            one.clicked.connect(lambda _=False, action=choice.action: self.take(action))
            self._choices.append(one)
            column.addWidget(one)
        for field in space.fields:
            row = FieldRow(field)
            row.changed.connect(self._tell_held)
            self._rows.append(row)
            column.addWidget(row)
        if self._rows:
            column.addSpacing(SPACE[0])
            column.addLayout(self._field_buttons())
        column.addSpacing(SPACE[0])
        column.addWidget(self._hold)
        self._column.addWidget(self._body)

    def _field_buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(SPACE[1])
        take = button("Take action")
        take.clicked.connect(lambda: self.take(self._from_rows()))
        copy = button("Set to policy's", role="quiet")
        copy.clicked.connect(self._copy_policy)
        row.addWidget(take)
        row.addWidget(copy)
        row.addStretch(1)
        return row

    def take(self, action: Any) -> None:
        """As if it were pressed."""
        self._last = action
        self._tell_held()
        self.chosen.emit(action)

    def show_opinion(self, bars: Sequence[Bar], policys: Any, enabled: bool) -> None:
        """What the policy makes of each action, which one it takes next, and whether one can be taken now."""
        self._policys = policys
        self.setEnabled(enabled)
        for place, one in enumerate(self._choices):
            one.show_opinion(bars[place] if bars else None, one.choice.action == policys)

    def _copy_policy(self) -> None:
        if self._space is None or self._policys is None:
            return
        for row, value in zip(self._rows, self._space.numbers(self._policys), strict=True):
            row.set_value(value)

    def _from_rows(self) -> Any:
        assert self._space is not None
        return self._space.build([row.value for row in self._rows])

    def _tell_held(self) -> None:
        if not self._hold.isChecked():
            self.held.emit(None)
        elif self._rows:
            self.held.emit(self._from_rows())
        else:
            self.held.emit(self._last)
