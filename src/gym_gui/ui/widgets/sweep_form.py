"""The form that starts a sweep: what is searched, how, and the sweep file that this makes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QFileDialog, QFrame, QMenu, QPlainTextEdit, QTabBar, QWidget

from gym_gui.context import Context
from gym_gui.models.form_state import about_seeds, seeds_problem
from gym_gui.models.sweep_draft import (
    ABOUT_PRUNERS,
    ABOUT_SAMPLERS,
    SweepDraft,
)
from gym_gui.services.sweeps import Child
from gym_gui.theme import LABEL, SPACE
from gym_gui.ui.presenters.form_page import CheckReport
from gym_gui.ui.presenters.sweep_form import (
    SUFFIX,
    SweepSource,
    check_command,
    report_of,
    write_for_check,
)
from gym_gui.ui.run_actions import submit_all
from gym_gui.ui.widgets.basics import (
    Button,
    drop,
    empty,
    fill,
    hbox,
    label,
    named,
    stacked,
    vbox,
)
from gym_gui.ui.widgets.fields.layouts import ChoiceBox, FormColumns, PairGrid, ScrollColumn, side_by_side
from gym_gui.ui.widgets.fields.pickers import EnvironmentField
from gym_gui.ui.widgets.fields.state_field import FieldBox, StateField
from gym_gui.ui.widgets.fields.sweep_lines import ParamLines
from gym_gui.ui.widgets.form_frame import section_title
from gym_gui.ui.widgets.form_side import FormFooter, ResultView
from gym_gui.ui.workers import WorkerForm
from mosaic.client import RunRecord
from mosaic.contract.atomic import write_atomic
from mosaic.contract.capabilities import WorkerCapabilities
from mosaic.contract.errors import MosaicError, UserError
from mosaic.sweeps.tables import read_table
from mosaic.sweeps.toml_text import to_toml

FILE, RESULT = 0, 1
_FILES = "Sweep files (*.toml)"


class SweepSide(QFrame):
    """The sweep file as it is now, and the result of the check."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("role", "panel")
        self.tabs = QTabBar(drawBase=False, expanding=False)
        self.tabs.addTab("sweep.toml")
        self.tabs.addTab("Result of the check")
        self.text = named(QPlainTextEdit(readOnly=True), "The sweep file")
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPixelSize(LABEL)
        self.text.setFont(font)
        self.result = ResultView()
        pages = stacked(self.text, self.result)
        self.tabs.currentChanged.connect(pages.setCurrentIndex)
        margins = (SPACE[4], SPACE[2], SPACE[4], SPACE[4])
        vbox(self.tabs, (pages, 1), on=self, margins=margins, spacing=SPACE[2])


