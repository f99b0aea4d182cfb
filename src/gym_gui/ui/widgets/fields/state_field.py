"""A field of a form's state as a widget: it shows what the state says and tells it what is typed."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from gym_gui.models.form_state import Field, FormState, show
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import hbox, label, restyle, tip, vbox
from gym_gui.ui.widgets.fields.layouts import ChoiceBox

KEY = QKeySequence("Ctrl+0")
_ARROW_WIDTH = 26
_MARGIN = 6
CHANGED = "•"
_ON_OFF = ("on", "off")
_LINE_HEIGHT = 22


class ResetBadge(QToolButton):
    """Says the default at the right end of an editor, and is gone while nothing is changed."""

    def __init__(self, editor: QWidget) -> None:
        super().__init__(editor)
        self._editor = editor
        self.setProperty("role", "reset")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        # Tab goes to the next field whether or not this one was changed; the key works from within it.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setToolTip(f"Back to the default ({KEY.toString()})")
        self.hide()
        editor.installEventFilter(self)

    def offer(self, default: str | None) -> None:
        """Show the default to go back to; None hides the badge."""
        if default is None:
            self.hide()
        else:
            shown = default if len(default) <= 14 else f"{default[:13]}…"
            self.setText(f"↺ {shown}")
            self.setAccessibleName(f"Back to the default, {default}")
            self.adjustSize()
            self._place()
            self.show()
        self._make_room()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        if (
            not self.isHidden()
            and isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.KeyPress
            and QKeySequence(event.keyCombination()) == KEY
        ):
            self.click()
            return True
        return False

    def _place(self) -> None:
        right = _ARROW_WIDTH if isinstance(self._editor, QComboBox) else _MARGIN
        height = min(self.sizeHint().height(), self._editor.height() - 4)
        self.setGeometry(
            self._editor.width() - right - self.sizeHint().width(),
            (self._editor.height() - height) // 2,
            self.sizeHint().width(),
            height,
        )

    def _make_room(self) -> None:
        if isinstance(self._editor, QLineEdit):
            right = self.sizeHint().width() if not self.isHidden() else 0
            self._editor.setTextMargins(0, 0, right, 0)


class FieldBox(QWidget):
    """Name, editor and help. A changed field has a mark before its name; a wrong one says why in the help."""

    reset_wanted = Signal()

    def __init__(self, title: str, editor: QWidget, help_text: str = "") -> None:
        super().__init__()
        self.editor = editor
        self.name = label(title, "field")
        self.name.setBuddy(editor)
        self.mark = label(CHANGED, "mark")
        self.mark.hide()
        self.help = label(help_text, "help", selectable=True, wraps=True)
        editor.setAccessibleName(title)
        self.badge = ResetBadge(editor)
        self.badge.clicked.connect(self.reset_wanted)
        vbox(hbox(self.mark, (self.name, 1), spacing=SPACE[0]), editor, self.help, on=self, spacing=SPACE[0])
        # Not before it has a place: a widget without one would be a window.
        self.help.setVisible(bool(help_text))
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)

    def set_help(self, text: str, problem: str = "") -> None:
        """The text under the field; a problem takes its place."""
        shown = problem or text
        self.help.setText(shown)
        self.help.setVisible(bool(shown))
        restyle(self.help, role="help-error" if problem else "help")
        restyle(self.editor, invalid=bool(problem))
        self.editor.setAccessibleDescription(shown)

    def set_changed(self, default: str | None) -> None:
        """Mark the field as changed, with the default to go back to; None takes the mark away."""
        self.mark.setVisible(default is not None)
        self.badge.offer(default)


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
