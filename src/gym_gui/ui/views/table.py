"""All runs in a table, over the whole window: sorted, filtered, and acted upon many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QMenu

from gym_gui.context import Context
from gym_gui.models.filters import RunFilter
from gym_gui.models.listing import Listing
from gym_gui.models.run_table import COLUMNS, USUAL, RunTable
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.window import doable_with, for_all
from gym_gui.ui.run_actions import RunActions
from gym_gui.ui.views.base import View
from gym_gui.ui.widgets.basics import Button, hbox, label, line, stacked, vbox
from gym_gui.ui.widgets.hub_cards import PushCard
from gym_gui.ui.widgets.run_header import Confirm, LabelCard, run_menu
from gym_gui.ui.widgets.run_panel import RunFilterBar
from gym_gui.ui.widgets.run_table import RunTableModel, RunTableView
from mosaic.client import RunRecord

_KEPT = "table"
_ROOMY = 1100


class TableView(View):
    """A book as a table. While nobody looks it does nothing, and catches up when it is entered."""

    closed = Signal()
    opened = Signal(str)
    """The run to show by itself."""
    filter_changed = Signal(object)
    """Before the table follows it."""
    compare_wanted = Signal()
    order_changed = Signal()
    """Other runs come first now."""
    chosen_changed = Signal(int)
    """How many runs are chosen now."""

    def __init__(self, context: Context, actions: RunActions, listing: Listing) -> None:
        """`listing` counts the runs of each state; whoever has it gives it the filter of the table."""
        super().__init__(context)
        self.setProperty("role", "page")
        self._actions = actions
        self._listing = listing
        self._counts: Mapping[str, int] | None = None
        self._busy = False
        self.table = RunTable(context.runs)
        self.model = RunTableModel(self.table)
        self.view = RunTableView(self.model)
        self.filtering = RunFilterBar(in_a_row=True)
        self.confirm, self.label_card, self.push_card = Confirm(), LabelCard(), PushCard()
        self._asked: list[str] = []
        """The runs that the question or the card is about."""
        self.info = label("", "dim")
        self.columns = Button("Columns")
        self.back = Button("List", "Ctrl+L")
        self.label = self._button("Tag…", "label", shortcut="F2")
        self.pausing = self._button("Pause", "pause")
        self.cancel = self._button("Cancel", "cancel", "danger")
        self.remove = self._button("Remove", "remove", "danger", "Ctrl+Delete")
        self._none = label("", "dim", wraps=True)
        self._pages = stacked(self.view, self._none)
        self._lay_out()
        self._restore()
        self._connect()

    def _lay_out(self) -> None:
        edge = (SPACE[3], SPACE[2], SPACE[3], 0)
        first = hbox((self.filtering, 1), self.columns, self.back, margins=edge, spacing=SPACE[2])
        edge = (SPACE[3], SPACE[1], SPACE[3], SPACE[1] + 2)
        second = hbox((self.info, 1), self.label, self.pausing, self.cancel, self.remove, margins=edge)
        asking = vbox(self.confirm, self.label_card, self.push_card, margins=(SPACE[3], 0, SPACE[3], 0))
        self._none.setContentsMargins(SPACE[3], SPACE[3], SPACE[3], SPACE[3])
        self._none.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        vbox(first, second, asking, line(), (self._pages, 1), on=self, spacing=0)

    def _connect(self) -> None:
        self.filtering.changed.connect(self._filter)
        self.back.clicked.connect(self.closed)
        self.columns.clicked.connect(
            lambda: self._choose_columns(self.columns.mapToGlobal(QPoint(0, self.columns.height() + 4)))
        )
        self.view.columns_wanted.connect(self._choose_columns)
        self.view.opened.connect(self.opened)
        self.view.sorted.connect(self.order_changed)
        self.view.chosen_changed.connect(self._show_chosen)
        self.view.menu_wanted.connect(self._open_menu)
        self.model.dropped.connect(self._actions.reorder)
        self.confirm.confirmed.connect(lambda name: self._do(name, self._known(self._asked)))
        self.label_card.saved.connect(
            lambda before, after: self._actions.label(self._known(self._asked), before, after)
        )
        self.push_card.wanted.connect(self._push)

    def enter(self) -> None:
        """Show the runs as they are now."""
        super().enter()
        self.model.look_again()
        self.view.fit_columns()
        self._show_counts()
        self.view.setFocus()

    def leave(self) -> None:
        super().leave()
        self.confirm.hide()
        self.label_card.hide()
        self.push_card.hide()
        chosen = {"columns": list(self.table.chosen), "differing": self.table.with_differing}
        sorting = {"sorted_by": self.table.sorted_by, "descending": self.table.descending}
        self.context.settings.set(_KEPT, {**chosen, **sorting})

    def close_view(self) -> None:
        if self._visible:
            self.leave()

    def update_groups(self, groups: set[str]) -> None:
        """These groups of the book are new, changed or gone."""
        if self._visible:
            self.model.update(groups)
            self._show_counts()

    def look_again(self) -> None:
        if self._visible:
            self.model.look_again()

    def chosen(self) -> list[RunRecord]:
        """The runs of the chosen rows."""
        return self._known(self.view.chosen_ids())

    def _known(self, run_ids: Iterable[str]) -> list[RunRecord]:
        return [run for run in map(self.context.runs.get, run_ids) if run is not None]

    def ask(self, name: str) -> None:
        """Do something with the chosen runs, after a question where it cannot be undone."""
        runs = self.chosen()
        if not runs:
            return
        # An answer is about the runs that were chosen when it was asked for.
        self._asked = [run.run_id for run in runs]
        can = doable_with(runs)
        if name == "open":
            self.opened.emit(runs[0].run_id)
        elif name == "compare":
            self.compare_wanted.emit()
        elif name == "label":
            self.confirm.hide()
            self.label_card.ask(runs)
        elif name == "push":
            self._actions.ask_push(runs[0], self.push_card)
        elif name in ("cancel", "remove"):
            self.label_card.hide()
            count = can.cancels if name == "cancel" else can.removes
            self.confirm.ask(name, count, len(runs) - count, begun=count > can.waits)
        elif name == "pause" and can.pausing == "Resume":
            self._do("go_on", runs)
        else:
            self._do(name, runs)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.back.set_compact(self.width() < _ROOMY)

    def _do(self, name: str, runs: list[RunRecord]) -> None:
        if runs:
            self._actions.do(name, runs[0], runs)

    def _push(self, to: str, private: bool) -> None:
        for run in self._known(self._asked):
            self._actions.push(run, to, private)

    def _filter(self) -> None:
        self.filter_changed.emit(self.filtering.filter)
        self.model.set_filter(self.filtering.filter)
        self.view.show_sorting()
        self.order_changed.emit()
        self._show_counts()

    def show_known(self, last: str | None, counts: Mapping[str, int] | None, busy: bool) -> None:
        """Where not all runs are known: see `RunPanel.show_known`."""
        self._counts, self._busy = counts, busy
        if self._visible:
            self.model.set_reach(last)
            self._show_counts()
            self.view.look()

    def _show_counts(self) -> None:
        self.filtering.show_counts(self._counts or self._listing.counts())
        self._pages.setCurrentIndex(int(self.model.rowCount() == 0))
        problem = self.filtering.filter.problem
        every = self.filtering.filter == RunFilter()
        fits = "Searching all runs…" if self._busy else "No run matches this filter."
        self._none.setText("No runs yet." if every else problem or fits)
        self._show_chosen()

    def _show_chosen(self) -> None:
        runs = self.chosen()
        can = doable_with(runs)
        shown = self.model.rowCount()
        chosen = f" · {len(runs):,} chosen" if runs else ""
        waiting = self.table.sorted_by == "queue" and shown > 1
        hint = " · drag waiting runs to change their order" if waiting and not runs else ""
        total = (self._counts or {}).get(self.filtering.filter.state, shown)
        known = f"{shown:,} of {total:,}" if total > shown else f"{shown:,}"
        self.info.setText(f"{known} run{'s' * (total != 1)}{chosen}{hint}")
        self.label.setEnabled(bool(runs))
        for button, word, count in (
            (self.pausing, can.pausing or "Pause", can.pauses),
            (self.cancel, "Cancel", can.cancels),
            (self.remove, "Remove", can.removes),
        ):
            button.setText(for_all(word, count))
            button.setEnabled(count > 0)
        self.chosen_changed.emit(len(runs))

    def _open_menu(self, at: QPoint) -> None:
        runs = self.chosen()
        run_menu(self, runs, len(runs), self.ask).popup(at)

    def _choose_columns(self, at: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        differing = menu.addAction("Settings that differ")
        differing.setCheckable(True)
        differing.setChecked(self.table.with_differing)
        differing.toggled.connect(lambda on: self.model.set_columns(self.table.chosen, on))
        menu.addSeparator()
        for column in COLUMNS:
            entry = menu.addAction(column.title)
            entry.setCheckable(True)
            entry.setChecked(column.key in self.table.chosen)
            entry.toggled.connect(lambda on, key=column.key: self._show_column(key, on))
        menu.popup(at)

    def _show_column(self, key: str, shown: bool) -> None:
        others = [one for one in self.table.chosen if one != key]
        self.model.set_columns([*others, *([key] if shown else [])], self.table.with_differing)

    def _restore(self) -> None:
        kept = self.context.settings.get(_KEPT) or {}
        self.table.set_columns(kept.get("columns") or USUAL, bool(kept.get("differing", True)))
        sorted_by = str(kept.get("sorted_by", "date"))
        # The order of the queue is for those that wait, whom nobody asks for yet.
        if sorted_by != "queue":
            self.table.sort(sorted_by, bool(kept.get("descending", True)))

    def _button(self, text: str, name: str, role: str | None = None, shortcut: str | None = None) -> Button:
        made = Button(text, shortcut, role, do=lambda: self.ask(name))
        made.set_compact(True)
        return made
