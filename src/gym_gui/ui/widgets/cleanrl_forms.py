"""The CleanRL worker's forms: to train, to evaluate a policy, to go on from a checkpoint, to run a script."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtGui import QImage
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gym_gui.models.run_settings import RunSettings
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.choosing_forms import (
    EXTEND,
    PLAYING,
    SWITCHES,
    TOTAL,
    PolicyForm,
    ResumeForm,
    ScriptForm,
)
from gym_gui.ui.presenters.cleanrl_forms import TrainForm
from gym_gui.ui.presenters.form_page import EVALUATING, RESUMING, SCRIPTS, AlgorithmPage, read_page
from gym_gui.ui.widgets.basics import Button, column_of, fill, hbox, label, swap, vbox
from gym_gui.ui.widgets.fields.layouts import ChoiceBox, FactList, PairGrid, Section, folds, side_by_side
from gym_gui.ui.widgets.fields.parameter_sheet import ParameterSheetView, StageEditor
from gym_gui.ui.widgets.fields.pickers import EnvironmentField
from gym_gui.ui.widgets.fields.state_field import FieldBox, StateField, StateSwitch, WatchFields
from gym_gui.ui.widgets.form_frame import ChoosingFrame, FormFrame, section_title
from mosaic.contract.errors import MosaicError

_KEPT_WORDS = {"save_model": "Save model and evaluate it", "capture_video": "Record video"}
_MODELS = "Models and checkpoints (*.cleanrl_model *.npz);;All files (*)"


class CleanRLTrainForm(FormFrame[TrainForm]):
    """Trains one of the worker's algorithms, with one run for each seed."""

    purpose = "train"

    def fill(self, left: QVBoxLayout, middle: QVBoxLayout) -> Iterator[None]:
        presenter = self.presenter
        self._page_of = ""
        self.algorithm = ChoiceBox()
        self.algorithm.addItems(presenter.algorithms)
        self.algorithm.activated.connect(self._choose_algorithm)
        self.algorithm_box = FieldBox("Algorithm", self.algorithm)
        environment = EnvironmentField(presenter.run, "env_id", lambda: self.presenter.environments)
        self.environment = self.listen(environment)
        self.by_hand = Button("Play by hand", role="quiet-link", do=self._play_by_hand)
        self.sweep = Button("Sweep parameters…", role="quiet-link", do=self._search)
        self.steps, self.seeds = self.field("total_timesteps"), self.field("seeds")
        self.curriculum = ChoiceBox()
        self.curriculum.addItems(presenter.stages.choices)
        self.curriculum.activated.connect(self._choose_curriculum)
        self.curriculum_box = FieldBox("Curriculum", self.curriculum)
        self._stages: StageEditor | None = None
        self._stages_box = vbox()
        steps = side_by_side(self.steps, self.seeds)
        links = hbox(self.by_hand, self.sweep, 1, spacing=SPACE[2])
        fill(left, section_title("Run"), self.algorithm_box, self.environment, links, self.install, steps)
        fill(left, self.curriculum_box, self._stages_box)
        yield
        self._kept_box = vbox(spacing=SPACE[2])
        self.kept: dict[str, StateSwitch] = {}
        watch, tracking = self.watching()
        fill(left, section_title("Watch and keep"), watch, self._kept_box, tracking)
        yield
        self.sheet = self.listen(ParameterSheetView(presenter.sheet))
        self.environment_section = Section("Environment", self._make_arguments)
        middle.setSpacing(0)
        fill(middle, self.sheet, folds(self.environment_section, *self.settings()))
        yield
        self.sheet.show_algorithm(presenter.algo)
        yield

    def _play_by_hand(self) -> None:
        """Try the environment out; the form is there again afterwards."""
        chosen = {name: self.presenter.run.said(name) for name in ("env_id", "env_kwargs")}
        self.context.open_form("hand", chosen)

    def _search(self) -> None:
        """Search the parameters instead of setting them; what is set already stays so."""
        presenter = self.presenter
        try:
            asked = presenter.asked(RunSettings.of(presenter.run))
        except MosaicError as error:
            self.context.notifications.tell(str(error), "warn")
            return
        env_id = presenter.run.said("env_id")
        prefill = {"algo": presenter.algo, "env_id": env_id, "total_timesteps": asked["total_timesteps"]}
        self.context.open_form("sweep", {**prefill, "set": asked["params"]})

    def _make_arguments(self) -> QWidget:
        return PairGrid((), bottom=SPACE[2]).add(self.field("env_kwargs", lines=2), wide=True)

    @property
    def stages(self) -> StageEditor:
        """The table of stages, made when it is first needed."""
        if self._stages is None:
            self._stages = self.listen(StageEditor(self.presenter.stages, self.presenter.fitting_ids))
            self._stages_box.addWidget(self._stages)
        return self._stages

    def refresh(self) -> None:
        super().refresh()
        presenter, run = self.presenter, self.presenter.run
        self.algorithm.setCurrentText(presenter.algo)
        self.algorithm_box.set_help(presenter.source.catalog.summary(presenter.algo))
        self.environment.setEnabled(not presenter.stages.rows)
        self.environment.refresh(
            presenter.about_environment(), presenter.environment_problem(), presenter.stages.target
        )
        self.seeds.refresh(presenter.about_seeds(), presenter.seeds_problem())
        self.curriculum.setCurrentText(presenter.stages.name)
        self.curriculum_box.set_help("", presenter.stages.problem())
        self._show_kept()
        self.sheet.show_algorithm(presenter.algo)
        if self._stages is not None or presenter.stages.rows:
            self.stages.setVisible(bool(presenter.stages.rows))
        self.environment_section.summarise(run.said("env_kwargs") or "no arguments")
        self._show_page()

    def _show_kept(self) -> None:
        """The switches of what is kept belong to the algorithm, like every parameter."""
        state, names = self.presenter.params, self.presenter.sheet.kept(self.presenter.algo)
        if [(one.state, one.key) for one in self.kept.values()] != [(state, name) for name in names]:
            self.forget(*self.kept.values())
            switches = (StateSwitch(state, name, _KEPT_WORDS.get(name, "")) for name in names)
            self.kept = {one.key: self.listen(one) for one in switches}
            fill(self._kept_box, *self.kept.values())

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


