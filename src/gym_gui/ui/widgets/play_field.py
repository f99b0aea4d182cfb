"""One number of an action: a slider where it has two ends, else a field."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDoubleSpinBox, QHBoxLayout, QSlider, QWidget

from gym_gui.models.play_actions import Field
from gym_gui.theme import SPACE, TEXT
from gym_gui.ui.presenters.play_values import number
from gym_gui.ui.widgets.basics import NumberLabel, label

_NAME_WIDTH = 72
_VALUE_WIDTH = 64
_FAR = 1e6


class FieldRow(QWidget):
    """Its name, the way to set it, its value."""

    changed = Signal()

    def __init__(self, field: Field) -> None:
        super().__init__()
        self._field = field
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACE[1])
        name = label(field.name, "dim")
        name.setFixedWidth(_NAME_WIDTH)
        row.addWidget(name)
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
        spin.setRange(-_FAR if low is None else low, _FAR if high is None else high)
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
