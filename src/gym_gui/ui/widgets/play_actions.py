"""Everything by which a person takes over: a button for each action, or a slider for each number."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf
from typing import Any

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QCheckBox, QDoubleSpinBox, QPushButton, QSlider, QWidget

from gym_gui.theme import LABEL, SPACE, TEXT, number_font, theme
from gym_gui.ui.presenters.play import ActionField, ActionSpace, Bar, Choice, number
from gym_gui.ui.widgets.basics import Button, Gap, NumberLabel, drop, fill, hbox, label, slider, vbox

_HEIGHT = 34
_CORNER = 6
_MARK = 3
_NAME_WIDTH = 72
_VALUE_WIDTH = 64
_FAR = 1e6


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

    def show_policy_output(self, bar: Bar | None, is_next: bool) -> None:
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
        painter.fillRect(area, palette.colour("line" if self.isDown() else "raised"))
        if self._bar is not None and self.isEnabled():
            wide = round(area.width() * self._bar.share)
            painter.fillRect(
                QRect(area.left(), area.top(), wide, area.height()), palette.colour("accent", 0.2)
            )
        if self._next:
            painter.fillRect(QRect(area.left(), area.top(), _MARK, area.height()), palette.colour("accent"))
        self._paint_words(painter, area.adjusted(SPACE[2], 0, -SPACE[2], 0))
        painter.setClipping(False)
        edge = "accent" if self.hasFocus() or (self.underMouse() and self.isEnabled()) else "line"
        painter.setPen(palette.colour(edge))
        painter.drawRoundedRect(area.adjusted(0, 0, -1, -1), _CORNER, _CORNER)
        painter.end()

    def _paint_words(self, painter: QPainter, area: QRect) -> None:
        palette = theme.palette
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.setFont(number_font(TEXT))
        painter.setPen(palette.colour("text" if self.isEnabled() else "faint"))
        painter.drawText(area, middle, self.choice.word)
        wide = painter.fontMetrics().horizontalAdvance(self.choice.word)
        if self._bar is not None:
            painter.drawText(area, middle | Qt.AlignmentFlag.AlignRight, self._bar.text)
        painter.setFont(number_font(LABEL))
        painter.setPen(palette.colour("faint"))
        hint = " · ".join(filter(None, [self.choice.keys, "next" if self._next else ""]))
        painter.drawText(area.adjusted(wide + SPACE[1], 0, 0, 0), middle, hint)


class FieldRow(QWidget):
    """Its name, the way to set it, its value."""

    changed = Signal()

    def __init__(self, field: ActionField) -> None:
        super().__init__()
        self._field = field
        name = label(field.name, "dim")
        name.setFixedWidth(_NAME_WIDTH)
        self._control = self._slider() if field.bounded else self._spin()
        row = hbox(name, (self._control, 1), on=self)
        if field.bounded:
            shown = NumberLabel(number(self.value), TEXT)
            shown.setFixedWidth(_VALUE_WIDTH)
            shown.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            row.addWidget(shown)
            self._control.valueChanged.connect(lambda: shown.setText(number(self.value)))
        self._control.valueChanged.connect(self.changed)

    def _slider(self) -> QSlider:
        steps = self._field.steps
        made = slider(steps, self._field.name)
        made.setPageStep(max(1, steps // 10))
        made.setValue(steps // 2)
        return made

    def _spin(self) -> QDoubleSpinBox:
        low, high, whole = self._field.low, self._field.high, self._field.whole
        made = QDoubleSpinBox(decimals=0 if whole else 3, singleStep=1.0 if whole else 0.1)
        made.setRange(-_FAR if isinf(low) else low, _FAR if isinf(high) else high)
        return made

    @property
    def value(self) -> float:
        at = self._control.value()
        return self._field.at(int(at)) if isinstance(self._control, QSlider) else at

    def set_value(self, value: float) -> None:
        """Move to a number, such as the policy's."""
        if isinstance(self._control, QSlider):
            self._control.setValue(self._field.step_of(value))
        else:
            self._control.setValue(value)


class ActionPanel(QWidget):
    """The actions of one environment."""

    chosen = Signal(object)
    """An action that is to be taken now."""
    held = Signal(object)
    """The action that every step is to have while it runs; None: the policy's own."""

    def __init__(self) -> None:
        super().__init__()
        self._column = vbox(on=self, spacing=SPACE[0])
        self._body: QWidget | None = None
        self._space: ActionSpace | None = None
        self._choices: list[ChoiceButton] = []
        self._rows: list[FieldRow] = []
        self._policys: Any = None
        self._last: Any = None
        self._hold = QCheckBox("Keep my action while it runs")
        self._hold.toggled.connect(self._tell_held)

    def set_space(self, space: ActionSpace) -> None:
        """Make the controls for another environment."""
        if self._body is not None:
            self._hold.setParent(None)
            drop(self._body)
        self._space, self._choices, self._rows, self._last = space, [], [], None
        self._hold.setChecked(False)
        self._body = QWidget()
        column = vbox(on=self._body, spacing=SPACE[0])
        for choice in space.choices:
            one = ChoiceButton(choice)
            one.clicked.connect(lambda _=False, action=choice.action: self.take(action))
            self._choices.append(one)
            column.addWidget(one)
        for field in space.fields:
            row = FieldRow(field)
            row.changed.connect(self._tell_held)
            self._rows.append(row)
            column.addWidget(row)
        if self._rows:
            take = Button("Take action", do=lambda: self.take(self._from_rows()))
            copy = Button("Set to policy's", role="quiet", do=self._copy_policy)
            fill(column, Gap(SPACE[0]), hbox(take, copy, 1))
        fill(column, Gap(SPACE[0]), self._hold)
        self._column.addWidget(self._body)

    def take(self, action: Any) -> None:
        """As if it were pressed."""
        self._last = action
        self._tell_held()
        self.chosen.emit(action)

    def show_policy_output(self, bars: Sequence[Bar], policys: Any, enabled: bool) -> None:
        """What the policy makes of each action, which one it takes next, and whether one can be taken now."""
        self._policys = policys
        self.setEnabled(enabled)
        for place, one in enumerate(self._choices):
            one.show_policy_output(bars[place] if bars else None, one.choice.action == policys)

    def _copy_policy(self) -> None:
        if self._space is None or self._policys is None:
            return
        for row, value in zip(self._rows, self._space.numbers(self._policys), strict=True):
            row.set_value(value)

    def _from_rows(self) -> Any:
        assert self._space is not None
        return self._space.build([row.value for row in self._rows])

    def _tell_held(self) -> None:
        if not self._hold.isChecked():
            self.held.emit(None)
        elif self._rows:
            self.held.emit(self._from_rows())
        else:
            self.held.emit(self._last)
