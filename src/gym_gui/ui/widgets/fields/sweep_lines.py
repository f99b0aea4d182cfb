"""The parameters of a sweep, a line for each: how it is searched, and between what."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from gym_gui.models.sweep_draft import CHOICES, FIXED, KINDS, RANGE, ParamDraft, SweepDraft
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.sweep_form import names_left
from gym_gui.ui.widgets.basics import Button, drop, fill, hbox, label, named, restyle, tip, vbox
from gym_gui.ui.widgets.fields.layouts import ChoiceBox
from gym_gui.ui.widgets.form_frame import section_title
from mosaic.contract.capabilities import ParamSchema

_NAME_WIDTH, _KIND_WIDTH = 124, 112


class ParamLine(QWidget):
    """One parameter: its name, how it is searched, and between what."""

    edited = Signal()
    dropped = Signal()

    def __init__(self, draft: ParamDraft, schema: ParamSchema | None) -> None:
        super().__init__()
        self.draft = draft
        about = f"{schema.help}\nDefault: {schema.default}" if schema is not None else ""
        title = label(draft.name, "strong")
        title.setFixedWidth(_NAME_WIDTH)
        shown = title.fontMetrics().elidedText(draft.name, Qt.TextElideMode.ElideMiddle, _NAME_WIDTH)
        title.setText(shown)
        title.setToolTip(tip(f"{draft.name}\n{about}".strip()))
        self.kind = named(ChoiceBox(), f"How {draft.name} is searched")
        self.kind.setFixedWidth(_KIND_WIDTH)
        for key, words in KINDS.items():
            self.kind.addItem(words, key)
        self.kind.setCurrentIndex(max(0, self.kind.findData(draft.kind)))
        self.kind.activated.connect(self._choose_kind)
        self.low, self.high = self._editor("low", "from"), self._editor("high", "to")
        self.step = self._editor("step", "step")
        self.step.setMaximumWidth(56)
        self.choices = self._editor("choices", "such as 0.9, 0.99, 0.999")
        self.value = self._editor("value", str(schema.default) if schema is not None else "value")
        self.away = named(Button("✕", role="quiet", do=self.dropped.emit), f"Leave {draft.name} out")
        self.away.setFixedWidth(30)
        self.away.setStyleSheet("padding: 0;")
        self.away.setToolTip("Leave it out: it keeps its default")
        when = ", ".join(f"{name} = {value}" for name, value in draft.when.items())
        self.help = label(f"only where {when}" if when else "", "help", wraps=True)
        self.help.setContentsMargins(_NAME_WIDTH + SPACE[1], 0, 0, 0)
        row = hbox(title, self.kind, (self.low, 1), (self.high, 1), self.step)
        fill(row, (self.choices, 1), (self.value, 1), self.away)
        vbox(row, self.help, on=self, spacing=2)
        self._when = self.help.text()
        self._show_parts()
        self.show_problem()

    def _editor(self, part: str, placeholder: str) -> QLineEdit:
        made = named(QLineEdit(getattr(self.draft, part)), f"{self.draft.name}, {placeholder}")
        made.setPlaceholderText(placeholder)
        # Where it is too long for its field, it is read from its beginning.
        made.setCursorPosition(0)
        made.setMinimumWidth(40)
        made.textEdited.connect(partial(self._take, part))
        return made

    def _take(self, part: str, text: str) -> None:
        setattr(self.draft, part, text)
        self.show_problem()
        self.edited.emit()

    def _choose_kind(self) -> None:
        self.draft.kind = str(self.kind.currentData())
        self._show_parts()
        self.show_problem()
        self.edited.emit()

    def _show_parts(self) -> None:
        kind = self.draft.kind
        for editor in (self.low, self.high):
            editor.setVisible(kind not in (CHOICES, FIXED))
        self.step.setVisible(kind == RANGE)
        self.choices.setVisible(kind == CHOICES)
        self.value.setVisible(kind == FIXED)

    def show_problem(self) -> None:
        """Say under the line what is wrong with it."""
        problem = self.draft.problem()
        self.help.setText(problem or self._when)
        self.help.setVisible(bool(problem or self._when))
        restyle(self.help, role="help-error" if problem else "help")


class ParamLines(QWidget):
    """The lines of one algorithm, and a box to add another one."""

    edited = Signal()

    def __init__(self, draft: SweepDraft, algo: str, parameters: Sequence[ParamSchema], heads: bool) -> None:
        super().__init__()
        self._draft, self._algo = draft, algo
        self._parameters = {one.name: one for one in parameters}
        self.lines: list[ParamLine] = []
        self._column = vbox(spacing=SPACE[1])
        self.more = named(ChoiceBox(), "Search another parameter")
        self.more.activated.connect(self._add)
        source = label(draft.source(algo), "help", wraps=True)
        head = (section_title(f"Parameters of {algo}" if heads else "Parameters"), source)
        vbox(*head, self._column, self.more, on=self, spacing=SPACE[1])
        for one in draft.lines[algo]:
            self._put(one)
        self._offer()

    def _put(self, draft: ParamDraft) -> None:
        line = ParamLine(draft, self._parameters.get(draft.name))
        line.edited.connect(self.edited)
        line.dropped.connect(partial(self._drop, line))
        self.lines.append(line)
        self._column.addWidget(line)

    def _drop(self, line: ParamLine) -> None:
        self._draft.lines[self._algo].remove(line.draft)
        self.lines.remove(line)
        drop(line)
        self._offer()
        self.edited.emit()

    def _offer(self) -> None:
        left = names_left(list(self._parameters.values()), self._draft.lines[self._algo])
        with QSignalBlocker(self.more):
            self.more.clear()
            self.more.addItem("Search another parameter…")
            self.more.addItems(left)
        self.more.setVisible(bool(left))

    def _add(self, at: int) -> None:
        if at < 1:
            return
        draft = ParamDraft.beginning(self._parameters[self.more.itemText(at)])
        self._draft.lines[self._algo].append(draft)
        self._put(draft)
        self._offer()
        self.edited.emit()
