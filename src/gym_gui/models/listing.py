"""What the run list shows now: which rows, in which order, how high, and how many there are of each state."""

from __future__ import annotations

from collections.abc import Iterable

from gym_gui.models.filters import STATES, RunFilter, in_state
from gym_gui.models.run_rows import Row, Shape, child_row, group_row, shape_of
from gym_gui.models.runs import RunBook, RunGroup

_NONE = (0,) * len(STATES)


class Listing:
    """The rows for a filter. What has not changed is not looked at again: thousands of runs cost little."""

    def __init__(self, book: RunBook) -> None:
        self._book = book
        self._filter = RunFilter()
        self._opened: set[str] = set()
        self._tallies: dict[str, tuple[int, ...]] = {}
        """For each group how many of the runs that the words of the filter find are in each of `STATES`."""
        self._counts = list(_NONE)
        self._rows: dict[str, Row] = {}
        self._shapes: dict[str, Shape] = {}
        self._reach: str | None = None
        self.keys: list[str] = []
        """Of the rows; that of a run within a group has a `/`."""

    @property
    def filter(self) -> RunFilter:
        return self._filter

    def set_filter(self, wanted: RunFilter) -> None:
        """Show other runs."""
        reads_anew = wanted.text != self._filter.text
        self._filter = wanted
        if reads_anew:
            self._find_words()
        self._lay_out()

    def set_reach(self, last: str | None) -> None:
        """Not all runs are known: what is older than this one has gaps, and is not shown."""
        if last != self._reach:
            self._reach = last
            self._lay_out()

    def look_again(self) -> None:
        """Something that conditions may ask for is known now."""
        self._find_words()
        self._lay_out()

    def set_opened(self, key: str, opened: bool) -> None:
        """Show the runs of a group, or the group alone."""
        if opened:
            self._opened.add(key)
        else:
            self._opened.discard(key)
        self._rows.pop(key, None)
        self._lay_out()

    def update(self, changed: Iterable[str]) -> set[str]:
        """These groups are new, changed or gone; gives the keys of rows that look different now."""
        stale = set()
        moved = False
        for key in changed:
            moved |= self._take_tally(key) or key in self._opened
            for row in (key, *(self._children(key) if key in self._opened else ())):
                self._rows.pop(row, None)
                self._shapes.pop(row, None)
                stale.add(row)
        if moved:
            self._lay_out()
        return stale

    def row(self, key: str) -> Row | None:
        """What stands in a row; None when its run has just gone."""
        row = self._rows.get(key)
        if row is None:
            group, run_id = self._find(key)
            if group is not None:
                row = self._rows[key] = self._make(group, key, run_id)
        return row

    def shape(self, key: str) -> Shape:
        """How much room a row needs; known without putting it into words."""
        shape = self._shapes.get(key)
        if shape is None:
            group, run_id = self._find(key)
            if group is None:
                return Shape.PLAIN
            runs = [group.runs[run_id]] if run_id else list(group.runs.values())
            shape = self._shapes[key] = shape_of(runs)
        return shape

    def counts(self) -> dict[str, int]:
        """How many runs are in each state, of those that the words find."""
        return dict(zip(STATES, self._counts, strict=True))

    def group_key_of(self, run_id: str) -> str | None:
        """The row of a run's group."""
        group = self._book.group_of(run_id)
        return group.key if group else None

    def key_of(self, run_id: str) -> str | None:
        """The row of a run: its own where its group is opened, else its group's."""
        group = self._book.group_of(run_id)
        if group is None:
            return None
        own = f"{group.key}/{run_id}"
        return own if group.key in self._opened and len(group.runs) > 1 else group.key

    def _find(self, key: str) -> tuple[RunGroup | None, str]:
        group_key, _, run_id = key.partition("/")
        group = self._book.group(group_key)
        return (None, "") if group is None or (run_id and run_id not in group.runs) else (group, run_id)

    def _make(self, group: RunGroup, key: str, run_id: str) -> Row:
        if run_id:
            return child_row(group, group.runs[run_id], self._book.get)
        return group_row(group, key in self._opened, self._book.get)

    def _take_tally(self, key: str) -> bool:
        """Look at a group again; gives whether the rows are others now."""
        old, new = self._tallies.pop(key, _NONE), self._tally(key)
        if new != _NONE:
            self._tallies[key] = new
        self._counts = [count - gone + come for count, gone, come in zip(self._counts, old, new, strict=True)]
        place = STATES.index(self._filter.state)
        return bool(old[place]) != bool(new[place])

    def _find_words(self) -> None:
        """Look through all groups for other words."""
        tallies = ((key, self._tally(key)) for key in self._book.group_keys())
        self._tallies = {key: tally for key, tally in tallies if tally != _NONE}
        self._counts = [sum(counts) for counts in zip(*self._tallies.values(), strict=True)] or list(_NONE)

    def _tally(self, key: str) -> tuple[int, ...]:
        group = self._book.group(key)
        if group is None:
            return _NONE
        found = [run for run in group.runs.values() if self._book.finds(self._filter, run)]
        return tuple(sum(in_state(run, state) for run in found) for state in STATES) if found else _NONE

    def _lay_out(self) -> None:
        place, tallies, opened = STATES.index(self._filter.state), self._tallies, self._opened
        keys = [key for key in self._book.group_keys() if tallies.get(key, _NONE)[place]]
        if self._reach is not None:
            keys = [key for key in keys if key >= self._reach]
        if opened:
            keys = [row for key in keys for row in (key, *(self._children(key) if key in opened else ()))]
        self.keys = keys

    def _children(self, key: str) -> list[str]:
        group = self._book.group(key)
        if group is None or len(group.runs) < 2:
            return []
        return [f"{key}/{run_id}" for run_id in group.runs]
