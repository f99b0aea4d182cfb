"""JSON to read and select, with its names in colour."""

from __future__ import annotations

import re

from PySide6.QtGui import QFontDatabase, QSyntaxHighlighter, QTextCharFormat
from PySide6.QtWidgets import QPlainTextEdit

from gym_gui.theme import LABEL, theme

_PARTS = (
    (re.compile(r'"(?:[^"\\]|\\.)*"(?=\s*:)'), "accent"),
    (re.compile(r'(?<=: )"(?:[^"\\]|\\.)*"'), "good"),
    (re.compile(r"(?<=[:\s])(?:true|false|null|-?\d[\d.eE+-]*)(?=,?$)"), "paused"),
)


class _Colours(QSyntaxHighlighter):
    def highlightBlock(self, text: str) -> None:
        for pattern, role in _PARTS:
            look = QTextCharFormat()
            look.setForeground(theme.palette.colour(role))
            for match in pattern.finditer(text):
                self.setFormat(match.start(), match.end() - match.start(), look)


class JsonView(QPlainTextEdit):
    """Read-only text in a fixed width."""

    def __init__(self) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPixelSize(LABEL)
        self.setFont(font)
        self._colours = _Colours(self.document())
        theme.changed.connect(self._colours.rehighlight)
