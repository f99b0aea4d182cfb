"""What the run list shows now: which rows, in which order and words, and how many there are of each state."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from gym_gui.models import words
from gym_gui.models.filters import STATES, RunFilter, in_state
from gym_gui.models.runs import RunBook, RunGroup
from gym_gui.models.words import State, is_evaluation, is_sweep, state_of, title_of, trial_number
from mosaic.client import RunRecord

_RUN_ID = re.compile(r"\b(?:run |runs )?([0-9A-HJKMNP-TV-Z]{26})\b")
# Of several runs together the one furthest to the left gives its state.
_ORDER = (
    "Waiting for space",
    "Stalled",
    "Running",
    "Starting",
    "Restarting",
    "Paused",
    "Waiting",
    "Failed",
    "Timed out",
    "Cancelled",
    "Completed",
)
_MOVING = frozenset({"Waiting for space", "Running", "Starting", "Restarting", "Paused"})
_EXPLAINED = frozenset({"Waiting", "Restarting", "Stalled", "Failed", "Timed out"})
_STOPPED = frozenset({"Failed", "Timed out", "Cancelled"})

Finder = Callable[[str], RunRecord | None]
_NONE = (0,) * len(STATES)


class Shape(IntEnum):
    """What stands under the two lines that every row has: nothing, a bar of progress, or a sentence."""

    PLAIN = 0
    BAR = 1
    REASON = 2


@dataclass(frozen=True)
class Row:
    """One row: a group, or a run of an opened group."""

    key: str
    run_ids: tuple[str, ...]
    """The runs that it stands for; the first is the one to show."""
    title: str
    about: str
    """What a run with a name of its own is."""
    value: str
    state: State
    detail: str
    progress: float | None
    reason: str
    child: bool = False
    opened: bool | None = None
    """None for a row that cannot be opened."""
    count: int = 1
    """How many runs are within."""

    @property
    def run_id(self) -> str:
        return self.run_ids[0]


def shape_of(runs: Sequence[RunRecord]) -> Shape:
    """The shape of the row of these runs, without putting it into words."""
    state = overall_state(runs)
    if state.word in _EXPLAINED and any(why(run) and state_of(run) == state for run in runs):
        return Shape.REASON
    return Shape.BAR if state.word in _MOVING and progress_of(runs) is not None else Shape.PLAIN


def row_of(group: RunGroup, run: RunRecord | None, opened: bool, find: Finder) -> Row:
    """The row of a group, which of one run is that run's; with `run` that of one within the group."""
    if group.is_sweep:
        return _row_of_sweep(group, run, opened, find)
    everyone = list(group.runs.values())
    name, shared = _name_of(everyone), shared_tags(everyone)
    runs, first = (everyone, group.first) if run is None else ([run], run)
    state = overall_state(runs)
    if run is None:
        kind = words.kind_of(first)
        title, about = (name, kind) if name else (kind, "")
        detail, tags = detail_text(runs, state), shared
    else:
        seed = words.seeds_text([run.worker_config.get("seed")])
        title = words.sentence(seed) or words.short_id(run.run_id)
        about = "" if name else words.own_name(run)
        detail, tags = _how_far(runs, state), [tag for tag in run.tags if tag not in shared]
    return Row(
        key=group.key if run is None else f"{group.key}/{run.run_id}",
        run_ids=(first.run_id, *(one.run_id for one in runs if one is not first)),
        title=title,
        about=about,
        value=value_text(runs),
        state=state,
        detail=" · ".join(filter(None, (detail, words.tags_text(tags)))),
        progress=progress_of(runs) if state.word in _MOVING else None,
        reason=reason_text(runs, state, find),
        child=run is not None,
        opened=opened if len(runs) > 1 else None,
        count=len(runs),
    )


