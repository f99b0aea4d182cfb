"""The policy form: policies that were found, and how one is evaluated."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtWidgets import QVBoxLayout

from gym_gui.theme import SPACE
from gym_gui.ui.presenters.form_page import EVALUATING
from gym_gui.ui.presenters.policy_form import PLAYING, SWITCHES, PolicyForm
from gym_gui.ui.widgets.basics import label
from gym_gui.ui.widgets.fields.layouts import PairGrid, folds
from gym_gui.ui.widgets.fields.pickers import EnvironmentField, SourcePicker
from gym_gui.ui.widgets.fields.state_field import StateField, StateSwitch
from gym_gui.ui.widgets.form_frame import MODEL_FILES, ChoosingFrame, section_title
from gym_gui.ui.widgets.form_settings import NamingSection, ResourcesSection, WatchFields

_RESOURCES = ("cpus", "memory_mb", "max_minutes", "priority")


class CleanRLPolicyForm(ChoosingFrame[PolicyForm]):
    """Evaluates a policy. Its environment is locked until it is told otherwise."""

    purpose = "policy"

    def fill(self, left: QVBoxLayout, middle: QVBoxLayout) -> Iterator[None]:
        presenter, run = self.presenter, self.presenter.run
        picker = SourcePicker(
            "Another one",
            run.fields["policy"].help,
            presenter.found.rows,
            "There is no policy yet: train one first.",
            MODEL_FILES,
            "Search policies",
        )
        self.fill_source(left, "Policy", picker)
        yield
        self._fill_what(middle)
        yield
        self._fill_how(middle)
        yield
        self.side.name_about("About evaluating")
        self.side.about.show_page(EVALUATING)

    def _fill_what(self, middle: QVBoxLayout) -> None:
        run = self.presenter.run
        self.about = label("", "strong", wraps=True, selectable=True)
        self.algo = StateField(run, "algo")
        self.environment = EnvironmentField(run, "env_id", lambda: self.presenter.environments)
        self.override = StateSwitch(run, "override")
        self.override.edited.connect(self._set_override)
        middle.addWidget(section_title("What is played"))
        middle.addWidget(self.about)
        middle.addWidget(self.algo)
        middle.addWidget(self.environment)
        middle.addWidget(self.override)
        middle.addWidget(self.install)
        self.listen(self.algo, self.environment)

    def _fill_how(self, middle: QVBoxLayout) -> None:
        run = self.presenter.run
        self.fields = {one.name: StateField(run, one.name) for one in PLAYING}
        self.switches = {one.name: StateSwitch(run, one.name) for one in SWITCHES}
        self.watch = WatchFields(run)
        self.resources, self.naming = ResourcesSection(run, _RESOURCES), NamingSection(run)
        middle.addWidget(section_title("How it is played"))
        middle.addWidget(PairGrid(self.fields.values()))
        for switch in self.switches.values():
            middle.addWidget(switch)
        middle.addWidget(self.watch)
        middle.addLayout(folds(self.resources, self.naming, above=SPACE[1]))
        self.listen(*self.fields.values(), *self.switches.values())
        self.listen(self.watch, self.resources, self.naming)

    def refresh(self) -> None:
        presenter = self.presenter
        chosen = presenter.facts.path if presenter.facts else ""
        self.source_picker.show_chosen(chosen, presenter.run.said("policy"), presenter.trouble)
        self.about.setText(presenter.about())
        self.algo.setVisible(presenter.asks_algo)
        self.algo.refresh()
        self.environment.setEnabled(not presenter.locked)
        self.environment.refresh(presenter.about_environment())
        self.override.refresh()
        for name, field in self.fields.items():
            field.set_placeholder(presenter.hint(name))
            field.refresh()
        for switch in self.switches.values():
            switch.refresh()
        for part in (self.watch, self.resources, self.naming):
            part.refresh()

    def _set_override(self) -> None:
        self.presenter.set_override(self.override.isChecked())
        self.edited()
