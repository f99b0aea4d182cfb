"""What may lie over the runs: a worker's form, a comparison, or an environment played by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCursor, QKeyEvent
from PySide6.QtWidgets import QMenu, QStackedWidget, QWidget

from gym_gui.context import Context
from gym_gui.ui.run_page import RunPage
from gym_gui.ui.views.compare import CompareView
from gym_gui.ui.views.play_by_hand import HandView
from gym_gui.ui.views.table import TableView
from gym_gui.ui.widgets.basics import drop
from gym_gui.ui.workers import FoundForm, WorkerForm, load_forms
from mosaic.client import RunRecord
from mosaic.contract.capabilities import WorkerCapabilities

HAND = "hand"
"""The purpose that has no form of a worker: playing by hand."""


class Cover(QStackedWidget):
    """The runs, with at most one thing over them. While they are covered their view rests."""

    submitted = Signal(object)
    """The runs that a form has submitted."""

    def __init__(self, context: Context, runs: QWidget, page: RunPage) -> None:
        super().__init__()
        self._context = context
        self._runs = runs
        self._page = page
        self.form: WorkerForm | None = None
        self.left_forms: dict[type[WorkerForm], WorkerForm] = {}
        """Of each kind the form that was closed last with changes in it; it can be had back."""
        self.comparison: CompareView | None = None
        self._under: QWidget | None = None
        """What was shown before somebody began to play by hand."""
        self.hand: HandView | None = None
        """The page for playing by hand, made when it is first asked for."""
        self.table: TableView | None = None
        """The table of all runs, while it stands in the place of list and page."""
        self.addWidget(runs)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc that nobody else wanted goes back to the runs."""
        if event.key() != Qt.Key.Key_Escape:
            super().keyPressEvent(event)
        elif self.plays:
            self._uncover_hand()
        elif self.table is not None and self.currentWidget() is self.table:
            self.table.closed.emit()
        else:
            self.uncover()

    def open_form(self, purpose: str, prefill: dict[str, Any]) -> None:
        """Load the forms for a purpose beside the window, then show one; `hand` needs no worker."""
        if purpose == HAND:
            self._play_by_hand(prefill)
            return
        named = self._context.runs.get(str(prefill.get("run_id", "")))
        self._context.tasks.run(
            lambda: load_forms(purpose, named.worker_type if named else None),
            lambda forms: self._choose(forms, prefill),
            owner=self,
        )

    def _play_by_hand(self, prefill: dict[str, Any]) -> None:
        """Let the person play over whatever is shown, which is there again afterwards."""
        if self.hand is None:
            self.hand = HandView(self._context)
            self.hand.closed.connect(self._uncover_hand)
        self.hand.offer(prefill)
        if not self.plays:
            self._under = self.currentWidget()
            self._put_over(self.hand)
            self.hand.enter()

    def _choose(self, forms: list[FoundForm], prefill: dict[str, Any]) -> None:
        if len(forms) == 1:
            self._show_form(*forms[0], prefill)
            return
        menu = QMenu(self)
        for worker, kind in forms:
            action = menu.addAction(worker.display_name)
            action.triggered.connect(
                lambda _=False, worker=worker, kind=kind: self._show_form(worker, kind, prefill)
            )
        menu.popup(QCursor.pos())

    def _show_form(self, worker: WorkerCapabilities, kind: type[WorkerForm], prefill: dict[str, Any]) -> None:
        if not prefill and self._has_kept(kind):
            anew = ("Start over", lambda: self._begin_anew(worker, kind))
            self._context.notifications.tell("The form still has the changes you made in it.", action=anew)
        elif self._drop_form():
            self._make_form(worker, kind, prefill)

    def _begin_anew(self, worker: WorkerCapabilities, kind: type[WorkerForm]) -> None:
        """A form of this kind without the changes of the one that is open."""
        if self._drop_form(done=type(self.form) is kind):
            self._make_form(worker, kind, {})

    def _make_form(self, worker: WorkerCapabilities, kind: type[WorkerForm], prefill: dict[str, Any]) -> None:
        form = kind(self._context, worker, prefill)
        form.submitted.connect(self._submitted)
        form.closed.connect(self.uncover)
        self._put_form(form)

    def _put_form(self, form: WorkerForm) -> None:
        self.drop_comparison()
        self.form = form
        self._put_over(form)

    def _has_kept(self, kind: type[WorkerForm]) -> bool:
        """Show the form of a kind that has changes in it, if there is one: open, or closed before."""
        if type(self.form) is kind and self.form.has_changes:
            self.form.setFocus()
            return True
        return self._show_left(kind)

    def _show_left(self, kind: type[WorkerForm]) -> bool:
        """The form as it was left; False when there is none, or what is open has to stay."""
        form = self.left_forms.pop(kind, None)
        if form is None:
            return False
        if not self._drop_form():
            self.left_forms[kind] = form
            return False
        self._put_form(form)
        return True

    def _submitted(self, runs: Sequence[RunRecord]) -> None:
        self.uncover(done=True)
        self.submitted.emit(list(runs))

    def compare(self, runs: Sequence[RunRecord]) -> None:
        """Show several runs side by side."""
        if len(runs) < 2 or not self._drop_form():
            return
        if self.comparison is None:
            self.comparison = CompareView(self._context)
            self.comparison.closed.connect(self.uncover)
        self._put_over(self.comparison)
        self.comparison.show_runs(list(runs))
        self.comparison.enter()

    def update_runs(self, records: Sequence[RunRecord]) -> None:
        """Some runs have news."""
        if self.comparison is not None:
            self.comparison.update_runs(records)

    def uncover(self, done: bool = False) -> None:
        """Show the runs again, unless the form has to stay; one that is not `done` can be had back."""
        if self.currentWidget() in (self._runs, self.table) or not self._drop_form(done):
            return
        self.drop_comparison()
        self._show_runs()

    @property
    def plays(self) -> bool:
        """Whether somebody is at the page for playing by hand."""
        return self.hand is not None and self.currentWidget() is self.hand

    def _uncover_hand(self) -> None:
        """Show again what the person was at before they played."""
        under = self._under
        if under is None or under in (self._runs, self.table) or self.indexOf(under) < 0:
            self._show_runs()
        else:
            self._put_over(under)

    def show_table(self, table: TableView | None) -> None:
        """Put the table in the place of list and page, or take it away."""
        if table is self.table:
            return
        if self.table is not None:
            self.table.leave()
        self.table = table
        if self.form is None and self.comparison is None:
            self._show_runs()

    def _show_runs(self) -> None:
        if self.table is None:
            self.setCurrentWidget(self._runs)
            self._page.set_covered(False)
        else:
            self._put_over(self.table)
            self.table.enter()

    def may_close(self) -> bool:
        """Whether the window may go; the form that is open ends what it has under way."""
        return self.form is None or self.form.leave_safely()

    def setCurrentWidget(self, widget: QWidget) -> None:
        """As of any stack; whoever plays by hand ends that when something else is shown."""
        if self.hand is not None and self.plays and widget is not self.hand:
            self.hand.leave()
        super().setCurrentWidget(widget)

    def _put_over(self, widget: QWidget) -> None:
        self._page.set_covered(True)
        if self.indexOf(widget) < 0:
            self.addWidget(widget)
        self.setCurrentWidget(widget)
        widget.setFocus()

    def _drop_form(self, done: bool = False) -> bool:
        if self.form is None:
            return True
        if not self.form.leave_safely():
            return False
        form, self.form = self.form, None
        self.removeWidget(form)
        form.hide()
        if done or not form.has_changes:
            form.deleteLater()
            return True
        kind = type(form)
        if kind in self.left_forms:
            self.left_forms[kind].deleteLater()
        self.left_forms[kind] = form
        back = ("Open it again", lambda: self._show_left(kind))
        self._context.notifications.tell("The form was closed with changes in it.", action=back)
        return True

    def close_views(self) -> None:
        """For good: nothing may stay running."""
        self.drop_comparison()
        if self.hand is not None:
            self.hand.close_view()

    def drop_comparison(self) -> None:
        """End the comparison, if there is one."""
        if self.comparison is not None:
            self.comparison.close_view()
            self.removeWidget(self.comparison)
            drop(self.comparison)
            self.comparison = None