def _row_of_sweep(group: RunGroup, run: RunRecord | None, opened: bool, find: Finder) -> Row:
    """The row of a sweep, which tells of its trials in sum, or that of one of its runs."""
    runs, within = ([run], 0) if run is not None else (group.told, len(group.within))
    first, state = runs[0], overall_state(runs)
    if run is not None:
        number, seed = trial_number(run), words.seeds_text([run.worker_config.get("seed")])
        title, about = (run.run_name if number is None else f"Trial {number}"), seed
        detail = _how_far(runs, state)
    elif is_sweep(first):
        title, about, detail = title_of(first), "", sweep_detail(first)
    else:
        # The sweep was removed, and its trials were not.
        title, about, detail = f"Trials of sweep {words.short_id(group.key)}", "", detail_text(runs, state)
    return Row(
        key=group.key if run is None else f"{group.key}/{run.run_id}",
        run_ids=tuple(one.run_id for one in runs),
        title=title,
        about=about,
        value=value_text(runs),
        state=state,
        detail=" · ".join(filter(None, (detail, words.tags_text(first.tags if run is None else [])))),
        progress=progress_of(runs) if state.word in _MOVING else None,
        reason=reason_text(runs, state, find),
        child=run is not None,
        opened=opened if within else None,
        count=within,
    )


def sweep_detail(run: RunRecord) -> str:
    """How far a sweep is: `12 of 20 trials`, `20 trials · 5:12`."""
    head = run.headline
    done, total = head.get("trials") or 0, head.get("total_trials")
    took = words.duration(run.ended_at - run.started_at) if run.started_at and run.ended_at else ""
    goes_on = total and (not run.ended or done < total)
    counted = f"{done:,} of {total:,} trials" if goes_on else f"{done:,} trials"
    return " · ".join(filter(None, (counted if total or done else "", took)))


def shared_tags(runs: Sequence[RunRecord]) -> list[str]:
    """The tags that all of them have."""
    return [tag for tag in runs[0].tags if all(tag in run.tags for run in runs)] if runs else []


def _name_of(runs: Sequence[RunRecord]) -> str:
    """The name that all of them have been given."""
    names = {words.own_name(run) for run in runs}
    return names.pop() if len(names) == 1 else ""


def overall_state(runs: Sequence[RunRecord]) -> State:
    """The state of several runs together."""
    states = [state_of(run) for run in runs]
    if len(states) == 1:
        return states[0]
    return min(states, key=lambda state: _ORDER.index(state.word) if state.word in _ORDER else len(_ORDER))


def value_text(runs: Sequence[RunRecord]) -> str:
    """The mean return; nothing before there is one."""
    returns = [run.headline.get("mean_return") for run in runs]
    known = [value for value in returns if value is not None]
    return words.number(sum(known) / len(known)) if known else ""


def progress_of(runs: Sequence[RunRecord]) -> float | None:
    """How far they are, of 1."""
    shares = [1.0 if run.ended else run.headline.get("progress") for run in runs]
    known = [share for share in shares if share is not None]
    return sum(known) / len(runs) if known else None


def detail_text(runs: Sequence[RunRecord], state: State) -> str:
    """What stands behind the state: `seeds 1–3 · 74 %`, `500k steps · 0:23`, `at 182k steps`."""
    ended = all(run.ended for run in runs)
    seeds = "" if ended and len(runs) == 1 else words.seeds_text([r.worker_config.get("seed") for r in runs])
    return " · ".join(filter(None, (seeds, _how_far(runs, state))))


def _how_far(runs: Sequence[RunRecord], state: State) -> str:
    done = sum(run.ended for run in runs)
    if state.word == "Starting" and len(runs) == 1:
        return words.start_phase(runs[0])
    if state.word in _MOVING:
        episodes = _episodes(runs[0])
        share = progress_of(runs)
        counted = f"{done} of {len(runs)} done" if done else ""
        return episodes or counted or (words.percent(share) if share is not None else "")
    if state.word == "Waiting":
        return ""
    if is_evaluation(runs[0]):
        return _episodes(runs[0])
    step = max((run.headline.get("step") or 0) for run in runs)
    reached = f"{words.short_steps(step)} steps" if step else ""
    if state.word in _STOPPED:
        return f"at {reached}" if reached else ""
    if len(runs) > 1:
        return reached
    took = [run.ended_at - run.started_at for run in runs if run.started_at and run.ended_at]
    return " · ".join(filter(None, (reached, *map(words.duration, took))))


