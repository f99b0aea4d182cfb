"""A field with its name above and its help below."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import label, restyle
from gym_gui.ui.widgets.fields.reset_badge import ResetBadge

CHANGED = "•"


class FieldBox(QWidget):
    """Name, editor and help. A changed field has a mark before its name; a wrong one says why in the help."""

    reset_wanted = Signal()

    def __init__(self, title: str, editor: QWidget, help_text: str = "") -> None:
        super().__init__()
        self.editor = editor
        self.name = label(title, "field")
        self.name.setBuddy(editor)
        self._mark = label(CHANGED, "mark")
        self._mark.hide()
        self.help = label(help_text, "help", selectable=True, wraps=True)
        editor.setAccessibleName(title)
        self.badge = ResetBadge(editor)
        self.badge.clicked.connect(self.reset_wanted)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE[0])
        head = QHBoxLayout()
        head.setSpacing(SPACE[0])
        head.addWidget(self._mark)
        head.addWidget(self.name, 1)
        column.addLayout(head)
        column.addWidget(editor)
        column.addWidget(self.help)
        # Not before it has a place: a widget without one would be a window.
        self.help.setVisible(bool(help_text))
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)

    @property
    def is_marked(self) -> bool:
        """Whether the field is shown as changed."""
        return not self._mark.isHidden()

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
        self._mark.setVisible(default is not None)
        self.badge.offer(default)