class CleanRLPolicyForm(ChoosingFrame[PolicyForm]):
    """Evaluates a policy. Its environment is locked until it is told otherwise."""

    purpose = "policy"
    heading = "Policy"
    things = "policies"
    empty = "There is no policy yet: train one first."
    files = _MODELS
    page = ("About evaluating", EVALUATING)

    def fill_what(self, middle: QVBoxLayout) -> None:
        run = self.presenter.run
        self.about = label("", "strong", wraps=True, selectable=True)
        self.algo = self.field("algo")
        self.environment = self.listen(EnvironmentField(run, "env_id", lambda: self.presenter.environments))
        self.override = StateSwitch(run, "override")
        self.override.edited.connect(lambda: self.presenter.set_override(self.override.isChecked()))
        fill(middle, section_title("What is played"), self.about, self.algo)
        fill(middle, self.environment, self.override, self.install)
        self.listen(self.override)

    def fill_how(self, middle: QVBoxLayout) -> None:
        run = self.presenter.run
        self.fields = {one.name: self.field(one.name) for one in PLAYING}
        self.switches = {one.name: self.listen(StateSwitch(run, one.name)) for one in SWITCHES}
        self.watch = self.listen(WatchFields(run))
        fill(middle, section_title("How it is played"), PairGrid(self.fields.values()))
        fill(middle, *self.switches.values(), self.watch)
        fill(middle, folds(*self.settings(("cpus", "memory_mb", "max_minutes", "priority")), above=SPACE[1]))

    def refresh(self) -> None:
        super().refresh()
        presenter = self.presenter
        self.about.setText(presenter.about())
        self.algo.setVisible(presenter.asks_algo)
        self.environment.setEnabled(not presenter.locked)
        self.environment.refresh(presenter.about_environment())
        for name, field in self.fields.items():
            field.set_placeholder(presenter.hint(name))