def _episodes(run: RunRecord) -> str:
    if not is_evaluation(run):
        return ""
    done = run.headline.get("episodes") or 0
    target = (run.headline.get("evaluation") or {}).get("target_episodes")
    of = f" of {words.steps(target)}" if target and not run.ended else ""
    return f"{words.steps(done)}{of} episodes"


def reason_text(runs: Sequence[RunRecord], state: State, find: Finder) -> str:
    """Why they wait or failed, with the names of the runs it speaks of."""
    if state.word not in _EXPLAINED:
        return ""
    reason = next((why(run) for run in runs if why(run) and state_of(run) == state), None)
    return with_titles(words.sentence(reason), find) if reason else ""


def why(run: RunRecord) -> str | None:
    """What explains a run's state."""
    return words.stall_text(run) or run.reason


def with_titles(text: str, find: Finder) -> str:
    """A sentence with the name of each run instead of its id."""

    def title(found: re.Match[str]) -> str:
        run = find(found[1])
        return words.short_id(found[1]) if run is None else title_of(run)

    return _RUN_ID.sub(title, text)


class Listing:
    """The rows for a filter. What has not changed is not looked at again: thousands of runs cost little."""

    def __init__(self, book: RunBook) -> None:
        self._book = book
        self.filter = RunFilter()
        self._opened: set[str] = set()
        self._tallies: dict[str, tuple[int, ...]] = {}
        """For each group how many of the runs that the words of the filter find are in each of `STATES`."""
        self._counts = list(_NONE)
        self._rows: dict[str, Row] = {}
        self._shapes: dict[str, Shape] = {}
        self._reach: str | None = None
        self.keys: list[str] = []
        """Of the rows; that of a run within a group has a `/`."""

    def set_filter(self, wanted: RunFilter) -> None:
        """Show other runs."""
        reads_anew = wanted.text != self.filter.text
        self.filter = wanted
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
                run = group.runs[run_id] if run_id else None
                row = self._rows[key] = row_of(group, run, key in self._opened, self._book.get)
        return row

    def shape(self, key: str) -> Shape:
        """How much room a row needs; known without putting it into words."""
        shape = self._shapes.get(key)
        if shape is None:
            group, run_id = self._find(key)
            if group is None:
                return Shape.PLAIN
            runs = [group.runs[run_id]] if run_id else group.told
            shape = self._shapes[key] = shape_of(runs)
        return shape

    def counts(self) -> dict[str, int]:
        """How many runs are in each state, of those that the words find."""
        return dict(zip(STATES, self._counts, strict=True))

    def key_of(self, run_id: str) -> str | None:
        """The row of a run: its own where its group is opened, else its group's."""
        group = self._book.group_of(run_id)
        if group is None:
            return None
        own = f"{group.key}/{run_id}"
        alone = len(group.runs) < 2 or (group.is_sweep and run_id == group.key)
        return own if group.key in self._opened and not alone else group.key

    def _find(self, key: str) -> tuple[RunGroup | None, str]:
        group_key, _, run_id = key.partition("/")
        group = self._book.group(group_key)
        return (None, "") if group is None or (run_id and run_id not in group.runs) else (group, run_id)

    def _take_tally(self, key: str) -> bool:
        """Look at a group again; gives whether the rows are others now."""
        old, new = self._tallies.pop(key, _NONE), self._tally(key)
        if new != _NONE:
            self._tallies[key] = new
        self._counts = [count - gone + come for count, gone, come in zip(self._counts, old, new, strict=True)]
        place = STATES.index(self.filter.state)
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
        found = [run for run in group.runs.values() if self._book.finds(self.filter, run)]
        return tuple(sum(in_state(run, state) for run in found) for state in STATES) if found else _NONE

    def _lay_out(self) -> None:
        place, tallies, opened = STATES.index(self.filter.state), self._tallies, self._opened
        keys = [key for key in self._book.group_keys() if tallies.get(key, _NONE)[place]]
        if self._reach is not None:
            keys = [key for key in keys if key >= self._reach]
        if opened:
            keys = [row for key in keys for row in (key, *(self._children(key) if key in opened else ()))]
        self.keys = keys

    def _children(self, key: str) -> list[str]:
        group = self._book.group(key)
        return [] if group is None else [f"{key}/{run_id}" for run_id in group.within]
