"""The small button inside a changed field that brings the default back."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QComboBox, QLineEdit, QToolButton, QWidget

KEY = QKeySequence("Ctrl+0")
_ARROW_WIDTH = 26
_MARGIN = 6


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
