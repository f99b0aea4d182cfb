"""The keys of an environment that is played by hand: each a cap with its word, lit while it is down."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QPushButton, QWidget

from gym_gui.theme import SPACE, TEXT, number_font, theme
from gym_gui.ui.widgets.basics import drop, vbox
from mosaic.client.by_hand import Cap

_HEIGHT = 32
_LEAST_CAP = 34
_CORNER = 6
_EDGE = 2
"""How much of a cap's side is seen while it is up."""


class KeyCap(QPushButton):
    """One key, which the mouse can hold down too."""

    def __init__(self, cap: Cap) -> None:
        super().__init__(cap.word)
        self.cap = cap
        self._lit = False
        # The keys belong to the page.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(f"{cap.sign}: {cap.word}")

    @property
    def lit(self) -> bool:
        return self._lit

    def set_lit(self, lit: bool) -> None:
        """Show whether the key is down."""
        if lit != self._lit:
            self._lit = lit
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, _HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, _HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(number_font(TEXT))
        wide = max(_LEAST_CAP, painter.fontMetrics().horizontalAdvance(self.cap.sign) + 2 * SPACE[1])
        top = _EDGE if self._lit else 0
        side = QRect(1, 1 + _EDGE, wide, self.height() - 4)
        face = QRect(1, 1 + top, wide, self.height() - 4 - _EDGE)
        self._fill(painter, side, "line")
        self._fill(painter, face, "accent" if self._lit else "raised")
        painter.setPen(palette.colour("accent" if self._lit else "line"))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(face, _CORNER, _CORNER)
        painter.setPen(Qt.GlobalColor.white if self._lit else palette.colour("text"))
        painter.drawText(face, Qt.AlignmentFlag.AlignCenter, self.cap.sign)
        painter.setPen(palette.colour("text" if self._lit else "dim"))
        words = QRect(wide + SPACE[2], 0, max(0, self.width() - wide - SPACE[2]), self.height())
        text = painter.fontMetrics().elidedText(self.cap.word, Qt.TextElideMode.ElideRight, words.width())
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, text)
        painter.end()

    @staticmethod
    def _fill(painter: QPainter, area: QRect, role: str) -> None:
        shape = QPainterPath()
        shape.addRoundedRect(area, _CORNER, _CORNER)
        painter.fillPath(shape, theme.palette.colour(role))


class KeyLegend(QWidget):
    """All keys of one environment."""

    pressed = Signal(object)
    """The keys of a cap that the mouse holds down."""
    released = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.caps: list[KeyCap] = []
        self._column = vbox(on=self, spacing=SPACE[0])

    def set_caps(self, caps: Sequence[Cap]) -> None:
        """Show the keys of another environment."""
        for old in self.caps:
            self._column.removeWidget(old)
            drop(old)
        self.caps = [KeyCap(cap) for cap in caps]
        for one in self.caps:
            one.pressed.connect(lambda keys=one.cap.keys: self.pressed.emit(keys))
            one.released.connect(lambda keys=one.cap.keys: self.released.emit(keys))
            self._column.addWidget(one)

    def light(self, down: Collection[str]) -> None:
        """Light the caps whose keys are all down."""
        for one in self.caps:
            one.set_lit(set(one.cap.keys) <= set(down))
