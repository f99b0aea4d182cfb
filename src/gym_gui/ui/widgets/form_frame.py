"""What all forms are: three columns and a foot, opened, checked and submitted without stopping the window."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar, cast

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gym_gui.context import Context
from gym_gui.models.command_line import command_of
from gym_gui.models.form_choices import installed_sets
from gym_gui.models.run_settings import about_naming, about_resources
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.form import ChoosingForm, FormPresenter
from gym_gui.ui.presenters.form_page import AlgorithmPage, CheckReport, check_order
from gym_gui.ui.run_actions import submit_all
from gym_gui.ui.widgets.basics import drop, fill, label, stacked, vbox
from gym_gui.ui.widgets.fields.layouts import FormColumns, ScrollColumn
from gym_gui.ui.widgets.fields.pickers import SourcePicker
from gym_gui.ui.widgets.fields.state_field import (
    NAMING,
    RESOURCES,
    SettingsSection,
    StateField,
    StateSwitch,
    TrackingFields,
    WatchFields,
)
from gym_gui.ui.widgets.form_install import InstallCard
from gym_gui.ui.widgets.form_side import RESULT, FormFooter, FormSide
from gym_gui.ui.widgets.run_header import Confirm
from gym_gui.ui.workers import WorkerForm, presenter_for
from mosaic.client import RunRecord
from mosaic.contract.capabilities import WorkerCapabilities
from mosaic.contract.errors import MosaicError

P = TypeVar("P", bound=FormPresenter)
W = TypeVar("W", bound=Any)
_OF_A_STATE = (StateField, StateSwitch, WatchFields, TrackingFields, SettingsSection)
Then = Callable[[CheckReport], None]
"""What is done with an order that was found right."""
C = TypeVar("C", bound=ChoosingForm[Any])


class FormFrame(WorkerForm, Generic[P]):
    """A form around its presenter, which is read beside the window; `ready` tells when it can be used."""

    purpose: ClassVar[str]
    ready = Signal()

    def __init__(self, context: Context, capabilities: WorkerCapabilities, prefill: dict[str, Any]) -> None:
        super().__init__(context, capabilities, prefill)
        self.setProperty("role", "page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.report: CheckReport | None = None
        self._presenter: P | None = None
        self._filled = False
        self._shown: list[Any] = []
        self._edits = self._asked_at = 0
        self._then: Then = lambda _: None
        self.busy = ""
        """What is being done with an order, in words; while something is, no other order is taken."""
        self._submitting = False
        self._waiting = label("Reading what is installed…", "dim", wraps=True)
        self._waiting.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.footer, self.side = FormFooter(), FormSide(context.notifications)
        self.install = InstallCard(self)
        self.question = Confirm()
        self._left, self._middle = ScrollColumn(), ScrollColumn()
        self._stack = stacked(self._waiting, FormColumns(self._left, self._middle, self.side))
        vbox((self._stack, 1), self.question, self.footer, on=self, spacing=0)
        self.footer.set_busy(True)
        self.footer.cancel.clicked.connect(self.closed)
        self.footer.submit.clicked.connect(self.submit)
        self.footer.check.clicked.connect(self.check)
        self.footer.copy.clicked.connect(self.copy_command)
        self.question.confirmed.connect(self._trust)
        self.install.ended.connect(self._installed)
        var = context.link.var
        context.tasks.run(
            lambda: presenter_for(capabilities, var).form(self.purpose, prefill), self._open, self._not_opened
        )

    @property
    def presenter(self) -> P:
        assert self._presenter is not None, "the form is not ready"
        return self._presenter

    @abstractmethod
    def fill(self, left: QVBoxLayout, middle: QVBoxLayout) -> Iterator[None]:
        """Make the fields of the presenter, a part at a time: between two of them the window goes on."""

    def refresh(self) -> None:
        """Show what the presenter says now."""
        for part in self._shown:
            part.refresh()

    def watching(self) -> tuple[QWidget, QWidget]:
        """The fields of what can be watched while the run lives, and of where its curves go."""
        self.watch = self.listen(WatchFields(self.presenter.run))
        self.tracking = self.listen(TrackingFields(self.presenter.run))
        return self.watch, self.tracking

    def settings(self, resources: Sequence[str] = RESOURCES) -> tuple[QWidget, QWidget]:
        """The sections that every form ends with: resources, and name and notes."""
        run = self.presenter.run
        self.resources = self.listen(SettingsSection("Resources", run, resources, about_resources))
        self.naming = self.listen(SettingsSection("Name and notes", run, NAMING, about_naming))
        return self.resources, self.naming

    def edited(self, *_: object) -> None:
        """Somebody has changed something: what was checked before holds no longer."""
        self.report = None
        self._edits += 1
        if self._filled:
            self.side.result.mark_old()
            self.refresh()
            self._show_state()

    @property
    def has_changes(self) -> bool:
        return self._edits > 0

    def field(self, name: str, lines: int = 1) -> StateField:
        """A field of the run, which the form listens to."""
        return self.listen(StateField(self.presenter.run, name, lines=lines))

    def listen(self, part: W) -> W:
        """Take what is `edited` in a part as a change of the form; a part of a state follows it, too."""
        part.edited.connect(self.edited)
        if isinstance(part, _OF_A_STATE):
            self._shown.append(part)
        return part

    def forget(self, *parts: QWidget) -> None:
        """Take parts out of the form."""
        self._shown = [part for part in self._shown if part not in parts]
        for part in parts:
            drop(part)

    def leave_safely(self) -> bool:
        if self.install.running:
            stop = ("Stop it", self.install.stop)
            self.context.notifications.tell("Packages are being installed: wait for that.", "warn", stop)
            return False
        return not self._submitting

    def _open(self, presenter: FormPresenter) -> None:
        self._presenter = cast(P, presenter)
        self._parts = self.fill(self._left.column, self._middle.column)
        self._stack.setCurrentIndex(1)
        self._fill_part()

    def _fill_part(self) -> None:
        try:
            next(self._parts)
        except StopIteration:
            self._finish()
        else:
            QTimer.singleShot(0, self, self._fill_part)

    def _finish(self) -> None:
        # Takes what is left over, unless a list in the column wants all of it.
        self._left.column.addStretch(0)
        self._middle.column.addStretch(0)
        self._filled = True
        self.footer.set_busy(False)
        self.refresh()
        self._show_state()
        fields = self._left.findChildren(QWidget)
        tabbed = [one for one in fields if one.focusPolicy() & Qt.FocusPolicy.TabFocus and not one.isHidden()]
        if tabbed:
            tabbed[0].setFocus()
        self.ready.emit()

    def _not_opened(self, error: Exception) -> None:
        self._waiting.setText(f"The form cannot be opened. {error}")
        if not isinstance(error, MosaicError):
            self.context.notifications.tell_error(error)

    def check(self) -> None:
        """Ask the worker whether this can run; nothing is started."""
        self._order(lambda _: None)

    def submit(self) -> None:
        """Check, and if all is right start the runs."""
        self._order(self._submit)

    def copy_command(self) -> None:
        """Put the command that asks for the same on the clipboard."""
        self._order(self._copy)

    def _order(self, then: Then) -> None:
        if self.busy:
            return
        try:
            order = self.presenter.order()
        except MosaicError as error:
            self._show_refusal(str(error))
            return
        self._asked_at, self._then = self._edits, then
        self.question.hide()
        speed = self.presenter.speed(self.context.runs)
        catalog, missing = self.presenter.source.catalog, self.presenter.missing()
        self._set_busy("Checking…")
        self.context.tasks.run(
            lambda: check_order(order, catalog, missing, speed), self._take_report, self._fail
        )

    def _take_report(self, report: CheckReport) -> None:
        self._set_busy("")
        # What was changed while the worker was asked is not what it has answered to.
        self.report = report if self._asked_at == self._edits else None
        self.side.result.show_report(report)
        if self.report is None:
            self.side.result.mark_old()
        self.side.tabs.setCurrentIndex(RESULT)
        self._show_state()
        if self.report is not None and self.report.untrusted:
            module = self.report.untrusted
            text = f"The file has '{module}' imported, which runs its code. Do you know and trust it?"
            self.question.put(module, text, f"Import {module}", "No")
        if report.ok:
            self._then(report)

    def _submit(self, report: CheckReport) -> None:
        self._submitting = True
        self._set_busy("Submitting…")
        link = self.context.link
        self.context.tasks.run(lambda: submit_all(link.client(), report.configs), self._submitted, self._fail)

    def _submitted(self, runs: list[RunRecord]) -> None:
        self._set_busy("")
        self.submitted.emit(runs)

    def _copy(self, report: CheckReport) -> None:
        try:
            command, note = command_of(report.configs)
        except MosaicError as error:
            self._show_refusal(str(error))
            return
        QGuiApplication.clipboard().setText(command)
        self.context.notifications.tell(f"The command is on the clipboard. {note}".strip(), "good")

    def _fail(self, error: Exception) -> None:
        self._set_busy("")
        if not isinstance(error, MosaicError):
            self.context.notifications.tell_error(error)
        self._show_refusal(str(error))

    def _trust(self, module: str) -> None:
        self.presenter.trust(module)
        self.edited()
        self._order(self._then)

    def _show_refusal(self, text: str) -> None:
        self.side.result.show_problem(text)
        self.side.tabs.setCurrentIndex(RESULT)
        self.footer.tell("✗ Not yet", text, "error")

    def _set_busy(self, text: str) -> None:
        self.busy = text
        self._submitting = self._submitting and bool(text)
        for column in (self._left, self._middle):
            column.setEnabled(not self._submitting)
        self.footer.set_busy(bool(text))
        if text:
            self.footer.tell("", text, "dim")

    def _show_state(self) -> None:
        self.footer.submit.setText(self.presenter.primary())
        missing = self.presenter.missing()
        self.install.offer(missing)
        problems = self.presenter.problems()
        if self.report is not None and self.report.ok:
            self.footer.tell("✓ Checked", self.report.headline, "good")
        elif self.report is not None:
            self.footer.tell("✗ Not yet", self.report.sentence or self.report.headline, "error")
        elif problems:
            self.footer.tell("Not yet", problems[0], "warn")
        elif missing:
            self.footer.tell("Missing", ", ".join(one.name for one in missing), "warn")
        else:
            self.footer.tell("", "Not checked yet; the button checks first", "dim")

    def _installed(self, good: bool, text: str) -> None:
        self.context.notifications.tell(text, "good" if good else "bad")
        self.context.tasks.run(installed_sets, self._take_installed)

    def _take_installed(self, installed: dict[str, bool]) -> None:
        self.presenter.take_installed(installed)
        self.edited()


def section_title(text: str) -> QWidget:
    """The heading of a part of a column."""
    made = label(text.upper(), "section")
    made.setContentsMargins(0, SPACE[0], 0, 0)
    return made


class ChoosingFrame(FormFrame[C]):
    """A form about one thing in a file, whose left column is a list of those that were found."""

    heading: ClassVar[str]
    things: ClassVar[str]
    """What can be searched for."""
    empty: ClassVar[str]
    """What is said in place of a list without rows."""
    files: ClassVar[str]
    """The filter of the dialog that opens a file."""
    page: ClassVar[tuple[str, AlgorithmPage]]
    """What stands beside the form, with its title."""

    def fill(self, left: QVBoxLayout, middle: QVBoxLayout) -> Iterator[None]:
        self._asked = ""
        self.reading = False
        """Whether what was named is being read."""
        self._later: Then | None = None
        """What is to be done with the form as soon as it has been."""
        presenter = self.presenter
        self.source_picker = SourcePicker(
            presenter.run.fields[presenter.key].help,
            presenter.rows,
            self.empty,
            self.files,
            f"Search {self.things}",
        )
        self.source_picker.chosen.connect(self.choose)
        fill(left, section_title(self.heading), (self.source_picker, 1))
        yield
        self.fill_what(middle)
        yield
        self.fill_how(middle)
        yield
        self.side.name_about(self.page[0])
        self.side.about.show_page(self.page[1])

    @abstractmethod
    def fill_what(self, middle: QVBoxLayout) -> None:
        """Make the fields about what was chosen."""

    @abstractmethod
    def fill_how(self, middle: QVBoxLayout) -> None:
        """Make the fields about how it is run."""

    def refresh(self) -> None:
        super().refresh()
        presenter = self.presenter
        named = presenter.run.said(presenter.key)
        self.source_picker.show_chosen(presenter.chosen(), named, presenter.trouble)

    def choose(self, named: str) -> None:
        """Read what was named, and make the form about it."""
        self._asked, self.reading = named, True
        presenter = self.presenter

        def read() -> tuple[str, Any]:
            return named, presenter.read(named)

        self.context.tasks.run(read, self._take, lambda error: self._refuse(named, error), owner=self)

    def _take(self, read: tuple[str, Any]) -> None:
        named, found = read
        if named == self._asked:
            self.presenter.take(found)
            self._settled()

    def _refuse(self, named: str, error: Exception) -> None:
        if named == self._asked:
            self.presenter.refuse(str(error))
            self._settled()

    def _settled(self) -> None:
        self.reading = False
        self.edited()
        then, self._later = self._later, None
        if then is not None:
            super()._order(then)

    def _order(self, then: Then) -> None:
        """What stands in the field is meant, also when its reading has only begun."""
        self.source_picker.settle()
        if self.reading:
            self._later = then
        else:
            super()._order(then)