class CleanRLResumeForm(ChoosingFrame[ResumeForm]):
    """Goes on from a checkpoint, with the parameters that it was trained with."""

    purpose = "resume"
    heading = "Go on from"
    things = "checkpoints"
    empty = "There is no checkpoint yet: a run writes one every 50,000 steps, and one at its end."
    files = _MODELS
    page = ("About resuming", RESUMING)

    def fill_what(self, middle: QVBoxLayout) -> None:
        self.about = label("", "strong", wraps=True, selectable=True)
        self.how = ChoiceBox()
        self.how.activated.connect(self._choose_how)
        self.extend, self.total = self.field("extend"), self.field("total_timesteps")
        self.algo, self.env_id = StateField(self.presenter.run, "algo"), self.field("env_id")
        self._unknown = side_by_side(self.algo, self.env_id)
        far = side_by_side(FieldBox("How far", self.how), self.extend, self.total)
        fill(middle, section_title("How it goes on"), self.about, self._unknown, far, self.install)
        self.algo.edited.connect(lambda: self.presenter.show_parameters())
        self.listen(self.algo)

    def fill_how(self, middle: QVBoxLayout) -> None:
        self.fields: dict[str, StateField] = {}
        self._free: QWidget = PairGrid()
        self._free_title = section_title("May differ")
        self._free_box = vbox(self._free)
        self.fixed = FactList()
        self.fixed_section = Section("Stays as it was", self.fixed)
        kept = column_of(*self.watching(), margins=(0, 0, 0, SPACE[2]), spacing=SPACE[2])
        self.watch_section = Section("Watch and keep", kept)
        folded = folds(self.fixed_section, self.watch_section, *self.settings())
        fill(middle, self._free_title, self._free_box, folded)

    def refresh(self) -> None:
        self._show_free()
        super().refresh()
        presenter = self.presenter
        how = presenter.run.said("how")
        self.about.setText(presenter.about())
        self._unknown.setVisible(presenter.asks_algo)
        self._show_hows(how)
        self.extend.setVisible(how == EXTEND)
        self.total.setVisible(how == TOTAL)
        fixed = presenter.fixed()
        self.fixed.show_facts(fixed)
        self.fixed_section.setVisible(bool(fixed))
        self.fixed_section.summarise(f"{len(fixed)} parameters of the checkpoint")
        self.watch_section.summarise(presenter.about_watch())

    def _show_hows(self, how: str) -> None:
        wanted = self.presenter.hows()
        if [self.how.itemData(at) for at in range(self.how.count())] != [key for key, _ in wanted]:
            self.how.clear()
            for key, text in wanted:
                self.how.addItem(text, key)
        self.how.setCurrentIndex(max(0, self.how.findData(how)))

    def _show_free(self) -> None:
        """The parameters that may differ belong to the checkpoint: they are made anew with it."""
        state = self.presenter.params
        if any(field.state is not state for field in self.fields.values()) or not self.fields:
            self.forget(*self.fields.values())
            self.fields = {name: self.listen(StateField(state, name)) for name in state.fields}
            fresh = PairGrid(self.fields.values(), bottom=SPACE[2])
            self._free = swap(self._free_box, self._free, fresh)
        self._free_title.setVisible(bool(self.fields))

    def _choose_how(self) -> None:
        self.presenter.run.put("how", self.how.currentData())
        self.edited()


class CleanRLScriptForm(ChoosingFrame[ScriptForm]):
    """Runs a script as a run."""

    purpose = "script"
    heading = "Script"
    things = "scripts"
    empty = "There is no script yet: name one below."
    files = "Scripts (*.sh *.py);;All files (*)"
    page = ("About scripts", SCRIPTS)

    def fill_what(self, middle: QVBoxLayout) -> None:
        self.told = FactList()
        self.env_id, self.steps = self.field("env_id"), self.field("total_timesteps")
        self.seeds, self.flags = self.field("seeds"), self.field("flags", lines=4)
        fill(middle, section_title("What its head says"), self.told, self.install)
        asked = side_by_side(self.env_id, self.steps, self.seeds)
        self.sheet = self.listen(ParameterSheetView(self.presenter.sheet))
        fill(middle, section_title("What it is told"), asked, self.flags, self.sheet)

    def fill_how(self, middle: QVBoxLayout) -> None:
        fill(middle, section_title("Watch and keep"), *self.watching())
        fill(middle, folds(*self.settings(), above=SPACE[1]))

    def refresh(self) -> None:
        super().refresh()
        presenter = self.presenter
        self.told.show_facts(presenter.told())
        self.env_id.set_placeholder(presenter.environment_hint())
        self.steps.set_placeholder(presenter.steps_hint())
        self.seeds.refresh(presenter.about_seeds(), presenter.seeds_problem())
        self.flags.refresh(problem=presenter.flags_problem())
        self.flags.setVisible(not presenter.algorithm)
        self.sheet.setVisible(bool(presenter.algorithm))
        if presenter.algorithm:
            self.sheet.show_algorithm(presenter.algorithm)
