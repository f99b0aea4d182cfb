"""The left side: a filter, the states with their counts, and the runs."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QFrame, QWidget

from gym_gui.models.filters import HINT, STATES, RunFilter
from gym_gui.models.listing import Listing
from gym_gui.models.runs import RunBook
from gym_gui.services.sparklines import Sparklines
from gym_gui.services.tasks import timer
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import (
    Button,
    column_of,
    hbox,
    label,
    line,
    named,
    restyle,
    search_field,
    stacked,
    vbox,
)
from gym_gui.ui.widgets.run_list import RunList, RunListModel
from mosaic.client import RunRecord

_TYPING_MS = 150
_TOOLTIP = f"""{HINT}

All must hold. = is an exact match (* for any characters), : means contains; !=, >, >=, <, <= as usual.
Names: name, algo, env, tag, seed, state, notes, id, return, steps, speed, episodes, progress, duration, age,
priority, and every parameter. Numbers may be 10k or 2.5M, times 5min, 2h or 1d. Put "two words" in quotes."""
PANEL_WIDTH = 316


class RunFilterBar(QWidget):
    """The filter as a person sets it; `changed` comes a moment after the last letter."""

    changed = Signal()

    def __init__(self, in_a_row: bool = False) -> None:
        super().__init__()
        self.field = search_field("Filter: words, algo=ppo, return>400…", "Filter runs")
        self.field.setToolTip(_TOOLTIP)
        self._typing = timer(self, _TYPING_MS, self.apply, once=True)
        self.field.textChanged.connect(self._typing.start)
        self.chips: dict[str, Button] = {}
        group = QButtonGroup(self)
        for state in STATES:
            chip = Button(state.capitalize(), role="chip", do=self.apply, checkable=True)
            chip.setChecked(state == "all")
            group.addButton(chip)
            self.chips[state] = chip
        self.star = named(Button("★"), "Saved filters")
        self.star.setToolTip("Saved filters")
        self.row = hbox((self.field, 1), self.star)
        chips = hbox(*self.chips.values(), 1, spacing=SPACE[0])
        lines = (hbox((self.row, 1), chips, spacing=SPACE[2]),) if in_a_row else (self.row, chips)
        self._column = vbox(*lines, on=self, spacing=SPACE[1] + 2)

    def put_below(self, card: QWidget) -> None:
        """Let something that is asked about the filter stand under it."""
        self._column.addWidget(card)

    @property
    def filter(self) -> RunFilter:
        state = next(state for state, chip in self.chips.items() if chip.isChecked())
        return RunFilter(state, self.field.text())

    def set_filter(self, wanted: RunFilter) -> None:
        """Show a filter, and apply it when it is another."""
        if wanted != self.filter:
            self.field.setText(wanted.text)
            self.chips[wanted.state].setChecked(True)
            self.apply()

    def apply(self) -> None:
        """Now, without waiting for more letters."""
        self._typing.stop()
        restyle(self.field, invalid="true" if self.filter.problem else "false")
        self.changed.emit()

    def show_counts(self, counts: Mapping[str, int]) -> None:
        for state, chip in self.chips.items():
            # Where there is none the word alone, and its neighbours have the room.
            chip.setText(f"{state.capitalize()} {counts[state]:,}" if counts[state] else state.capitalize())


class RunPanel(QFrame):
    """Runs newest first. It shows a book; whoever changes the book calls `update_groups`."""

    def __init__(self, book: RunBook, sparklines: Sparklines) -> None:
        super().__init__()
        self.setProperty("role", "side")
        self._book = book
        self.model = RunListModel(Listing(book))
        self.list = RunList(self.model, book, sparklines)
        self.filtering = RunFilterBar()
        self.filtering.changed.connect(self._apply)
        self.field, self.chips = self.filtering.field, self.filtering.chips
        self.table = Button("Table", "Ctrl+L")
        self.table.set_compact(True)
        self.table.setToolTip("All runs in a table, to sort and to choose columns  Ctrl L")
        self.filtering.row.addWidget(self.table)
        self._known = False
        self._counts: Mapping[str, int] | None = None
        self._busy = False
        self._none_text = label("", "dim", wraps=True)
        self.clear = Button("Show all runs", role="link", do=self.show_all)
        link = (self.clear, 0, Qt.AlignmentFlag.AlignLeft)
        nothing = column_of(self._none_text, link, 1, margins=(SPACE[3], SPACE[4], SPACE[3], SPACE[3]))
        self._pages = stacked(self.list, nothing)
        head = vbox(self.filtering, margins=(SPACE[2], SPACE[2], SPACE[2], SPACE[1] + 2))
        vbox(head, line(), (self._pages, 1), on=self, spacing=0)
        self._show_counts()

    def show_all(self) -> None:
        """Take the filter away."""
        self.filtering.set_filter(RunFilter())

    def update_groups(self, groups: set[str]) -> None:
        """These groups of the book are new, changed or gone; from the first call on the runs are known."""
        self._known = True
        self.model.update(groups)
        self._show_counts()

    def select(self, run_id: str) -> None:
        """Mark a run; a filter that hides it is taken away."""
        if self.model.place(self.model.listing.key_of(run_id)) is None and not self._shows_all():
            self.show_all()
        self.list.select(run_id)

    @property
    def several(self) -> bool:
        """Whether more than one row is marked."""
        return len(self.list.chosen_rows()) > 1

    def marked_runs(self) -> list[RunRecord]:
        """The runs of all marked rows."""
        return [run for run_id in self.list.chosen_ids() if (run := self._book.get(run_id)) is not None]

    def stands_for_group(self, run_id: str) -> bool:
        """Whether the row of a run is that of its whole group."""
        return "/" not in (self.model.listing.key_of(run_id) or "")

    def _shows_all(self) -> bool:
        return self.filtering.filter == RunFilter()

    def look_again(self) -> None:
        """Something that conditions may ask for is known now."""
        self.model.look_again()
        self._show_counts()

    def _apply(self) -> None:
        self.model.set_filter(self.filtering.filter)
        self._show_counts()

    def show_known(self, last: str | None, counts: Mapping[str, int] | None, busy: bool) -> None:
        """Where not all runs are known: up to which the list has no gaps, how many there are of each state,
        and whether others are being looked for."""
        self._counts, self._busy = counts, busy
        self.model.set_reach(last)
        self._show_counts()

    def _show_counts(self) -> None:
        self.filtering.show_counts(self._counts or self.model.listing.counts())
        empty = self.model.rowCount() == 0
        self._pages.setCurrentIndex(int(empty))
        if empty:
            nothing = "No runs yet." if self._known else "Waiting for the daemon…"
            problem = self.filtering.filter.problem
            fits = "Searching all runs…" if self._busy else "No run matches this filter."
            self._none_text.setText(nothing if self._shows_all() else problem or fits)
            self.clear.setVisible(not self._shows_all())
