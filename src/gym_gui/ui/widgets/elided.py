"""A text that gives way when there is no room for it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStyleOption

_LEAST = 4
"""Fewer letters than this tell nothing, and look like a fault."""


class ElidedLabel(QLabel):
    """A label of one line that ends in … instead of pushing its neighbours; its tooltip has the rest."""

    def __init__(self, text: str = "", role: str | None = None, middle: bool = False) -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self._mode = Qt.TextElideMode.ElideMiddle if middle else Qt.TextElideMode.ElideRight
        if role is not None:
            self.setProperty("role", role)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:
        return QSize(24, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        option = QStyleOption()
        option.initFrom(self)
        shown = self.fontMetrics().elidedText(self.text(), self._mode, self.width())
        if shown != self.text() and len(shown) <= _LEAST:
            shown = ""
        self.setToolTip(self.text() if shown != self.text() else "")
        self.style().drawItemText(
            painter,
            self.rect(),
            int(self.alignment() | Qt.AlignmentFlag.AlignVCenter),
            option.palette,
            self.isEnabled(),
            shown,
            self.foregroundRole(),
        )
        painter.end()
