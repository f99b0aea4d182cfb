"""Everything by which a person takes over: a button for each action, or a slider for each number."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf
from typing import Any

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QCheckBox, QDoubleSpinBox, QHBoxLayout, QPushButton, QSlider, QWidget

from gym_gui.theme import LABEL, SPACE, TEXT, number_font, theme
from gym_gui.ui.presenters.play import ActionField, ActionSpace, Bar, Choice, number
from gym_gui.ui.widgets.basics import Button, NumberLabel, hbox, label, vbox

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
        row = hbox(name, on=self)
        self._slider: QSlider | None = None
        self._spin: QDoubleSpinBox | None = None
        if field.bounded:
            self._slider = self._add_slider(row)
        else:
            self._spin = self._add_spin(row)

    def _add_slider(self, row: QHBoxLayout) -> QSlider:
        slider = QSlider(Qt.Orientation.Horizontal)
        slider.setRange(0, self._field.steps)
        slider.setPageStep(max(1, self._field.steps // 10))
        slider.setAccessibleName(self._field.name)
        self._shown = NumberLabel("", TEXT, bold=False)
        self._shown.setFixedWidth(_VALUE_WIDTH)
        self._shown.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(slider, 1)
        row.addWidget(self._shown)
        slider.setValue(self._field.steps // 2)
        self._shown.setText(number(self._field.at(slider.value())))
        slider.valueChanged.connect(self._moved)
        return slider

    def _add_spin(self, row: QHBoxLayout) -> QDoubleSpinBox:
        spin = QDoubleSpinBox()
        low, high = self._field.low, self._field.high
        spin.setRange(-_FAR if isinf(low) else low, _FAR if isinf(high) else high)
        spin.setDecimals(0 if self._field.whole else 3)
        spin.setSingleStep(1.0 if self._field.whole else 0.1)
        spin.valueChanged.connect(self.changed)
        row.addWidget(spin, 1)
        return spin

    def _moved(self) -> None:
        self._shown.setText(number(self.value))
        self.changed.emit()

    @property
    def value(self) -> float:
        if self._slider is not None:
            return self._field.at(self._slider.value())
        assert self._spin is not None
        return self._spin.value()

    def set_value(self, value: float) -> None:
        """Move to a number, such as the policy's."""
        if self._slider is not None:
            self._slider.setValue(self._field.step_of(value))
        elif self._spin is not None:
            self._spin.setValue(value)


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
            self._body.hide()
            self._body.deleteLater()
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
            column.addSpacing(SPACE[0])
            column.addLayout(self._field_buttons())
        column.addSpacing(SPACE[0])
        column.addWidget(self._hold)
        self._column.addWidget(self._body)

    def _field_buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(SPACE[1])
        take = Button("Take action", do=lambda: self.take(self._from_rows()))
        copy = Button("Set to policy's", role="quiet", do=self._copy_policy)
        row.addWidget(take)
        row.addWidget(copy)
        row.addStretch(1)
        return row

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
