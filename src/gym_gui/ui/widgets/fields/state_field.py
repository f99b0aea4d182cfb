"""Fields of a form's state: each shows what the state says, and tells it what is typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Signal
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
from gym_gui.models.run_settings import PROXIES, TRACKERS
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import hbox, label, restyle, tip, vbox
from gym_gui.ui.widgets.fields.layouts import ChoiceBox, PairGrid, Section, side_by_side

KEY = QKeySequence("Ctrl+0")
_ARROW_WIDTH = 26
_MARGIN = 6
CHANGED = "•"
_ON_OFF = ("on", "off")
_LINE_HEIGHT = 22
RESOURCES = ("cpus", "memory_mb", "gpu", "gpu_mandatory", "max_minutes", "max_restarts", "priority", "python")
NAMING = ("run_name", "tags", "notes", "secrets", "plain")
_WIDE = ("notes", "secrets", "plain")
_LIVE_WORDS = {"grid": "Grid", "single": "One", "off": "Off"}
_LIVE_HELP = {"off": "no picture of this run can be seen"}


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
        if isinstance(self._editor, QLineEdit):
            self._editor.setTextMargins(0, 0, 0 if default is None else self.sizeHint().width(), 0)

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
        left = self._editor.width() - right - self.sizeHint().width()
        top = (self._editor.height() - height) // 2
        self.setGeometry(left, top, self.sizeHint().width(), height)


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
    editor: QComboBox | QPlainTextEdit | QLineEdit

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
        else:
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
        return self.editor.toPlainText() if isinstance(self.editor, QPlainTextEdit) else self.editor.text()

    def set_placeholder(self, text: str) -> None:
        """What stands in the field while it is empty."""
        if isinstance(self.editor, QLineEdit):
            self.editor.setPlaceholderText(text)

    def _show(self, text: str) -> None:
        with QSignalBlocker(self.editor):
            if isinstance(self.editor, QComboBox):
                self.editor.setCurrentIndex(max(0, self.editor.findData(text)))
            elif isinstance(self.editor, QPlainTextEdit):
                self.editor.setPlainText(text)
            else:
                self.editor.setText(text)

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


def make_editor(field: Field, words: dict[str, str], lines: int) -> QComboBox | QPlainTextEdit | QLineEdit:
    """The editor for a kind of field."""
    choices = [show(choice) for choice in field.choices] or (list(_ON_OFF) if field.kind == "bool" else [])
    if choices:
        box = ChoiceBox()
        for choice in choices:
            box.addItem(words.get(choice, choice), choice)
        return box
    if lines > 1:
        text = QPlainTextEdit(tabChangesFocus=True, placeholderText=field.placeholder)
        text.setFixedHeight(_LINE_HEIGHT * lines + 12)
        return text
    line = QLineEdit(placeholderText=field.placeholder)
    if field.kind == "secret":
        line.setEchoMode(QLineEdit.EchoMode.Password)
    return line


class WatchFields(QWidget):
    """What can be watched while the run lives."""

    edited = Signal(str)

    def __init__(self, state: FormState) -> None:
        super().__init__()
        self._state = state
        self.mode = StateField(state, "live_mode", words=_LIVE_WORDS)
        self.count, self.slot = StateField(state, "live_count"), StateField(state, "live_slot")
        vbox(side_by_side(self.mode, self.count, self.slot), on=self)
        for part in (self.mode, self.count, self.slot):
            part.edited.connect(self.edited)
        self.refresh()

    def refresh(self) -> None:
        mode = self._state.said("live_mode")
        self.mode.refresh(_LIVE_HELP.get(mode, "costs nothing while nobody is watching"))
        self.count.setVisible(mode == "grid")
        self.slot.setVisible(mode == "single")
        self.count.refresh()
        self.slot.refresh()


class TrackingFields(QWidget):
    """TensorBoard, trackers with what each asks for once it is on, and the upload of the model."""

    edited = Signal(str)

    def __init__(self, state: FormState) -> None:
        super().__init__()
        self._state = state
        self.tensorboard, self.wandb = StateSwitch(state, "tensorboard"), StateSwitch(state, "wandb")
        self.trackers = {name: StateSwitch(state, name) for name in TRACKERS if name != "wandb"}
        self.trackers = {"wandb": self.wandb, **self.trackers}
        self._switches = [self.tensorboard, *self.trackers.values()]
        self.fields: dict[str, StateField] = {}
        """What trackers ask for; nothing of one before it was on."""
        self._boxes = {name: QWidget() for name in TRACKERS}
        shown: list[QWidget] = [self.tensorboard]
        for name, switch in self.trackers.items():
            self._boxes[name].hide()
            shown += [switch, self._boxes[name]]
        upload, self.entity = StateSwitch(state, "upload_model"), StateField(state, "hf_entity")
        self._switches.append(upload)
        vbox(*shown, upload, self.entity, on=self, spacing=SPACE[2])
        self.entity.edited.connect(self.edited)
        for switch in self._switches:
            switch.edited.connect(self.edited)
        self.refresh()

    def _make_fields(self, tracker: str) -> None:
        parts: list[QWidget] = []
        for one in TRACKERS[tracker]:
            if one.kind == "bool":
                switch = StateSwitch(self._state, one.name)
                switch.edited.connect(self.edited)
                self._switches.append(switch)
                parts.append(switch)
            else:
                field = self.fields[one.name] = StateField(self._state, one.name)
                field.edited.connect(self.edited)
                parts.append(field)
        vbox(*parts, on=self._boxes[tracker], margins=(SPACE[4] + 2, 0, 0, 0))

    def refresh(self) -> None:
        for name, box in self._boxes.items():
            on = self._state.is_on(name)
            if on and box.layout() is None:
                self._make_fields(name)
            box.setVisible(on)
        for switch in self._switches:
            switch.refresh()
        for name, field in self.fields.items():
            field.refresh()
            field.setVisible(name not in PROXIES or self._state.is_on("wandb_use_vpn_proxy"))
        self.entity.refresh()
        self.entity.setVisible(self._state.is_on("upload_model"))


class SettingsSection(Section):
    """Fields of a run that fold away to one line, which `about` makes of them."""

    edited = Signal(str)

    def __init__(
        self, title: str, state: FormState, names: Sequence[str], about: Callable[[FormState], str]
    ) -> None:
        self._state, self._names, self._about = state, names, about
        self.fields: dict[str, StateField] = {}
        super().__init__(title, self._fill)
        self.refresh()

    def _fill(self) -> QWidget:
        grid = PairGrid(bottom=SPACE[2])
        for name in self._names:
            self.fields[name] = StateField(self._state, name, lines=4 if name == "notes" else 1)
            self.fields[name].edited.connect(self.edited)
            grid.add(self.fields[name], wide=name in _WIDE)
        return grid

    def refresh(self) -> None:
        for one in self.fields.values():
            one.refresh()
        if "gpu_mandatory" in self.fields:
            self.fields["gpu_mandatory"].setEnabled(self._state.is_on("gpu"))
        self.summarise(self._about(self._state))
