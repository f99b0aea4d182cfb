"""A text that gives way when there is no room for it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStyleOption

from gym_gui.ui.widgets.basics import tip

_LEAST = 4
"""Fewer letters than this tell nothing, and look like a fault."""
_BETWEEN = " · "


def elide_title(size: QFontMetrics, title: str, room: int) -> str:
    """A title such as `algorithm · environment` with … in it where there is no room for all of it.

    The first part gives way to the second, and each keeps the beginning by which it is known.
    """
    first, dot, second = title.partition(_BETWEEN)
    if not dot or size.horizontalAdvance(title) <= room:
        return size.elidedText(title, Qt.TextElideMode.ElideMiddle, room)
    least = size.horizontalAdvance(f"{first[:_LEAST]}…")
    rest = room - size.horizontalAdvance(dot + second)
    first = size.elidedText(first, Qt.TextElideMode.ElideRight, max(rest, least)) + dot
    return first + size.elidedText(second, Qt.TextElideMode.ElideMiddle, room - size.horizontalAdvance(first))


def elide_parts(size: QFontMetrics, text: str, room: int) -> str:
    """A text such as `seed 7 · started 01:56` without the parts at its end that have no room as a whole."""
    while size.horizontalAdvance(text) > room:
        fewer = text.rpartition(_BETWEEN)[0]
        if not fewer:
            return size.elidedText(text, Qt.TextElideMode.ElideRight, room)
        text = fewer
    return text


class ElidedLabel(QLabel):
    """A label of one line that says less instead of pushing its neighbours; its tooltip has the rest."""

    def __init__(self, text: str = "", role: str | None = None, middle: bool = False) -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self._middle = middle
        if role is not None:
            self.setProperty("role", role)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:
        return QSize(24, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        option = QStyleOption()
        option.initFrom(self)
        size = self.fontMetrics()
        if self._middle:
            shown = elide_title(size, self.text(), self.width())
        else:
            shown = elide_parts(size, self.text(), self.width())
        if shown != self.text() and len(shown) <= _LEAST:
            shown = ""
        self.setToolTip(tip(self.text()) if shown != self.text() else "")
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
