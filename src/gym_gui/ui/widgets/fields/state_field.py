"""A field of a form's state as a widget: it shows what the state says and tells it what is typed."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QPlainTextEdit, QWidget

from gym_gui.models.form_state import Field, FormState
from gym_gui.models.parsing import show
from gym_gui.ui.widgets.basics import tip
from gym_gui.ui.widgets.fields.field_box import CHANGED, FieldBox
from gym_gui.ui.widgets.fields.layouts import ChoiceBox

_ON_OFF = ("on", "off")
_LINE_HEIGHT = 22


class StateField(FieldBox):
    """One field. `edited` tells its name after every change that a person makes."""

    edited = Signal(str)

    def __init__(
        self, state: FormState, name: str, *, words: dict[str, str] | None = None, lines: int = 1
    ) -> None:
        """`words` are what choices are called; more than one of `lines` makes a field for longer text."""
        self.state, self.key = state, name
        field = state.fields[name]
        super().__init__(field.title, make_editor(field, words or {}, lines), field.help)
        self.reset_wanted.connect(self._reset)
        if isinstance(self.editor, QComboBox):
            self.editor.activated.connect(self._take)
        elif isinstance(self.editor, QPlainTextEdit):
            self.editor.textChanged.connect(self._take)
        elif isinstance(self.editor, QLineEdit):
            self.editor.textEdited.connect(self._take)
        self.refresh()

    def refresh(self, help_text: str | None = None, problem: str | None = None) -> None:
        """Show what the state says now; the caller may know more of help and problem."""
        text = self.state.text(self.key)
        if self.shown() != text:
            self._show(text)
        wrong = self.state.problem(self.key) if problem is None else problem
        self.set_help(self.state.fields[self.key].help if help_text is None else help_text, wrong)
        changed = self.state.is_changed(self.key)
        self.set_changed(self.state.default_text(self.key) if changed else None)

    def shown(self) -> str:
        """What stands in the editor."""
        if isinstance(self.editor, QComboBox):
            return str(self.editor.currentData())
        if isinstance(self.editor, QPlainTextEdit):
            return self.editor.toPlainText()
        assert isinstance(self.editor, QLineEdit)
        return self.editor.text()

    def set_placeholder(self, text: str) -> None:
        """What stands in the field while it is empty."""
        if isinstance(self.editor, QLineEdit):
            self.editor.setPlaceholderText(text)

    def _show(self, text: str) -> None:
        blocked = self.editor.blockSignals(True)
        if isinstance(self.editor, QComboBox):
            self.editor.setCurrentIndex(max(0, self.editor.findData(text)))
        elif isinstance(self.editor, QPlainTextEdit):
            self.editor.setPlainText(text)
        elif isinstance(self.editor, QLineEdit):
            self.editor.setText(text)
        self.editor.blockSignals(blocked)

    def _take(self) -> None:
        self.state.set(self.key, self.shown())
        self.refresh()
        self.edited.emit(self.key)

    def _reset(self) -> None:
        self.state.reset(self.key)
        self.refresh()
        self.editor.setFocus()
        self.edited.emit(self.key)


class StateSwitch(QCheckBox):
    """A field that is on or off, as a box to tick."""

    edited = Signal(str)

    def __init__(self, state: FormState, name: str, title: str = "") -> None:
        super().__init__()
        self.state, self.key = state, name
        # A single & would be the mark of a key.
        self._title = (title or state.fields[name].title).replace("&", "&&")
        self.setToolTip(tip(state.fields[name].help))
        self.clicked.connect(self._take)
        self.refresh()

    def refresh(self) -> None:
        self.setChecked(self.state.is_on(self.key))
        self.setText(f"{self._title}  {CHANGED}" if self.state.is_changed(self.key) else self._title)

    def _take(self, on: bool) -> None:
        self.state.put(self.key, on)
        self.refresh()
        self.edited.emit(self.key)


def make_editor(field: Field, words: dict[str, str], lines: int) -> QWidget:
    """The editor for a kind of field."""
    choices = [show(choice) for choice in field.choices] or (list(_ON_OFF) if field.kind == "bool" else [])
    if choices:
        box = ChoiceBox()
        for choice in choices:
            box.addItem(words.get(choice, choice), choice)
        return box
    if lines > 1:
        text = QPlainTextEdit()
        text.setFixedHeight(_LINE_HEIGHT * lines + 12)
        text.setTabChangesFocus(True)
        text.setPlaceholderText(field.placeholder)
        return text
    line = QLineEdit()
    line.setPlaceholderText(field.placeholder)
    if field.kind == "secret":
        line.setEchoMode(QLineEdit.EchoMode.Password)
    return line
