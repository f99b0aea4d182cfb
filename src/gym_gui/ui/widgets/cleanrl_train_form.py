"""The train form: algorithm and environment, parameters, and the algorithm's page."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtGui import QImage
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gym_gui.theme import SPACE
from gym_gui.ui.presenters.form_page import AlgorithmPage, read_page
from gym_gui.ui.presenters.train_form import TrainForm
from gym_gui.ui.widgets.fields.layouts import ChoiceBox, PairGrid, Section, folds, side_by_side
from gym_gui.ui.widgets.fields.parameter_sheet import ParameterSheetView, StageEditor
from gym_gui.ui.widgets.fields.pickers import EnvironmentField
from gym_gui.ui.widgets.fields.state_field import FieldBox, StateField, StateSwitch
from gym_gui.ui.widgets.form_frame import FormFrame, section_title
from gym_gui.ui.widgets.form_settings import NamingSection, ResourcesSection, TrackingFields, WatchFields

_KEPT_WORDS = {"save_model": "Save model and evaluate it", "capture_video": "Record video"}


class CleanRLTrainForm(FormFrame[TrainForm]):
    """Trains one of the worker's algorithms, with one run for each seed."""

    purpose = "train"

    def fill(self, left: QVBoxLayout, middle: QVBoxLayout) -> Iterator[None]:
        self._page_of = ""
        self._fill_run(left)
        yield
        self._fill_kept(left)
        yield
        self._fill_parameters(middle)
        yield
        self.sheet.show_algorithm(self.presenter.algo)
        yield

    def _fill_run(self, left: QVBoxLayout) -> None:
        presenter, run = self.presenter, self.presenter.run
        self.algorithm = ChoiceBox()
        self.algorithm.addItems(presenter.algorithms)
        self.algorithm.activated.connect(self._choose_algorithm)
        self.algorithm_box = FieldBox("Algorithm", self.algorithm)
        self.environment = EnvironmentField(run, "env_id", lambda: self.presenter.environments)
        self.steps, self.seeds = StateField(run, "total_timesteps"), StateField(run, "seeds")
        self.curriculum = ChoiceBox()
        self.curriculum.addItems(presenter.stages.choices)
        self.curriculum.activated.connect(self._choose_curriculum)
        self.curriculum_box = FieldBox("Curriculum", self.curriculum)
        self._stages: StageEditor | None = None
        self._stages_box = QVBoxLayout()
        left.addWidget(section_title("Run"))
        left.addWidget(self.algorithm_box)
        left.addWidget(self.environment)
        left.addWidget(self.install)
        left.addWidget(side_by_side(self.steps, self.seeds))
        left.addWidget(self.curriculum_box)
        left.addLayout(self._stages_box)
        self.listen(self.environment, self.steps, self.seeds)

    def _fill_kept(self, left: QVBoxLayout) -> None:
        run = self.presenter.run
        left.addWidget(section_title("Watch and keep"))
        self.watch, self.tracking = WatchFields(run), TrackingFields(run)
        self._kept_box = QVBoxLayout()
        self._kept_box.setSpacing(SPACE[2])
        self.kept: dict[str, StateSwitch] = {}
        left.addWidget(self.watch)
        left.addLayout(self._kept_box)
        left.addWidget(self.tracking)
        self.listen(self.watch, self.tracking)

    def _fill_parameters(self, middle: QVBoxLayout) -> None:
        run = self.presenter.run
        self.sheet = ParameterSheetView(self.presenter.sheet)
        self.arguments: StateField | None = None
        self.environment_section = Section("Environment", self._make_arguments)
        self.resources, self.naming = ResourcesSection(run), NamingSection(run)
        middle.setSpacing(0)
        middle.addWidget(self.sheet)
        middle.addLayout(folds(self.environment_section, self.resources, self.naming))
        self.listen(self.sheet, self.resources, self.naming)

    def _make_arguments(self) -> QWidget:
        self.arguments = StateField(self.presenter.run, "env_kwargs", lines=2)
        self.listen(self.arguments)
        return PairGrid((), bottom=SPACE[2]).add(self.arguments, wide=True)

    @property
    def stages(self) -> StageEditor:
        """The table of stages, made when it is first needed."""
        if self._stages is None:
            self._stages = StageEditor(self.presenter.stages, self.presenter.fitting_ids)
            self.listen(self._stages)
            self._stages_box.addWidget(self._stages)
        return self._stages

    def refresh(self) -> None:
        presenter, run = self.presenter, self.presenter.run
        self.algorithm.setCurrentText(presenter.algo)
        self.algorithm_box.set_help(presenter.source.catalog.summary(presenter.algo))
        self.environment.setEnabled(not presenter.stages.rows)
        self.environment.refresh(
            presenter.about_environment(), presenter.environment_problem(), presenter.stages.target
        )
        self.steps.refresh()
        self.seeds.refresh(presenter.about_seeds(), presenter.seeds_problem())
        self.curriculum.setCurrentText(presenter.stages.name)
        self.curriculum_box.set_help("", presenter.stages.problem())
        self.watch.refresh()
        self.tracking.refresh()
        self._show_kept()
        self.sheet.show_algorithm(presenter.algo)
        if self.arguments is not None:
            self.arguments.refresh()
        if self._stages is not None or presenter.stages.rows:
            self.stages.setVisible(bool(presenter.stages.rows))
        self.environment_section.summarise(run.said("env_kwargs") or "no arguments")
        self.resources.refresh()
        self.naming.refresh()
        self._show_page()

    def _show_kept(self) -> None:
        """The switches of what is kept belong to the algorithm, like every parameter."""
        state, names = self.presenter.params, self.presenter.sheet.kept(self.presenter.algo)
        if [(one.state, one.key) for one in self.kept.values()] != [(state, name) for name in names]:
            for switch in self.kept.values():
                self._kept_box.removeWidget(switch)
                switch.deleteLater()
            self.kept = {name: StateSwitch(state, name, _KEPT_WORDS.get(name, "")) for name in names}
            for switch in self.kept.values():
                self._kept_box.addWidget(switch)
                self.listen(switch)
        for switch in self.kept.values():
            switch.refresh()

    def _choose_algorithm(self) -> None:
        self.presenter.choose(self.algorithm.currentText())
        self.edited()

    def _choose_curriculum(self) -> None:
        self.presenter.stages.choose(self.curriculum.currentText(), self.presenter.run.said("env_id"))
        self.stages.refresh()
        self.edited()

    def _show_page(self) -> None:
        algo = self.presenter.algo
        if algo == self._page_of:
            return
        self._page_of = algo
        self.side.name_about(f"About {algo}")
        catalog = self.presenter.source.catalog

        def read() -> tuple[str, AlgorithmPage, QImage | None]:
            page = read_page(catalog, algo)
            return algo, page, QImage(str(page.picture)) if page.picture else None

        self.context.tasks.run(read, self._take_page)

    def _take_page(self, read: tuple[str, AlgorithmPage, QImage | None]) -> None:
        algo, page, figure = read
        if algo == self._page_of:
            self.side.about.show_page(page, figure)
