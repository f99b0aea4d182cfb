"""The script form: a shell script that trains in phases, a Python script or an algorithm of one's own."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtWidgets import QVBoxLayout

from gym_gui.theme import SPACE
from gym_gui.ui.presenters.form_page import SCRIPTS
from gym_gui.ui.presenters.script_form import ScriptForm
from gym_gui.ui.widgets.fields.layouts import FactList, folds, side_by_side
from gym_gui.ui.widgets.fields.parameter_sheet import ParameterSheetView
from gym_gui.ui.widgets.fields.pickers import SourcePicker
from gym_gui.ui.widgets.fields.state_field import StateField
from gym_gui.ui.widgets.form_frame import ChoosingFrame, section_title
from gym_gui.ui.widgets.form_settings import NamingSection, ResourcesSection, TrackingFields, WatchFields

_FILES = "Scripts (*.sh *.py);;All files (*)"


class CleanRLScriptForm(ChoosingFrame[ScriptForm]):
    """Runs a script as a run."""

    purpose = "script"

    def fill(self, left: QVBoxLayout, middle: QVBoxLayout) -> Iterator[None]:
        presenter, run = self.presenter, self.presenter.run
        picker = SourcePicker(
            "Another one",
            run.fields["script"].help,
            presenter.rows(),
            "There is no script yet: name one below.",
            _FILES,
            "Search scripts",
        )
        self.fill_source(left, "Script", picker)
        yield
        self._fill_what(middle)
        yield
        self._fill_how(middle)
        yield
        self.side.name_about("About scripts")
        self.side.about.show_page(SCRIPTS)

    def _fill_what(self, middle: QVBoxLayout) -> None:
        run = self.presenter.run
        self.told = FactList()
        self.env_id, self.steps = StateField(run, "env_id"), StateField(run, "total_timesteps")
        self.seeds, self.flags = StateField(run, "seeds"), StateField(run, "flags", lines=4)
        middle.addWidget(section_title("What its head says"))
        middle.addWidget(self.told)
        middle.addWidget(self.install)
        middle.addWidget(section_title("What it is told"))
        middle.addWidget(side_by_side(self.env_id, self.steps, self.seeds))
        middle.addWidget(self.flags)
        self.sheet = ParameterSheetView(self.presenter.sheet)
        middle.addWidget(self.sheet)
        self.listen(self.env_id, self.steps, self.seeds, self.flags, self.sheet)

    def _fill_how(self, middle: QVBoxLayout) -> None:
        run = self.presenter.run
        self.watch, self.tracking = WatchFields(run), TrackingFields(run)
        self.resources, self.naming = ResourcesSection(run), NamingSection(run)
        middle.addWidget(section_title("Watch and keep"))
        middle.addWidget(self.watch)
        middle.addWidget(self.tracking)
        middle.addLayout(folds(self.resources, self.naming, above=SPACE[1]))
        self.listen(self.watch, self.tracking, self.resources, self.naming)

    def refresh(self) -> None:
        presenter = self.presenter
        named = presenter.run.said("script")
        self.source_picker.show_chosen(named if presenter.head else "", named, presenter.trouble)
        self.told.show_facts(presenter.told())
        self.env_id.set_placeholder(presenter.environment_hint())
        self.steps.set_placeholder(presenter.steps_hint())
        self.env_id.refresh()
        self.steps.refresh()
        self.seeds.refresh(presenter.about_seeds(), presenter.seeds_problem())
        self.flags.refresh(problem=presenter.flags_problem())
        self.flags.setVisible(not presenter.algorithm)
        self.sheet.setVisible(bool(presenter.algorithm))
        if presenter.algorithm:
            self.sheet.show_algorithm(presenter.algorithm)
        for part in (self.watch, self.tracking, self.resources, self.naming):
            part.refresh()
