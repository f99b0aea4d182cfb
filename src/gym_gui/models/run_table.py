"""The table of runs: which columns, which rows, in which order. It knows no Qt."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gym_gui.models import words
from gym_gui.models.compare import Cell
from gym_gui.models.filters import NUMBERS, TEXTS, RunFilter, elapsed, in_state
from gym_gui.models.runs import RunBook
from mosaic.client import RunRecord

_MOST_DIFFERING = 12
_TELL_THEMSELVES = frozenset({"seed", "algo", "env_id", "worker"})
"""Settings that have a column of their own."""
USUAL = ("name", "tag", "algo", "env", "seed", "state", "return", "steps", "speed", "date", "duration")
_NUMBER_TEXTS: dict[str, Callable[[float], str]] = {
    "return": words.number,
    "steps": words.steps,
    "speed": words.steps,
    "episodes": words.steps,
    "duration": words.duration,
}

_Rank = tuple[tuple[int, float, str], tuple[float, str]]
"""What a column says of a run's place, and where that decides nothing its age."""


@dataclass(frozen=True)
class Column:
    """A column; `number` when its values stand at the right and are sorted by size."""

    key: str
    title: str
    number: bool = False
    setting: bool = False
    """Whether it is a parameter or another setting of the runs."""


COLUMNS = (
    Column("name", "Name"),
    Column("tag", "Tags"),
    Column("algo", "Algorithm"),
    Column("env", "Environment"),
    Column("seed", "Seed", True),
    Column("state", "State"),
    Column("return", "Return", True),
    Column("steps", "Steps", True),
    Column("speed", "Steps/s", True),
    Column("date", "Submitted"),
    Column("duration", "Duration", True),
    Column("queue", "Queue", True),
    Column("priority", "Priority", True),
    Column("episodes", "Episodes", True),
    Column("notes", "Notes"),
    Column("id", "Id"),
)
_BY_KEY = {column.key: column for column in COLUMNS}


