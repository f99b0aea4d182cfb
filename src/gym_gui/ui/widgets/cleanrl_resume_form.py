"""The resume form: checkpoints that were found, and how far to go on from one."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtWidgets import QVBoxLayout, QWidget

from gym_gui.theme import SPACE
from gym_gui.ui.presenters.form_page import RESUMING
from gym_gui.ui.presenters.resume_form import EXTEND, TOTAL, ResumeForm
from gym_gui.ui.widgets.basics import label
from gym_gui.ui.widgets.fields.layouts import ChoiceBox, FactList, PairGrid, Section, folds, side_by_side
from gym_gui.ui.widgets.fields.pickers import SourcePicker
from gym_gui.ui.widgets.fields.state_field import FieldBox, StateField
from gym_gui.ui.widgets.form_frame import MODEL_FILES, ChoosingFrame, section_title
from gym_gui.ui.widgets.form_settings import NamingSection, ResourcesSection, TrackingFields, WatchFields


class CleanRLResumeForm(ChoosingFrame[ResumeForm]):
    """Goes on from a checkpoint, with the parameters that it was trained with."""

    purpose = "resume"

    def fill(self, left: QVBoxLayout, middle: QVBoxLayout) -> Iterator[None]:
        presenter, run = self.presenter, self.presenter.run
        picker = SourcePicker(
            "Another one",
            run.fields["checkpoint"].help,
            presenter.found.rows,
            "There is no checkpoint yet: a run writes one every 50,000 steps, and one at its end.",
            MODEL_FILES,
            "Search checkpoints",
        )
        self.fill_source(left, "Go on from", picker)
        yield
        self._fill_how(middle)
        yield
        self._fill_parameters(middle)
        yield
        self.side.name_about("About resuming")
        self.side.about.show_page(RESUMING)

    def _fill_how(self, middle: QVBoxLayout) -> None:
        run = self.presenter.run
        self.about = label("", "strong", wraps=True, selectable=True)
        self.how = ChoiceBox()
        self.how.activated.connect(self._choose_how)
        self.how_box = FieldBox("How far", self.how)
        self.extend, self.total = StateField(run, "extend"), StateField(run, "total_timesteps")
        self.algo, self.env_id = StateField(run, "algo"), StateField(run, "env_id")
        self._unknown = side_by_side(self.algo, self.env_id)
        middle.addWidget(section_title("How it goes on"))
        middle.addWidget(self.about)
        middle.addWidget(self._unknown)
        middle.addWidget(side_by_side(self.how_box, self.extend, self.total))
        middle.addWidget(self.install)
        self.listen(self.extend, self.total, self.env_id)
        self.algo.edited.connect(self._name_algorithm)

    def _fill_parameters(self, middle: QVBoxLayout) -> None:
        run = self.presenter.run
        self.fields: dict[str, StateField] = {}
        self._free = PairGrid()
        self._free_title = section_title("May differ")
        self._free_box = QVBoxLayout()
        self._free_box.addWidget(self._free)
        self.fixed = FactList()
        self.fixed_section = Section("Stays as it was", lambda: self.fixed)
        self.watch, self.tracking = WatchFields(run), TrackingFields(run)
        self.resources, self.naming = ResourcesSection(run), NamingSection(run)
        self.watch_section = Section("Watch and keep", self._make_watch)
        middle.addWidget(self._free_title)
        middle.addLayout(self._free_box)
        middle.addLayout(folds(self.fixed_section, self.watch_section, self.resources, self.naming))
        self.listen(self.watch, self.tracking, self.resources, self.naming)

    def _make_watch(self) -> QWidget:
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, SPACE[2])
        column.setSpacing(SPACE[2])
        column.addWidget(self.watch)
        column.addWidget(self.tracking)
        return body

    def refresh(self) -> None:
        presenter = self.presenter
        facts, how = presenter.facts, presenter.run.said("how")
        chosen = facts.path if facts else ""
        named = presenter.run.said("checkpoint")
        self.source_picker.show_chosen(chosen, named, presenter.trouble)
        self.about.setText(presenter.about())
        self._unknown.setVisible(presenter.asks_what_it_is)
        self._show_hows(how)
        self.extend.setVisible(how == EXTEND)
        self.total.setVisible(how == TOTAL)
        for field in (self.extend, self.total, self.algo, self.env_id):
            field.refresh()
        self._show_free()
        self.fixed.show_facts(presenter.fixed())
        self.fixed_section.setVisible(bool(presenter.fixed()))
        self.fixed_section.summarise(f"{len(presenter.fixed())} parameters of the checkpoint")
        self.watch_section.summarise(presenter.about_watch())
        for part in (self.watch, self.tracking, self.resources, self.naming):
            part.refresh()

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
            self.fields = {name: StateField(state, name) for name in state.fields}
            for field in self.fields.values():
                self.listen(field)
            fresh = PairGrid(self.fields.values(), bottom=SPACE[2])
            self._free_box.replaceWidget(self._free, fresh)
            self._free.hide()
            self._free.deleteLater()
            self._free = fresh
        for field in self.fields.values():
            field.refresh()
        self._free_title.setVisible(bool(self.fields))

    def _choose_how(self) -> None:
        self.presenter.run.put("how", self.how.currentData())
        self.edited()

    def _name_algorithm(self) -> None:
        self.presenter.show_parameters()
        self.edited()
