"""One action to press, with what the policy makes of it."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QPushButton

from gym_gui.models.play_actions import Choice
from gym_gui.theme import LABEL, SPACE, TEXT, number_font, theme
from gym_gui.ui.presenters.play_values import Bar

_HEIGHT = 34
_CORNER = 6
_MARK = 3


class ChoiceButton(QPushButton):
    """Word, keys, and a bar as long as the policy likes the action; the one it takes next is marked."""

    def __init__(self, choice: Choice) -> None:
        super().__init__(choice.word)
        self.choice = choice
        self._bar: Bar | None = None
        self._next = False
        # A click must not take the arrow keys away from the view.
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(f"Take the action {choice.word}")

    def show_opinion(self, bar: Bar | None, is_next: bool) -> None:
        if (bar, is_next) != (self._bar, self._next):
            self._bar, self._next = bar, is_next
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, _HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, _HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = self.rect().adjusted(0, 1, 0, -1)
        shape = QPainterPath()
        shape.addRoundedRect(area, _CORNER, _CORNER)
        painter.setClipPath(shape)
        painter.fillRect(area, QColor(palette.line if self.isDown() else palette.raised))
        if self._bar is not None and self.isEnabled():
            wide = round(area.width() * self._bar.share)
            painter.fillRect(
                QRect(area.left(), area.top(), wide, area.height()), palette.colour("accent", 0.2)
            )
        if self._next:
            painter.fillRect(QRect(area.left(), area.top(), _MARK, area.height()), QColor(palette.accent))
        self._paint_words(painter, area.adjusted(SPACE[2], 0, -SPACE[2], 0))
        painter.setClipping(False)
        edge = palette.accent if self.hasFocus() or (self.underMouse() and self.isEnabled()) else palette.line
        painter.setPen(QColor(edge))
        painter.drawRoundedRect(area.adjusted(0, 0, -1, -1), _CORNER, _CORNER)
        painter.end()

    def _paint_words(self, painter: QPainter, area: QRect) -> None:
        palette = theme.palette
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.setFont(number_font(TEXT))
        painter.setPen(QColor(palette.text if self.isEnabled() else palette.faint))
        painter.drawText(area, middle, self.choice.word)
        wide = painter.fontMetrics().horizontalAdvance(self.choice.word)
        if self._bar is not None:
            painter.drawText(area, middle | Qt.AlignmentFlag.AlignRight, self._bar.text)
        painter.setFont(number_font(LABEL))
        painter.setPen(QColor(palette.faint))
        hint = " · ".join(filter(None, [self.choice.keys, "next" if self._next else ""]))
        painter.drawText(area.adjusted(wide + SPACE[1], 0, 0, 0), middle, hint)