class RunTable:
    """Rows are runs. New values leave the order as it is, so that no row moves away under the mouse: it is
    sorted when somebody asks for it, and a run that comes is put in its place."""

    def __init__(self, book: RunBook) -> None:
        self._book = book
        self.filter = RunFilter()
        self.chosen: tuple[str, ...] = USUAL
        self.with_differing = True
        self.sorted_by, self.descending = "date", True
        self.reach: str | None = None
        """Not all runs are known: what comes after this one has gaps, and is not shown."""
        self.ids: list[str] = []
        self.columns: list[Column] = []
        self._cells: dict[str, dict[str, Cell]] = {}
        self._settings: dict[str, dict[str, str]] = {}
        self._places: dict[str, int] = {}

    def set_filter(self, wanted: RunFilter) -> None:
        """Show other runs; those that wait stand in the order of the queue."""
        if wanted.state == "waiting" != self.filter.state:
            self.sorted_by, self.descending = "queue", False
        elif self.sorted_by == "queue" and wanted.state != "waiting" == self.filter.state:
            self.sorted_by, self.descending = "date", True
        self.filter = wanted
        self.look_again(anew=False)

    def set_columns(self, chosen: Iterable[str], with_differing: bool) -> None:
        """Show these columns; `with_differing` those of the settings in which the runs differ as well."""
        wanted = set(chosen)
        self.chosen = tuple(column.key for column in COLUMNS if column.key in wanted)
        self.with_differing = with_differing
        self._choose_columns()

    def sort(self, key: str, descending: bool) -> None:
        self.sorted_by, self.descending = key, descending
        self._sort()

    def look_again(self, anew: bool = True) -> None:
        """Find and sort all runs; `anew` when what is known of their settings may have changed."""
        if anew:
            self._cells.clear()
            self._settings.clear()
        self._count_queue()
        self.ids = [run.run_id for run in self._book if self._wants(run)]
        self._sort()
        self._choose_columns()

    def update(self, groups: Iterable[str]) -> list[str]:
        """These groups of the book have news; gives the runs whose cells look different now."""
        stale: list[str] = []
        shown, come = set(self.ids), list[RunRecord]()
        gone = {run_id for run_id in self.ids if self._book.get(run_id) is None}
        self._count_queue()
        for key in groups:
            group = self._book.group(key)
            if group is None:
                self._settings.pop(key, None)
                continue
            for run in group.runs.values():
                self._cells.pop(run.run_id, None)
                stale.append(run.run_id)
                if run.run_id in shown:
                    gone |= set() if self._wants(run) else {run.run_id}
                elif self._wants(run):
                    come.append(run)
        if gone:
            self.ids = [run_id for run_id in self.ids if run_id not in gone]
            for run_id in gone:
                self._cells.pop(run_id, None)
        if come:
            self._insert(come)
            self._cut()
        if gone or come:
            self._choose_columns()
        if self.sorted_by == "queue":
            self._sort()
        return stale

    def cell(self, run_id: str, key: str) -> Cell:
        """What stands in a row under a column."""
        cells = self._cells.setdefault(run_id, {})
        if key not in cells:
            run = self._book.get(run_id)
            cells[key] = Cell("") if run is None else self._make(run, key)
        return cells[key]

    def run(self, run_id: str) -> RunRecord | None:
        return self._book.get(run_id)

    def queue(self) -> list[str]:
        """All runs that wait, the first to start first."""
        return sorted(self._places, key=self._places.__getitem__)

    def _wants(self, run: RunRecord) -> bool:
        return in_state(run, self.filter.state) and self._book.finds(self.filter, run)

    def _count_queue(self) -> None:
        self._places = {run_id: place for place, run_id in enumerate(self._book.queue(), 1)}

    def _value(self, run: RunRecord, key: str) -> Any:
        if key == "queue":
            return self._places.get(run.run_id)
        if key == "date":
            return run.submitted_at
        known = TEXTS.get(key) or NUMBERS.get(key)
        return known(run) if known is not None else self._book.settings(run).get(key)

    def _rank(self, run: RunRecord) -> tuple[int, float, str]:
        """Numbers by size, then words by letters; what is not known comes last either way."""
        value = self._value(run, self.sorted_by)
        if value is None or value == "":
            return (9 if not self.descending else -1), 0.0, ""
        if isinstance(value, int | float):
            return 0, float(value), ""
        return 1, 0.0, str(value).lower()

    def _sort(self) -> None:
        # The newest first, where the column says nothing else.
        runs = sorted((run for run_id in self.ids if (run := self._book.get(run_id))), key=_newest)
        runs.sort(key=self._rank, reverse=self.descending)
        self.ids = [run.run_id for run in runs]
        self._cut()

    def _cut(self) -> None:
        if self.reach is not None and self.reach in self.ids:
            del self.ids[self.ids.index(self.reach) + 1 :]

    def _insert(self, come: Iterable[RunRecord]) -> None:
        """Put runs in their places. The others are looked at once, however many come."""
        known = {run_id: run for run_id in self.ids if (run := self._book.get(run_id))}
        ranks = [(self._rank(run), _newest(run)) if (run := known.get(one)) else None for one in self.ids]
        for run in come:
            own = (self._rank(run), _newest(run))
            places = (at for at, theirs in enumerate(ranks) if theirs and self._is_after(theirs, own))
            place = next(places, len(ranks))
            self.ids.insert(place, run.run_id)
            ranks.insert(place, own)

    def _is_after(self, theirs: _Rank, own: _Rank) -> bool:
        if theirs[0] == own[0]:
            return theirs[1] > own[1]
        return theirs[0] < own[0] if self.descending else theirs[0] > own[0]

    def _choose_columns(self) -> None:
        fixed = [_BY_KEY[key] for key in self.chosen]
        if self.sorted_by == "queue" and "queue" not in self.chosen:
            fixed.insert(0, _BY_KEY["queue"])
        # What was tried stands beside what came of it.
        place = next((at for at, one in enumerate(fixed, 1) if one.key == "return"), len(fixed))
        self.columns = [*fixed[:place], *(self._differing() if self.with_differing else ()), *fixed[place:]]

    def _differing(self) -> list[Column]:
        """The settings that are not the same in all runs of one algorithm."""
        seen: dict[str, dict[str, str]] = {}
        found: set[str] = set()
        for key in dict.fromkeys(group.key for run_id in self.ids if (group := self._book.group_of(run_id))):
            settings = self._group_settings(key)
            known = seen.setdefault(settings.get("algo", ""), {})
            # Most are alike, so that little is left to look at.
            for name, text in settings.items() - known.items():
                if name in known:
                    found.add(name)
                else:
                    known[name] = text
        named = sorted(found - _TELL_THEMSELVES)[:_MOST_DIFFERING]
        return [Column(name, name, self._is_number(name), setting=True) for name in named]

    def _group_settings(self, key: str) -> dict[str, str]:
        """The settings of a group as text, to tell them apart."""
        if key not in self._settings:
            group = self._book.group(key)
            settings = self._book.settings(group.first) if group is not None else {}
            self._settings[key] = {name: repr(value) for name, value in settings.items()}
        return self._settings[key]

    def _is_number(self, name: str) -> bool:
        runs = filter(None, map(self._book.get, self.ids))
        values = (self._book.settings(run).get(name) for run in runs)
        first = next((value for value in values if value is not None), None)
        return isinstance(first, int | float) and not isinstance(first, bool)

    def _make(self, run: RunRecord, key: str) -> Cell:
        value = self._value(run, key)
        if key == "state":
            state = words.state_of(run)
            return Cell(state.word, state.role)
        if key == "name":
            own = words.own_name(run)
            return Cell(own) if own else Cell(words.short_id(run.run_id), "faint")
        if key == "tag":
            return Cell(words.tags_text(run.tags), "dim")
        if key == "date":
            return Cell(words.clock(run.submitted_at), "dim")
        if key == "duration":
            return Cell(words.duration(elapsed(run, time.time())) if run.started_at else "")
        if value is None or value == "":
            return Cell(words.NONE if key in ("return", "steps", "speed") else "", "faint")
        if key in _NUMBER_TEXTS:
            return Cell(_NUMBER_TEXTS[key](float(value)))
        if key in TEXTS or key in NUMBERS or key == "queue":
            return Cell(str(value), "dim" if key in ("notes", "id") else "text")
        return Cell(_setting_text(value), "faint" if self._book.is_default(run, key) else "text")


def _newest(run: RunRecord) -> tuple[float, str]:
    return -run.submitted_at, run.run_id


def _setting_text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and abs(value) >= 10_000:
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value, default=str)


def before_in_queue(queue: Sequence[str], moved: Sequence[str], target: str | None) -> list[tuple[str, str]]:
    """The moves, each a run and the one that it is put right before, that bring runs to a place in the queue.

    Without a `target` they go to the end: there the last of the others is put back before them.
    """
    others = [run_id for run_id in queue if run_id not in moved]
    going = [run_id for run_id in queue if run_id in moved]
    if not others or not going:
        return []
    if target is None or target not in others:
        return [*((run_id, others[-1]) for run_id in going), (others[-1], going[0])]
    return [(run_id, target) for run_id in going]
