"""The field that names an environment: typed, or chosen from a list that opens under it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QComboBox, QLineEdit

from gym_gui.models.environments import EnvironmentList
from gym_gui.models.form_state import FormState
from gym_gui.ui.widgets.fields.environment_picker import EnvironmentPicker
from gym_gui.ui.widgets.fields.field_box import FieldBox
from gym_gui.ui.widgets.fields.layouts import ChoiceBox


class EnvironmentBox(ChoiceBox):
    """Looks like any other box of choices; what it opens is a list that can be searched."""

    opened = Signal(str)
    """With what was typed to search for."""

    def __init__(self) -> None:
        super().__init__()
        name = QLineEdit()
        self.setLineEdit(name)
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.setCompleter(None)  # type: ignore[arg-type]
        name.installEventFilter(self)

    def showPopup(self) -> None:
        self.opened.emit("")

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A click into the name opens the list too: whoever clicks there looks for another one."""
        if (
            isinstance(event, QMouseEvent)
            and event.type() == QEvent.Type.MouseButtonPress
            and event.button() == Qt.MouseButton.LeftButton
        ):
            self.showPopup()
            return True
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        shortcut = event.modifiers() & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier)
        if event.key() == Qt.Key.Key_Down:
            self.showPopup()
        elif event.text().strip() and event.text().isprintable() and not shortcut:
            self.opened.emit(event.text())
        else:
            super().keyPressEvent(event)


class EnvironmentField(FieldBox):
    """Bound to one name of a state; `environments` gives what there is to choose from now."""

    edited = Signal(str)

    def __init__(self, state: FormState, name: str, environments: Callable[[], EnvironmentList]) -> None:
        self.box = EnvironmentBox()
        super().__init__(state.fields[name].title, self.box)
        self.state, self.key = state, name
        self._environments = environments
        self._picker: EnvironmentPicker | None = None
        self.box.opened.connect(self._open)
        self.box.editTextChanged.connect(self._typed)
        self.refresh("")

    @property
    def picker(self) -> EnvironmentPicker:
        """The list, made when it is first opened."""
        if self._picker is None:
            self._picker = EnvironmentPicker(self)
            self._picker.chosen.connect(self._take)
        return self._picker

    def refresh(self, help_text: str, problem: str = "", instead: str = "") -> None:
        """Show what the state says, or something `instead` of it, with a line under it."""
        text = instead or self.state.text(self.key)
        if self.box.currentText() != text:
            blocked = self.box.blockSignals(True)
            self.box.setEditText(text)
            self.box.blockSignals(blocked)
        self.set_help(help_text, problem)

    def _open(self, search: str) -> None:
        environments, now = self._environments(), self.state.said(self.key)
        # An id of one's own is in no list: it is changed where it is searched.
        search = search or ("" if environments.find(now) else now)
        self.picker.open_under(self.box, environments, now, search)

    def _typed(self, text: str) -> None:
        if text != self.state.text(self.key):
            self._take(text)

    def _take(self, env_id: str) -> None:
        self.state.set(self.key, env_id)
        self.edited.emit(self.key)
