"""The parts that all forms share: watching, tracking, resources, name and notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from gym_gui.models.form_state import FormState
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import vbox
from gym_gui.ui.widgets.fields.layouts import PairGrid, Section, side_by_side
from gym_gui.ui.widgets.fields.state_field import StateField, StateSwitch

RESOURCES = ("cpus", "memory_mb", "gpu", "gpu_mandatory", "max_minutes", "max_restarts", "priority", "python")
NAMING = ("run_name", "tags", "notes", "secrets", "plain")
_WIDE = ("notes", "secrets", "plain")
_LIVE_WORDS = {"grid": "Grid", "single": "One", "off": "Off"}
_LIVE_HELP = {"off": "no picture of this run can be seen"}
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
        vbox(side_by_side(self.mode, self.count, self.slot), on=self)
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
        self._switches = [self.tensorboard, self.wandb]
        self.fields: dict[str, StateField] = {}
        """What Weights & Biases asks for; nothing before it was on."""
        self._box = QWidget()
        self._box.hide()
        vbox(self.tensorboard, self.wandb, self._box, on=self, spacing=SPACE[2])
        for switch in self._switches:
            switch.edited.connect(self.edited)
        self.refresh()

    def _make_fields(self) -> None:
        self.fields = {name: StateField(self._state, name) for name in (*_WANDB, *_PROXIES)}
        proxy = StateSwitch(self._state, "wandb_use_vpn_proxy")
        self._switches.append(proxy)
        own, proxies = [self.fields[name] for name in _WANDB], [self.fields[name] for name in _PROXIES]
        vbox(*own, proxy, *proxies, on=self._box, margins=(SPACE[4] + 2, 0, 0, 0))
        proxy.edited.connect(self.edited)
        for field in self.fields.values():
            field.edited.connect(self.edited)

    def refresh(self) -> None:
        on = self._state.is_on("wandb")
        if on and not self.fields:
            self._make_fields()
        self._box.setVisible(on)
        for switch in self._switches:
            switch.refresh()
        for name, field in self.fields.items():
            field.refresh()
            field.setVisible(name in _WANDB or self._state.is_on("wandb_use_vpn_proxy"))


class SettingsSection(Section):
    """Fields of a run that fold away to one line, which `about` makes of them."""

    edited = Signal(str)

    def __init__(
        self, title: str, state: FormState, names: Sequence[str], about: Callable[[FormState], str]
    ) -> None:
        self._state, self._names, self._about = state, names, about
        self.fields: dict[str, StateField] = {}
        super().__init__(title, self._fill)
        self.refresh()

    def _fill(self) -> QWidget:
        grid = PairGrid(bottom=SPACE[2])
        for name in self._names:
            self.fields[name] = StateField(self._state, name, lines=4 if name == "notes" else 1)
            self.fields[name].edited.connect(self.edited)
            grid.add(self.fields[name], wide=name in _WIDE)
        return grid

    def refresh(self) -> None:
        for one in self.fields.values():
            one.refresh()
        if "gpu_mandatory" in self.fields:
            self.fields["gpu_mandatory"].setEnabled(self._state.is_on("gpu"))
        self.summarise(self._about(self._state))