class SweepForm(WorkerForm):
    """Made in one go when its catalogs were read; checks and submits as `mosaic sweep` does."""

    ready = Signal()

    def __init__(self, context: Context, capabilities: WorkerCapabilities, prefill: dict[str, Any]) -> None:
        super().__init__(context, capabilities, prefill)
        self.setProperty("role", "page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._source: SweepSource | None = None
        self._edits = self._asked_at = 0
        self._submits = self._submitting = False
        self._path: Path | None = None
        self.report: CheckReport | None = None
        self.lines: dict[str, ParamLines] = {}
        self._chips: list[str] = []
        self._checking = Child()
        self._checking.ended.connect(self._checked)
        self._waiting = label("Reading what is installed…", "dim", wraps=True)
        self._waiting.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.footer, self.side = FormFooter(), SweepSide()
        self.footer.copy.setText("Save as…")
        self.load = Button("Open a file…", do=self._ask_file)
        self.footer.layout().insertWidget(2, self.load)  # type: ignore[union-attr]
        self.footer.submit.setText("Start the sweep")
        self._left, self._middle = ScrollColumn(), ScrollColumn()
        self._stack = stacked(self._waiting, FormColumns(self._left, self._middle, self.side))
        vbox((self._stack, 1), self.footer, on=self, spacing=0)
        self.footer.cancel.clicked.connect(self.closed)
        self.footer.check.clicked.connect(self.check)
        self.footer.submit.clicked.connect(self.submit)
        self.footer.copy.clicked.connect(self._ask_name)
        self._set_busy("Reading…")
        var = context.link.var
        context.tasks.run(lambda: SweepSource.read(var, prefill), self._open, self._not_opened)

    @property
    def source(self) -> SweepSource:
        assert self._source is not None, "the form is not ready"
        return self._source

    @property
    def draft(self) -> SweepDraft:
        return self.source.draft

    @property
    def has_changes(self) -> bool:
        return self._edits > 0

    def leave_safely(self) -> bool:
        if self._submitting:
            return False
        if self._checking.running:
            self._checking.close()
            self._forget_file()
            self._set_busy("")
        return True

    def _open(self, source: SweepSource) -> None:
        self._source = source
        self._fill()
        self._stack.setCurrentIndex(1)
        self._set_busy("")
        self._refresh()
        if source.note:
            self.context.notifications.tell(source.note, "warn")
        self.algorithm.setFocus()
        self.ready.emit()

    def _not_opened(self, error: Exception) -> None:
        self._waiting.setText(f"The form cannot be opened. {error}")
        if not isinstance(error, MosaicError):
            self.context.notifications.tell_error(error)

    def _fill(self) -> None:
        state = self.draft.state
        self.algorithm = named(ChoiceBox(), "Algorithm")
        self.algorithm.activated.connect(self._choose_algorithm)
        self._others = hbox(spacing=SPACE[0])
        self.another = Button("and another one…", role="quiet-link", do=self._offer_algorithms)
        self.fields: dict[str, StateField] = {}
        self.environment = EnvironmentField(
            state, "env_id", lambda: self.source.environments(self.draft.algos[0])
        )
        self.environment.edited.connect(self._edited)
        pair = partial(self._pair, state)
        left = self._left.column
        fill(left, section_title("What is searched"), FieldBox("Algorithm", self.algorithm))
        fill(left, hbox(self._others, self.another, 1), self.environment)
        fill(left, pair("total_timesteps", "seeds"))
        fill(left, section_title("How much"), pair("trials", "parallel"), pair("max_minutes", "name"))
        self._objective_title = section_title("Objective")
        self._objective = PairGrid()
        for name in ("metric", "direction", "take", "points", "over_seeds"):
            self._objective.add(self._field(state, name), wide=name == "metric")
        self._objective_note = label("The file has several objectives: they are kept.", "help", wraps=True)
        fill(left, self._objective_title, self._objective, self._objective_note)
        fill(left, section_title("Search"), pair("sampler", "pruner"))
        left.addStretch(1)
        self._lines_box = vbox(spacing=SPACE[3])
        self._middle.column.addLayout(self._lines_box)
        self._middle.column.addStretch(1)

    def _field(self, state: Any, name: str) -> StateField:
        made = self.fields[name] = StateField(state, name)
        made.edited.connect(self._edited)
        return made

    def _pair(self, state: Any, one: str, other: str) -> QWidget:
        return side_by_side(self._field(state, one), self._field(state, other))

    # What is chosen

    def _choose_algorithm(self) -> None:
        self.draft.choose(self.algorithm.currentText())
        self._edited()

    def _offer_algorithms(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for algo in self.source.others(self.draft):
            menu.addAction(algo).triggered.connect(partial(self.add_algorithm, algo))
        menu.popup(self.another.mapToGlobal(self.another.rect().bottomLeft()))

    def add_algorithm(self, algo: str, *_: object) -> None:
        """Search this one, too: the sampler chooses between them."""
        self.draft.add(algo)
        self._edited()

    def _drop_algorithm(self, algo: str) -> None:
        self.draft.drop(algo)
        self._edited()

    def _edited(self, *_: object) -> None:
        """What was checked before holds no longer."""
        self._edits += 1
        self.report = None
        self.side.result.mark_old()
        self._refresh()

    def _refresh(self) -> None:
        draft = self.draft
        with QSignalBlocker(self.algorithm):
            known = self.source.algorithms
            listed = known if draft.algos[0] in known else [draft.algos[0], *known]
            if [self.algorithm.itemText(at) for at in range(self.algorithm.count())] != listed:
                self.algorithm.clear()
                self.algorithm.addItems(listed)
            self.algorithm.setCurrentText(draft.algos[0])
        self._show_others()
        for name, field in self.fields.items():
            field.refresh()
            about = {"sampler": ABOUT_SAMPLERS, "pruner": ABOUT_PRUNERS}.get(name)
            if about is not None:
                field.refresh(about.get(draft.state.said(name), ""))
        seeds = draft.state.text("seeds")
        self.fields["seeds"].refresh(f"{about_seeds(seeds)} in every trial", seeds_problem(seeds))
        self.fields["total_timesteps"].set_placeholder(self._usual_steps())
        choice = self.source.environments(draft.algos[0]).find(draft.state.said("env_id"))
        self.environment.refresh(choice.about if choice else "", choice.misfit if choice else "")
        for name in ("trials", "sampler", "pruner"):
            self.fields[name].setEnabled(not draft.is_population)
        self._objective.setVisible(not draft.several)
        self._objective_note.setVisible(draft.several)
        self._show_lines()
        self._show_file()
        self._show_state()

    def _usual_steps(self) -> str:
        source = self.source.sources.get(self.draft.algos[0])
        usual = source.catalog.default_timesteps(self.draft.algos[0]) if source else None
        return f"{usual:,}" if usual else "the algorithm's default"

    def _show_others(self) -> None:
        others = self.draft.algos[1:]
        if others == self._chips:
            return
        self._chips = others
        empty(self._others)
        for algo in others:
            chip = Button(f"{algo} ✕", role="chip", do=partial(self._drop_algorithm, algo))
            self._others.addWidget(named(chip, f"Do not search {algo}"))

    def _show_lines(self) -> None:
        """Of each algorithm that is searched its lines; those that were there stay as they are."""
        draft, several = self.draft, len(self.draft.algos) > 1
        wanted = {f"{algo}:{several}": algo for algo in draft.algos}
        for key in [key for key in self.lines if key not in wanted]:
            drop(self.lines.pop(key))
        for place, (key, algo) in enumerate(wanted.items()):
            if key not in self.lines:
                made = ParamLines(draft, algo, self.source.parameters(algo), several)
                made.edited.connect(self._edited)
                self.lines[key] = made
            self._lines_box.insertWidget(place, self.lines[key])

    def _show_file(self) -> None:
        try:
            text = to_toml(self.draft.table())
        except UserError as error:
            text = f"# {error}\n"
        if text != self.side.text.toPlainText():
            bar = self.side.text.verticalScrollBar()
            place = bar.value()
            self.side.text.setPlainText(text)
            bar.setValue(place)

    def _show_state(self) -> None:
        problems = self.draft.problems()
        if self.report is not None and self.report.ok:
            self.footer.tell("✓ Checked", self.report.headline, "good")
        elif self.report is not None:
            self.footer.tell("✗ Not yet", self.report.sentence.partition("\n")[0], "error")
        elif problems:
            self.footer.tell("Not yet", problems[0], "warn")
        else:
            runs = self.draft.runs()
            what = f"at most {runs:,} runs; " if runs else ""
            self.footer.tell("", f"{what}not checked yet; the button checks first", "dim")

    # What is done

    def check(self) -> None:
        """Have `mosaic sweep --dry-run` look at it; nothing is started."""
        self._begin_check(submits=False)

    def submit(self) -> None:
        """Check, and if all is right start the sweep."""
        self._begin_check(submits=True)

    def _begin_check(self, submits: bool) -> None:
        if self._checking.running or self._submitting or self._source is None:
            return
        try:
            text = to_toml(self.draft.table())
        except UserError as error:
            self._show_report(CheckReport(False, "something is wrong", str(error)))
            return
        self._submits, self._asked_at = submits, self._edits
        self._set_busy("Checking both ends of every range…")
        self.context.tasks.run(lambda: write_for_check(text), self._start_check, self._fail)

    def _start_check(self, path: Path) -> None:
        self._path = path
        self._checking.start(check_command(path))

    def _checked(self, code: int, out: str, err: str) -> None:
        path = str(self._path)
        self._forget_file()
        self._set_busy("")
        report = report_of(code, out, err.replace(path, "sweep.toml"))
        same = self._asked_at == self._edits
        self._show_report(report, same)
        if report.ok and same and self._submits:
            self._submitting = True
            self._set_busy("Submitting…")
            link = self.context.link
            self.context.tasks.run(
                lambda: submit_all(link.client(), report.configs), self._submitted, self._fail
            )

    def _show_report(self, report: CheckReport, same: bool = True) -> None:
        self.report = report if same else None
        self.side.result.show_report(report)
        if not same:
            self.side.result.mark_old()
        self.side.tabs.setCurrentIndex(RESULT)
        self._show_state()

    def _submitted(self, runs: list[RunRecord]) -> None:
        self._submitting = False
        self._set_busy("")
        self.submitted.emit(runs)

    def _fail(self, error: Exception) -> None:
        self._submitting = False
        self._set_busy("")
        if not isinstance(error, MosaicError):
            self.context.notifications.tell_error(error)
        self._show_report(CheckReport(False, "something is wrong", str(error)))

    def _forget_file(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None

    def _set_busy(self, text: str) -> None:
        self.footer.set_busy(bool(text))
        self.load.setEnabled(not text)
        for column in (self._left, self._middle):
            column.setEnabled(not self._submitting)
        if text:
            self.footer.tell("", text, "dim")
        elif self._source is not None:
            self._show_state()

    # Files

    def _ask_file(self) -> None:
        asked, _ = QFileDialog.getOpenFileName(self.window(), "Open a sweep file", "", _FILES)
        if asked:
            self.open_file(Path(asked))

    def open_file(self, path: Path) -> None:
        """Fill the form with a sweep file."""
        self.context.tasks.run(lambda: read_table(path), partial(self._take_file, path), owner=self)

    def _take_file(self, path: Path, table: dict[str, Any]) -> None:
        try:
            self.draft.take(table)
        except UserError as error:
            self.context.notifications.tell(f"{path.name}: {error}", "bad")
            return
        self._make_anew()
        self.context.notifications.tell(f"{path.name} is in the form.", "good")

    def _make_anew(self) -> None:
        """The draft is another one: so are the fields."""
        for column in (self._left.column, self._middle.column):
            _clear(column)
        self.lines, self._chips = {}, []
        self._fill()
        self._edited()

    def _ask_name(self) -> None:
        asked, _ = QFileDialog.getSaveFileName(self.window(), "Save the sweep file", "sweep.toml", _FILES)
        if asked:
            path = Path(asked)
            self.save(path if path.suffix else path.with_suffix(SUFFIX))

    def save(self, path: Path) -> None:
        """Write the sweep file, for `mosaic sweep FILE` or for later."""
        try:
            text = to_toml(self.draft.table())
        except UserError as error:
            self._show_report(CheckReport(False, "something is wrong", str(error)))
            return
        told = partial(self.context.notifications.tell, f"Saved {path}.", "good")
        self.context.tasks.run(lambda: write_atomic(path, text.encode()), lambda _: told(), owner=self)


def _clear(column: Any) -> None:
    """Take everything out of a column, boxes within boxes too."""
    while (item := column.takeAt(0)) is not None:
        if item.widget() is not None:
            drop(item.widget())
        elif item.layout() is not None:
            _clear(item.layout())
            item.layout().deleteLater()
