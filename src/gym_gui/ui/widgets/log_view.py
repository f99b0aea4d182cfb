"""A log on the screen: it follows, can be searched and selected, and forgets its oldest lines."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QFontDatabase, QTextCursor, QTextDocument
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit

from gym_gui.models.log_lines import MOST_LINES
from gym_gui.theme import LABEL, theme

_LINES_MARKED = 200


class LogView(QPlainTextEdit):
    """While its end can be seen it follows; scrolling up lets it stand still."""

    follows_changed = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setMaximumBlockCount(MOST_LINES)
        self.setUndoRedoEnabled(False)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPixelSize(LABEL)
        self.setFont(font)
        self._sought = ""
        self._follows = True
        self._adding = False
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        self.updateRequest.connect(lambda _rect, moved: self._mark() if moved else None)
        theme.changed.connect(self._mark)

    @property
    def follows(self) -> bool:
        return self._follows

    def set_follows(self, follows: bool) -> None:
        """Stay at the end from now on, or where it is."""
        if follows != self._follows:
            self._follows = follows
            self.follows_changed.emit(follows)
        if follows:
            self._go_to_end()

    def add_lines(self, lines: Sequence[str]) -> None:
        """Put lines at the end."""
        if not lines:
            return
        self._adding = True
        bar = self.verticalScrollBar()
        before, blocks = bar.value(), self.blockCount()
        self.appendPlainText("\n".join(lines))
        if self._follows:
            self._go_to_end()
        else:
            # Lines that were forgotten above must not move those that are being read.
            lost = max(0, blocks + len(lines) - MOST_LINES)
            bar.setValue(max(0, before - lost))
        self._adding = False
        self._mark()

    def _go_to_end(self) -> None:
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def _scrolled(self, value: int) -> None:
        if not self._adding:
            follows = value >= self.verticalScrollBar().maximum()
            if follows != self._follows:
                self._follows = follows
                self.follows_changed.emit(follows)

    def seek(self, text: str) -> None:
        """Mark a text wherever it can be seen."""
        self._sought = text
        self._mark()

    def find_next(self, backward: bool = False) -> bool:
        """Go to the next place of the text that is sought; from the other end when there is none left."""
        if not self._sought:
            return False
        flags = QTextDocument.FindFlag.FindBackward if backward else QTextDocument.FindFlag(0)
        if self.find(self._sought, flags):
            return True
        cursor = self.textCursor()
        end = QTextCursor.MoveOperation.End if backward else QTextCursor.MoveOperation.Start
        cursor.movePosition(end)
        self.setTextCursor(cursor)
        return self.find(self._sought, flags)

    def _mark(self) -> None:
        found: list[QTextEdit.ExtraSelection] = []
        block = self.firstVisibleBlock()
        wanted = self._sought.casefold()
        for _ in range(_LINES_MARKED if wanted else 0):
            if not block.isValid():
                break
            text = block.text().casefold()
            at = text.find(wanted)
            while at >= 0:
                found.append(self._selection(block.position() + at, len(wanted)))
                at = text.find(wanted, at + len(wanted))
            block = block.next()
        self.setExtraSelections(found)

    def _selection(self, position: int, length: int) -> QTextEdit.ExtraSelection:
        marked = QTextEdit.ExtraSelection()
        cursor = QTextCursor(self.document())
        cursor.setPosition(position)
        cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
        marked.cursor = cursor
        marked.format.setBackground(theme.palette.colour("warn", 0.4))
        return marked
