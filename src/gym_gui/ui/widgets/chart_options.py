"""How the charts of a page are drawn: smoothing, the axis, which metrics."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLineEdit, QSlider, QWidget

from gym_gui.models.charting import Axis, ChartOptions
from gym_gui.settings import Settings
from gym_gui.theme import LABEL, SPACE
from gym_gui.ui.widgets.basics import NumberLabel, label
from gym_gui.ui.widgets.elided import ElidedLabel

_AXES: tuple[tuple[str, Axis], ...] = (("Steps", "step"), ("Time", "time"))
_SMOOTHING, _AXIS = "charts.smoothing", "charts.axis"
_MOST = 99


class ChartOptionsBar(QWidget):
    """A row of controls; what is chosen is remembered."""

    changed = Signal()

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self.search = QLineEdit(placeholderText="Find…   /")
        self.search.setClearButtonEnabled(True)
        self.search.setMinimumWidth(100)
        self.search.setMaximumWidth(280)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, _MOST)
        self.slider.setMinimumWidth(64)
        self.slider.setMaximumWidth(140)
        self.slider.setAccessibleName("Smoothing")
        self._value = NumberLabel("0.60", LABEL, bold=False)
        self.axis = QComboBox()
        self.axis.setAccessibleName("Horizontal axis")
        for words, axis in _AXES:
            self.axis.addItem(words, axis)
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(0, 0, 0, 0)
        self.row.setSpacing(SPACE[1])
        self.row.addWidget(self.search, 1)
        self.row.addSpacing(SPACE[1])
        self.row.addWidget(label("Smoothing", "label"))
        self.row.addWidget(self.slider, 1)
        self.row.addWidget(self._value)
        self.row.addSpacing(SPACE[1])
        self.row.addWidget(self.axis)
        self.row.addWidget(ElidedLabel("Drag to zoom, double-click for all", "faint"), 1)
        self.reload()
        self.slider.valueChanged.connect(self._choose)
        self.axis.currentIndexChanged.connect(self._choose)
        self.search.textChanged.connect(self.changed)

    @property
    def options(self) -> ChartOptions:
        return ChartOptions(self.slider.value() / 100, self.axis.currentData())

    def reload(self) -> None:
        """Take what was chosen last, maybe on another page."""
        self.slider.blockSignals(True)
        self.axis.blockSignals(True)
        self.slider.setValue(round(float(self._settings.get(_SMOOTHING, 0.6)) * 100))
        self.axis.setCurrentIndex(max(0, self.axis.findData(self._settings.get(_AXIS, "step"))))
        self.slider.blockSignals(False)
        self.axis.blockSignals(False)
        self._value.setText(f"{self.options.smoothing:.2f}")

    def _choose(self) -> None:
        self._value.setText(f"{self.options.smoothing:.2f}")
        self._settings.set(_SMOOTHING, self.options.smoothing)
        self._settings.set(_AXIS, self.options.axis)
        self.changed.emit()


def remembered_options(settings: Settings) -> ChartOptions:
    """What was chosen last."""
    return ChartOptions(float(settings.get(_SMOOTHING, 0.6)), settings.get(_AXIS, "step"))
