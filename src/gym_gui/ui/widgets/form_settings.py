"""The parts that all forms share: watching, tracking, resources, name and notes."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gym_gui.models.form_state import FormState
from gym_gui.models.run_settings import about_naming, about_resources
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.fields.layouts import PairGrid, Section, side_by_side
from gym_gui.ui.widgets.fields.state_field import StateField, StateSwitch

_LIVE_WORDS = {"grid": "Grid", "single": "One", "off": "Off"}
_LIVE_HELP = {"off": "no picture of this run can be seen"}
_RESOURCES = (
    "cpus",
    "memory_mb",
    "gpu",
    "gpu_mandatory",
    "max_minutes",
    "max_restarts",
    "priority",
    "python",
)
_WANDB = ("wandb_project_name", "wandb_entity", "wandb_run_name", "wandb_api_key")
_PROXIES = ("wandb_http_proxy", "wandb_https_proxy")


class WatchFields(QWidget):
    """What can be watched while the run lives."""

    edited = Signal(str)

    def __init__(self, state: FormState) -> None:
        super().__init__()
        self._state = state
        self.mode = StateField(state, "live_mode", words=_LIVE_WORDS)
        self.count, self.slot = StateField(state, "live_count"), StateField(state, "live_slot")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(side_by_side(self.mode, self.count, self.slot))
        for part in (self.mode, self.count, self.slot):
            part.edited.connect(self.edited)
        self.refresh()

    def refresh(self) -> None:
        mode = self._state.said("live_mode")
        self.mode.refresh(_LIVE_HELP.get(mode, "costs nothing while nobody looks"))
        self.count.setVisible(mode == "grid")
        self.slot.setVisible(mode == "single")
        self.count.refresh()
        self.slot.refresh()


class TrackingFields(QWidget):
    """TensorBoard, and Weights & Biases with what it asks for once it is on."""

    edited = Signal(str)

    def __init__(self, state: FormState) -> None:
        super().__init__()
        self._state = state
        self.tensorboard, self.wandb = StateSwitch(state, "tensorboard"), StateSwitch(state, "wandb")
        self._box: WandbFields | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(SPACE[2])
        for switch in (self.tensorboard, self.wandb):
            self._column.addWidget(switch)
            switch.edited.connect(self.edited)
        self.refresh()

    @property
    def fields(self) -> dict[str, StateField]:
        """What Weights & Biases asks for; nothing before it was on."""
        return self._box.fields if self._box is not None else {}

    def refresh(self) -> None:
        self.tensorboard.refresh()
        self.wandb.refresh()
        on = self._state.is_on("wandb")
        if on and self._box is None:
            self._box = WandbFields(self._state)
            self._box.edited.connect(self.edited)
            self._column.addWidget(self._box)
        if self._box is not None:
            self._box.setVisible(on)
            self._box.refresh()


class WandbFields(QWidget):
    """Project, team, name, key and proxies."""

    edited = Signal(str)

    def __init__(self, state: FormState) -> None:
        super().__init__()
        self._state = state
        self._proxy = StateSwitch(state, "wandb_use_vpn_proxy")
        self.fields = {name: StateField(state, name) for name in (*_WANDB, *_PROXIES)}
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE[4] + 2, 0, 0, 0)
        column.setSpacing(SPACE[1])
        for name in _WANDB:
            column.addWidget(self.fields[name])
        column.addWidget(self._proxy)
        for name in _PROXIES:
            column.addWidget(self.fields[name])
        self._proxy.edited.connect(self.edited)
        for field in self.fields.values():
            field.edited.connect(self.edited)

    def refresh(self) -> None:
        self._proxy.refresh()
        for name, field in self.fields.items():
            field.refresh()
            field.setVisible(name in _WANDB or self._state.is_on("wandb_use_vpn_proxy"))


class ResourcesSection(Section):
    """What is reserved for the run, and its limits."""

    edited = Signal(str)

    def __init__(self, state: FormState, names: tuple[str, ...] = _RESOURCES) -> None:
        self._state, self._names = state, names
        self.fields: dict[str, StateField] = {}
        super().__init__("Resources", self._fill)
        self.refresh()

    def _fill(self) -> QWidget:
        self.fields = {name: StateField(self._state, name) for name in self._names}
        for one in self.fields.values():
            one.edited.connect(self.edited)
        return PairGrid(self.fields.values(), bottom=SPACE[2])

    def refresh(self) -> None:
        for one in self.fields.values():
            one.refresh()
        if "gpu_mandatory" in self.fields:
            self.fields["gpu_mandatory"].setEnabled(self._state.is_on("gpu"))
        self.summarise(about_resources(self._state))


class NamingSection(Section):
    """How the run is called, and what is noted with it."""

    edited = Signal(str)

    def __init__(self, state: FormState) -> None:
        self._state = state
        self.fields: dict[str, StateField] = {}
        super().__init__("Name and notes", self._fill)
        self.refresh()

    def _fill(self) -> QWidget:
        self.fields = {
            name: StateField(self._state, name) for name in ("run_name", "tags", "secrets", "plain")
        }
        self.fields["notes"] = StateField(self._state, "notes", lines=4)
        for one in self.fields.values():
            one.edited.connect(self.edited)
        body = PairGrid((self.fields["run_name"], self.fields["tags"]), bottom=SPACE[2])
        body.add(self.fields["notes"], wide=True)
        for name in ("secrets", "plain"):
            body.add(self.fields[name], wide=True)
        return body

    def refresh(self) -> None:
        for one in self.fields.values():
            one.refresh()
        self.summarise(about_naming(self._state))
