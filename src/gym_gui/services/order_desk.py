"""Checks what a form asks for, then submits it, beside the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from gym_gui.context import Context
from gym_gui.models.requirements import Requirement
from gym_gui.services.submitting import submit_all
from gym_gui.ui.presenters.form import Order
from gym_gui.ui.presenters.form_check import CheckReport, check_order
from gym_gui.ui.presenters.form_command import command_of
from mosaic.client import RunRecord
from mosaic.contract.capabilities import WorkerCatalog
from mosaic.contract.errors import MosaicError


class OrderDesk(QObject):
    """One order at a time: while `busy` says what is being done, no other is taken."""

    busy_changed = Signal(str)
    """What is being done, in words; empty when nothing is."""
    checked = Signal(object)
    """The CheckReport of the order that was checked last."""
    submitted = Signal(object)
    """The RunRecords of the runs that were submitted."""
    command_written = Signal(str, str)
    """The command for the order, and what has to be said about it."""
    refused = Signal(str)
    """Why the daemon did not take the runs, or the check itself failed."""

    def __init__(self, context: Context, catalog: WorkerCatalog, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._context, self._catalog = context, catalog
        self._busy = ""
        self.submitting = False

    @property
    def busy(self) -> str:
        return self._busy

    def check(self, order: Order, missing: Sequence[Requirement] = (), speed: float | None = None) -> None:
        """Check an order, no more."""
        self._run(order, missing, speed, self._tell_checked)

    def submit(self, order: Order, missing: Sequence[Requirement] = (), speed: float | None = None) -> None:
        """Check an order; when it is right it goes to the daemon at once."""
        self._run(order, missing, speed, self._submit_checked)

    def write_command(self, order: Order, missing: Sequence[Requirement] = ()) -> None:
        """Check an order; when it is right, tell the command that asks for the same."""
        self._run(order, missing, None, self._write_checked)

    def _run(
        self,
        order: Order,
        missing: Sequence[Requirement],
        speed: float | None,
        done: Callable[[CheckReport], None],
    ) -> None:
        if self._busy:
            return
        self._set_busy("Checking…")
        self._context.tasks.run(
            lambda: check_order(order, self._catalog, missing, speed), done, self._fail, owner=self
        )

    def _tell_checked(self, report: CheckReport) -> None:
        self._set_busy("")
        self.checked.emit(report)

    def _write_checked(self, report: CheckReport) -> None:
        self._tell_checked(report)
        if report.ok:
            try:
                self.command_written.emit(*command_of(report.configs))
            except MosaicError as error:
                self.refused.emit(str(error))

    def _submit_checked(self, report: CheckReport) -> None:
        self._tell_checked(report)
        if not report.ok:
            return
        self.submitting = True
        self._set_busy("Submitting…")
        link = self._context.link
        self._context.tasks.run(
            lambda: submit_all(link.client(), report.configs), self._tell_submitted, self._fail, owner=self
        )

    def _tell_submitted(self, runs: list[RunRecord]) -> None:
        self._set_busy("")
        self.submitted.emit(runs)

    def _fail(self, error: Exception) -> None:
        self._set_busy("")
        if not isinstance(error, MosaicError):
            self._context.notifications.tell_error(error)
        self.refused.emit(str(error))

    def _set_busy(self, text: str) -> None:
        self._busy = text
        self.submitting = self.submitting and bool(text)
        self.busy_changed.emit(text)
