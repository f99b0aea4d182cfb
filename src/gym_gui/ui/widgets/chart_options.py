"""How the charts of a page are drawn: smoothing, the axes, which metrics."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLineEdit, QSlider, QWidget

from gym_gui.models.charting import Axis, ChartOptions
from gym_gui.settings import Settings
from gym_gui.theme import LABEL, SPACE
from gym_gui.ui.widgets.basics import NumberLabel, button, label
from gym_gui.ui.widgets.elided import ElidedLabel

_AXES: tuple[tuple[str, Axis], ...] = (("Steps", "step"), ("Time", "time"))
_WINDOW, _AXIS, _LOG_X, _LOG_Y = "charts.window", "charts.axis", "charts.log_x", "charts.log_y"
_SHARES = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""How long the window may be, as a share of the axis."""
_ROOMY = 800


class ChartOptionsBar(QWidget):
    """A row of controls; what is chosen is remembered."""

    changed = Signal()

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self.search = QLineEdit(placeholderText="Find…   /")
        self.search.setClearButtonEnabled(True)
        self.search.setMinimumWidth(84)
        self.search.setMaximumWidth(280)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, len(_SHARES) - 1)
        self.slider.setPageStep(1)
        self.slider.setMinimumWidth(64)
        self.slider.setMaximumWidth(120)
        self.slider.setAccessibleName("Smoothing")
        self.slider.setToolTip("Smoothing: how long the window is that the line is the mean of")
        self._value = NumberLabel("0.2 %", LABEL, bold=False)
        self._value.setMinimumWidth(self._value.sizeHint().width())
        self.axis = QComboBox()
        self.axis.setAccessibleName("Horizontal axis")
        for words, axis in _AXES:
            self.axis.addItem(words, axis)
        self.log_x, self.log_y = button("log x", role="chip"), button("log y", role="chip")
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(0, 0, 0, 0)
        self.row.setSpacing(SPACE[1])
        self.row.addWidget(self.search, 1)
        self.row.addSpacing(SPACE[1])
        self._name = label("Smoothing", "label")
        self.row.addWidget(self._name)
        self.row.addWidget(self.slider, 1)
        self.row.addWidget(self._value)
        self.row.addSpacing(SPACE[1])
        self.row.addWidget(self.axis)
        for chip in (self.log_x, self.log_y):
            chip.setCheckable(True)
            self.row.addWidget(chip)
        self.row.addWidget(ElidedLabel("Drag to zoom · double-click for all · Enter to enlarge", "faint"), 1)
        self.reload()
        self.slider.valueChanged.connect(self._choose)
        self.axis.currentIndexChanged.connect(self._choose)
        self.log_x.toggled.connect(self._choose)
        self.log_y.toggled.connect(self._choose)
        self.search.textChanged.connect(self.changed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # Where there is little room the slider speaks for itself, and its tooltip for it.
        self._name.setVisible(event.size().width() >= _ROOMY)

    @property
    def options(self) -> ChartOptions:
        share = _SHARES[self.slider.value()]
        return ChartOptions(share, self.axis.currentData(), self.log_x.isChecked(), self.log_y.isChecked())

    def reload(self) -> None:
        """Take what was chosen last, maybe on another page."""
        chosen = remembered_options(self._settings)
        controls = (self.slider, self.axis, self.log_x, self.log_y)
        for control in controls:
            control.blockSignals(True)
        nearest = min(range(len(_SHARES)), key=lambda at: abs(_SHARES[at] - chosen.smoothing))
        self.slider.setValue(nearest)
        self.axis.setCurrentIndex(max(0, self.axis.findData(chosen.axis)))
        self.log_x.setChecked(chosen.log_x)
        self.log_y.setChecked(chosen.log_y)
        for control in controls:
            control.blockSignals(False)
        self._tell()

    def _tell(self) -> None:
        share = self.options.smoothing
        self._value.setText(f"{share * 100:g} %" if share else "off")

    def _choose(self) -> None:
        self._tell()
        options = self.options
        chosen = (
            (_WINDOW, options.smoothing),
            (_AXIS, options.axis),
            (_LOG_X, options.log_x),
            (_LOG_Y, options.log_y),
        )
        for name, value in chosen:
            self._settings.set(name, value)
        self.changed.emit()


def remembered_options(settings: Settings) -> ChartOptions:
    """What was chosen last."""
    usual = ChartOptions()
    return ChartOptions(
        float(settings.get(_WINDOW, usual.smoothing)),
        settings.get(_AXIS, usual.axis),
        bool(settings.get(_LOG_X, False)),
        bool(settings.get(_LOG_Y, False)),
    )
