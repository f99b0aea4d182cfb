"""What the Sweep tab shows of a study: figures with axes, dots and lines, a table, and sentences. It knows no
Qt, and is made beside the window."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gym_gui.models import words
from gym_gui.models.compare import Cell
from gym_gui.models.series import Floats
from mosaic.analytics import scales
from mosaic.contract.words import count
from mosaic.sweeps.study import (
    ALGO,
    COMPLETE,
    ENDED,
    ENV,
    FAILED,
    PRUNED,
    RUNNING,
    WAITING,
    Study,
    Trial,
    value_text,
)

Numbers = NDArray[np.int64]
ROLES = {COMPLETE: "accent", PRUNED: "warn", FAILED: "bad", RUNNING: "good", WAITING: "faint"}
"""The colours of the states."""
LEAST_FOR_IMPORTANCE = 4
_ORDER = (RUNNING, WAITING, COMPLETE, PRUNED, FAILED)
_ROOM = 0.05
"""Beyond the outermost dots, as a share of what lies between them."""
_MOST_PAIRS = 3
NOTHING_YET = "The sweep has not started: its trials will appear here."


@dataclass(frozen=True)
class Scale:
    """An axis: numbers, powers of ten, steps of a run, or names side by side."""

    title: str
    low: float = 0.0
    high: float = 1.0
    """The ends; of a logarithmic axis as powers of ten."""
    log: bool = False
    names: tuple[str, ...] = ()
    steps: bool = False
    whole: bool = False
    """Whether there is nothing between two whole numbers."""

    def shares(self, values: Sequence[float] | Floats) -> Floats:
        """Where values stand, from 0 to 1."""
        found = np.asarray(values, np.float64)
        if self.log:
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.log10(found)
        return (found - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Round places with their words, at most about so many."""
        if self.names:
            return [
                (float(self.shares([float(at)])[0]), name)
                for at, name in enumerate(self.names)
                if at % max(1, -(-len(self.names) // max(2, most))) == 0
            ]
        whole = self.steps or self.whole
        choose = scales.log_ticks if self.log else scales.nice_steps if whole else scales.nice_ticks
        tell = scales.log_value_ticks if self.log else scales.step_ticks if self.steps else scales.value_ticks
        spacing, found = choose(self.low, self.high, most)
        span = self.high - self.low
        return [
            ((at - self.low) / span, text)
            for at, text in zip(found, tell(found, spacing), strict=True)
            if -1e-9 <= (at - self.low) / span <= 1 + 1e-9
        ]


@dataclass(frozen=True, eq=False)
class Dots:
    """Trials as dots of one colour; places are shares of the axes."""

    role: str
    numbers: Numbers
    x: Floats
    y: Floats
    shape: str = "dot"
    """`dot`, `ring`, `cross`, or `none` for places that only the pointer finds."""


@dataclass(frozen=True, eq=False)
class Stroke:
    """Lines of one colour, with gaps where a place is not a number."""

    role: str
    x: Floats
    y: Floats
    width: float = 1.0
    alpha: float = 1.0


@dataclass(frozen=True, eq=False)
class Figure:
    """A chart of trials."""

    title: str
    x: Scale
    y: Scale
    dots: tuple[Dots, ...] = ()
    strokes: tuple[Stroke, ...] = ()
    note: str = ""
    empty: str = ""
    """What is said in its place while there is nothing to draw."""
    joined: bool = False
    """Whether the places of a trial are one line."""


@dataclass(frozen=True, eq=False)
class Parallel:
    """Each trial as a line through an axis for each parameter, the last of which is what it reached."""

    axes: tuple[Scale, ...]
    numbers: Numbers
    places: Floats
    """A row for each trial: between its neighbours where it has no such parameter, and not a number where
    it has none of the first ones."""
    merit: Floats
    """How good each is, from 0 to 1."""
    empty: str = ""


@dataclass(frozen=True, eq=False)
class SweepPicture:
    """All that is drawn of a study, for one of its objectives."""

    study: Study
    objective: int
    history: Figure
    intermediate: Figure
    slices: tuple[Figure, ...]
    fronts: tuple[Figure, ...]
    """Of several objectives two against each other; of a population its lineage; of a benchmark what was
    reached in each environment."""
    parallel: Parallel
    best: frozenset[int]
    """The number of the best trial; of several objectives those of the front."""


def picture_of(study: Study, objective: int = 0, weights: Mapping[str, float] | None = None) -> SweepPicture:
    """The picture; parameters stand in the order of their weights."""
    objective = min(objective, len(study.directions) - 1)
    names = sorted(_parameters(study), key=lambda name: -(weights or {}).get(name, 0.0))
    several = len(study.directions) > 1
    best = study.best
    chosen = study.front if several else [best] if best else []
    front = frozenset(one.number for one in chosen)
    return SweepPicture(
        study,
        objective,
        _history(study, objective),
        _intermediate(study, front),
        () if study.benchmark else tuple(_slice(study, name, objective, front) for name in names),
        (
            *(_pair(study, *pair, front) for pair in _pairs(study)),
            *_lineage(study, objective, front),
            *_results(study),
        ),
        _parallel(study, names, objective),
        front,
    )


def _parameters(study: Study) -> dict[str, None]:
    """The names of all parameters, as the space has them; of a foreign study as its trials have them."""
    found = dict.fromkeys(study.distributions)
    for one in study.trials:
        found |= dict.fromkeys(one.params)
    return found


def value_at(trial: Trial, objective: int) -> float | None:
    """What a complete trial has reached."""
    value = trial.values[objective] if trial.state == COMPLETE and len(trial.values) > objective else None
    return value if value is not None and math.isfinite(value) else None


def last_value(trial: Trial) -> float | None:
    """What a trial had reached where it was looked at last."""
    return trial.intermediate[max(trial.intermediate)] if trial.intermediate else None


def _done(study: Study, objective: int) -> tuple[list[Trial], list[float]]:
    found = [(one, value) for one in study.trials if (value := value_at(one, objective)) is not None]
    return [one for one, _ in found], [value for _, value in found]


def _scale(title: str, values: Sequence[float], steps: bool = False, room: float = _ROOM) -> Scale:
    """An axis on which these values have room."""
    if not len(values):
        return Scale(title, steps=steps)
    low, high = float(min(values)), float(max(values))
    span = (high - low) * room or (abs(low) * 0.1 or 1.0)
    return Scale(title, 0.0 if steps and low >= 0 else low - span, high + span, steps=steps)


def _numbers(trials: Sequence[Trial]) -> Numbers:
    return np.array([one.number for one in trials], np.int64)


def _history(study: Study, objective: int) -> Figure:
    """Every value by the number of its trial, and the best so far."""
    trials, values = _done(study, objective)
    cut = [(one, value) for one in study.with_state(PRUNED) if (value := last_value(one)) is not None]
    if len(study.directions) > 1:
        cut = []
    y = _scale(study.short_objectives[objective], [*values, *(value for _, value in cut)])
    last = max((one.number for one in study.trials), default=1)
    x = Scale("trial", -0.02 * max(1, last), max(1, last) * 1.02, whole=True)
    places = x.shares([one.number for one in trials])
    dots = [Dots("accent", _numbers(trials), places, y.shares(values))]
    dots.append(
        Dots(
            "warn",
            _numbers([one for one, _ in cut]),
            x.shares([one.number for one, _ in cut]),
            y.shares([value for _, value in cut]),
            "ring",
        )
    )
    failed = study.with_state(FAILED)
    dots.append(
        Dots(
            "bad",
            _numbers(failed),
            x.shares([one.number for one in failed]),
            np.full(len(failed), 0.015),
            "cross",
        )
    )
    strokes: tuple[Stroke, ...] = ()
    if values:
        pick = np.maximum if study.directions[objective] == "maximize" else np.minimum
        best = y.shares(pick.accumulate(np.array(values)))
        end = float(x.shares([last])[0])
        strokes = (Stroke("best", np.append(np.repeat(places, 2)[1:], end), np.repeat(best, 2), 1.75),)
    return Figure(
        "History",
        x,
        y,
        tuple(one for one in dots if len(one.numbers)),
        strokes,
        _history_note(study),
        _nothing(study, "No trial has ended yet") if not values and not cut and not failed else "",
    )


def _history_note(study: Study) -> str:
    counts = {state: len(study.with_state(state)) for state in (PRUNED, FAILED)}
    told = [f"○ {counts[PRUNED]} pruned"] if counts[PRUNED] else []
    return " · ".join(
        ["the line is the best so far", *told, *([f"× {counts[FAILED]} failed"] * bool(counts[FAILED]))]
    )


def _nothing(study: Study, usual: str) -> str:
    """Why there is nothing to draw."""
    if not study.trials:
        return "No trial yet"
    ended = study.with_state(*ENDED)
    if ended and len(ended) == len(study.with_state(FAILED)):
        return "Every trial so far has failed"
    if ended and not study.with_state(COMPLETE):
        return "Every trial so far was pruned" if not study.with_state(FAILED) else "No trial is complete yet"
    return usual


def _intermediate(study: Study, best: frozenset[int]) -> Figure:
    """What every trial had reached at each step that it was looked at."""
    trials = [one for one in study.trials if one.intermediate]
    title = study.short_objectives[0]
    empty = "There are no intermediate values with several objectives"
    if len(study.directions) == 1:
        empty = _nothing(study, "No intermediate values yet")
    if not trials:
        return Figure("Intermediate values", Scale("step", steps=True), Scale(title), empty=empty)
    runs = [(one, np.array(sorted(one.intermediate.items()), np.float64)) for one in trials]
    steps, values = (np.concatenate([run[:, at] for _, run in runs]) for at in (0, 1))
    x = Scale("step", 0.0, float(steps.max()) * 1.02, steps=True)
    y = _scale(title, values[np.isfinite(values)].tolist())
    strokes = []
    alpha = 0.7 if len(trials) <= 30 else 0.35 if len(trials) <= 200 else 0.2
    for state in (FAILED, PRUNED, COMPLETE, RUNNING):
        own = [run for one, run in runs if one.state == state and one.number not in best]
        if own:
            strokes.append(_joined(ROLES[state], own, x, y, 1.0, max(alpha, 0.6 * (state == RUNNING))))
    chosen = [run for one, run in runs if one.number in best]
    if chosen:
        strokes.append(_joined("best", chosen, x, y, 2.0, 1.0))
    numbers = np.concatenate([np.full(len(run), one.number, np.int64) for one, run in runs])
    dots = (Dots("accent", numbers, x.shares(steps.tolist()), y.shares(values.tolist()), "none"),)
    return Figure("Intermediate values", x, y, dots, tuple(strokes), "yellow ones were pruned", joined=True)


def _joined(role: str, runs: Sequence[Floats], x: Scale, y: Scale, width: float, alpha: float) -> Stroke:
    gap = np.full((1, 2), np.nan)
    whole = np.concatenate([part for run in runs for part in (run, gap)])
    return Stroke(role, x.shares(whole[:, 0].tolist()), y.shares(whole[:, 1].tolist()), width, alpha)


def axis_of(
    name: str, told: Mapping[str, Any], values: Sequence[Any]
) -> tuple[Scale, Callable[[Any], float]]:
    """The axis of a parameter with this part of the search space, and where a value stands on it."""
    plain = all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)
    if "choices" in told or not plain or (not told and not values):
        choices = list({_key(one): one for one in (*told.get("choices", ()), *values)}.values())
        at = {_key(one): float(place) for place, one in enumerate(choices)}
        names = tuple(map(value_text, choices))
        return Scale(name, -0.5, max(1, len(names)) - 0.5, names=names), lambda one: at[_key(one)]
    low = float(told["low"] if told else min(values))
    high = float(told["high"] if told else max(values))
    if told.get("log"):
        low, high = math.log10(low), math.log10(high)
    room = (high - low) * 0.03 or 0.5
    return Scale(name, low - room, high + room, bool(told.get("log")), whole=bool(told.get("whole"))), float


def _key(value: Any) -> tuple[str, Any]:
    """True and 1 are two values."""
    return type(value).__name__, value


def _slice(study: Study, name: str, objective: int, best: frozenset[int]) -> Figure:
    """What was reached by the value of one parameter."""
    trials, values = _done(study, objective)
    y = _scale(study.short_objectives[objective], values)
    known = [(one, value) for one, value in zip(trials, values, strict=True) if name in one.params]
    given = [one.params[name] for one in study.trials if name in one.params]
    x, place = axis_of(name, study.distributions.get(name, {}), given)
    numbers = _numbers([one for one, _ in known])
    xs = x.shares([place(one.params[name]) for one, _ in known])
    if x.names:
        # Dots of one choice would lie over each other.
        xs = xs + ((numbers * 0.618034) % 1.0 - 0.5) * 0.5 / len(x.names)
    ys = y.shares([value for _, value in known])
    chosen = np.isin(numbers, list(best))
    dots = [Dots("accent", numbers[~chosen], xs[~chosen], ys[~chosen])]
    dots.append(Dots("best", numbers[chosen], xs[chosen], ys[chosen]))
    empty = "" if known else _nothing(study, "No trial with it is complete yet")
    return Figure(name, x, y, tuple(one for one in dots if len(one.numbers)), empty=empty)


def _pairs(study: Study) -> list[tuple[int, int]]:
    return list(combinations(range(len(study.directions)), 2))[:_MOST_PAIRS]


def _pair(study: Study, one: int, other: int, front: frozenset[int]) -> Figure:
    """Two objectives against each other, with the trials of the front joined."""
    done = [
        trial
        for trial in study.with_state(COMPLETE)
        if value_at(trial, one) is not None and value_at(trial, other) is not None
    ]
    values = np.array([[trial.values[one], trial.values[other]] for trial in done]).reshape(-1, 2)
    x, y = (
        _scale(study.short_objectives[at], values[:, place].tolist()) for place, at in enumerate((one, other))
    )
    xs, ys, numbers = x.shares(values[:, 0].tolist()), y.shares(values[:, 1].tolist()), _numbers(done)
    chosen = np.isin(numbers, list(front))
    dots = [Dots("accent", numbers[~chosen], xs[~chosen], ys[~chosen])]
    dots.append(Dots("best", numbers[chosen], xs[chosen], ys[chosen]))
    strokes = []
    if len(study.directions) == 2 and chosen.any():
        order = np.argsort(xs[chosen], kind="stable")
        strokes.append(Stroke("best", xs[chosen][order], ys[chosen][order], 1.5, 0.7))
    ways = " · ".join(
        f"{'→' if at == one else '↑'} {study.directions[at]} {study.short_objectives[at]}"
        for at in (one, other)
    )
    empty = "" if done else _nothing(study, "No trial is complete yet")
    return Figure("Pareto front", x, y, tuple(d for d in dots if len(d.numbers)), tuple(strokes), ways, empty)


def _lineage(study: Study, objective: int, best: frozenset[int]) -> Iterator[Figure]:
    """Of a population what each member reached by generation, joined with those that began where it ended."""
    if not study.members:
        return
    trials, values = _done(study, objective)
    y = _scale(study.short_objectives[objective], values)
    last = max((one.number for one in study.trials), default=0) // study.members
    x = Scale("generation", -0.05 * max(1, last), max(1, last) * 1.05, whole=True)
    xs = x.shares([one.number // study.members for one in trials])
    ys, numbers = y.shares(values), _numbers(trials)
    at = {one.number: (float(a), float(b)) for one, a, b in zip(trials, xs, ys, strict=True)}
    by_number, forebears = {one.number: one for one in study.trials}, set[int]()
    for number in best:
        step: int | None = number
        while step is not None and step not in forebears:
            forebears.add(step)
            step = by_number[step].parent if step in by_number else None
    links: dict[str, list[Floats]] = {"accent": [], "warn": [], "best": []}
    for one in trials:
        if one.parent in at:
            copied = one.parent % study.members != one.number % study.members
            role = "best" if one.number in forebears else "warn" if copied else "accent"
            links[role].append(np.array([at[one.parent], at[one.number]]))
    gap = np.full((1, 2), np.nan)
    strokes = []
    for role, width, alpha in (("accent", 1.0, 0.5), ("warn", 1.0, 0.7), ("best", 2.0, 1.0)):
        if links[role]:
            whole = np.concatenate([part for link in links[role] for part in (link, gap)])
            strokes.append(Stroke(role, whole[:, 0], whole[:, 1], width, alpha))
    chosen = np.isin(numbers, list(best))
    dots = [Dots("accent", numbers[~chosen], xs[~chosen], ys[~chosen])]
    dots.append(Dots("best", numbers[chosen], xs[chosen], ys[chosen]))
    empty = "" if trials else _nothing(study, "The first generation trains")
    shown = tuple(one for one in dots if len(one.numbers))
    yield Figure("Lineage", x, y, shown, tuple(strokes), "yellow lines lead to copies", empty)


def _results(study: Study) -> Iterator[Figure]:
    """Of a benchmark what each algorithm has reached with each seed, an environment at a time."""
    if not study.benchmark:
        return
    trials, values = _done(study, 0)
    algos = [str(one) for one in study.distributions[ALGO]["choices"]]
    x = Scale("", -0.5, len(algos) - 0.5, names=tuple(algos))
    for env_id in study.distributions[ENV]["choices"]:
        own = [(one, value) for one, value in zip(trials, values, strict=True) if one.params[ENV] == env_id]
        y = _scale(study.short_objectives[0], [value for _, value in own])
        numbers = _numbers([one for one, _ in own])
        places = np.array([algos.index(str(one.params[ALGO])) for one, _ in own], np.float64)
        reached = np.array([value for _, value in own])
        # Dots of one algorithm would lie over each other.
        beside = ((numbers * 0.618034) % 1.0 - 0.5) * 0.3
        strokes = []
        for at in range(len(algos)):
            if (places == at).any():
                mean = y.shares([float(reached[places == at].mean())] * 2)
                strokes.append(Stroke("best", x.shares([at - 0.3, at + 0.3]), mean, 1.75))
        dots = Dots("accent", numbers, x.shares(places + beside), y.shares(reached))
        empty = "" if own else _nothing(study, "No run here is complete yet")
        yield Figure(
            str(env_id), x, y, (dots,), tuple(strokes), "a dot for each seed, a line for their mean", empty
        )


def _parallel(study: Study, names: Sequence[str], objective: int) -> Parallel:
    trials, values = _done(study, objective)
    axes, columns = [], []
    for name in names:
        given = [one.params[name] for one in study.trials if name in one.params]
        axis, place = axis_of(name, study.distributions.get(name, {}), given)
        places = [place(one.params[name]) if name in one.params else math.nan for one in trials]
        axes.append(axis)
        columns.append(axis.shares(places))
    last = _scale(study.short_objectives[objective], values, room=0.02)
    axes.append(last)
    columns.append(last.shares(values))
    merit = np.zeros(len(values))
    if len(values) > 1:
        # By rank: one trial that stands out would make all others look alike.
        merit[np.argsort(np.array(values), kind="stable")] = np.linspace(0.0, 1.0, len(values))
        merit = merit if study.directions[objective] == "maximize" else 1.0 - merit
    empty = "" if values else _nothing(study, "No trial is complete yet")
    places_ = np.stack(columns, axis=1) if values else np.zeros((0, len(axes)))
    at = np.arange(len(axes))
    for row in places_:
        # A trial without a parameter passes by its axis: its line leads on to what it has reached.
        known = np.isfinite(row)
        row[known.argmax() :] = np.interp(at, at[known], row[known])[known.argmax() :]
    return Parallel(tuple(axes), _numbers(trials), places_, merit, empty)


# Words


def params_text(trial: Trial) -> str:
    """`learning_rate 0.0012 · gamma 0.99`."""
    return " · ".join(f"{name} {value_text(value)}" for name, value in trial.params.items())


def counts_text(study: Study) -> str:
    """`12 of 20 trials: 9 complete, 2 pruned, 1 failed`."""
    ended, what = len(study.with_state(*ENDED)), "run" if study.benchmark else "trial"
    total = f"{ended:,} of {study.wanted:,} {what}s" if study.wanted else count(ended, what)
    order = (COMPLETE, PRUNED, FAILED, RUNNING)
    told = [f"{number:,} {state}" for state in order if (number := len(study.with_state(state)))]
    return f"{total}: {', '.join(told)}" if told else total


def best_text(study: Study) -> str:
    """What was found so far, in a sentence; empty before there is anything."""
    if len(study.directions) > 1:
        front = len(study.front)
        return f"{count(front, 'trial')} on the Pareto front." if front else ""
    best = study.best
    if best is None:
        failed = study.with_state(FAILED)
        if failed and len(failed) == len(study.with_state(*ENDED)):
            return f"Every trial so far has failed; the last one: {failed[-1].reason or 'it gave no reason'}"
        return ""
    return f"Best {words.number(best.values[0])} in trial {best.number}: {params_text(best)}"


def about_trial(study: Study, trial: Trial) -> str:
    """A few lines for the pointer."""
    lines = [f"Trial {trial.number}, {trial.state}"]
    if trial.state == COMPLETE:
        lines += [
            f"{name}  {scales.value_text(value)}"
            for name, value in zip(study.short_objectives, trial.values, strict=False)
            if value is not None
        ]
    elif (value := last_value(trial)) is not None:
        lines.append(f"{scales.value_text(value)} at step {max(trial.intermediate):,}")
    if trial.reason and trial.state in (PRUNED, FAILED):
        lines.append(trial.reason)
    return "\n".join([*lines, *(f"{name}  {value_text(value)}" for name, value in trial.params.items())])


def may_be_weighed(study: Study) -> bool:
    """Whether its trials can tell which parameters matter: those of a search can."""
    return not study.benchmark and not study.members


def left_to_do(study: Study) -> int:
    """How many trials of the budget have not ended."""
    return max(0, (study.wanted or 0) - len(study.with_state(*ENDED)))


# The table


class TrialTable:
    """The trials in rows, sorted by one of the columns."""

    def __init__(self) -> None:
        self.columns: list[str] = []
        self.rows: list[Trial] = []
        self.sorted_by, self.descending = 0, False
        self._study: Study | None = None
        self._first_param = self._first_tail = 0

    def show(self, study: Study) -> bool:
        """Take in a study; gives whether the columns are others now."""
        self._study = study
        values = ["value"] if len(study.directions) == 1 else study.short_objectives
        params = list(_parameters(study))
        columns = ["trial", "state", *values, *params, "step", "time", "reason", "run"]
        others = columns != self.columns
        self._first_param = 2 + len(values)
        self._first_tail = self._first_param + len(params)
        if others:
            self.columns, self.sorted_by, self.descending = columns, 0, False
        self._arrange()
        return others

    def sort(self, column: int, descending: bool) -> None:
        self.sorted_by, self.descending = column, descending
        self._arrange()

    def _arrange(self) -> None:
        """What has no value there stands at the end, whichever way it is sorted."""
        rows = list(self._study.trials) if self._study is not None else []
        keyed = [(self._key(one, self.sorted_by), one) for one in rows]
        with_value = [(key, one) for key, one in keyed if key is not None]
        with_value.sort(key=lambda pair: pair[0], reverse=self.descending)
        self.rows = [one for _, one in with_value] + [one for key, one in keyed if key is None]

    def is_number(self, column: int) -> bool:
        """Whether its values stand at the right."""
        return self.columns[column] not in ("state", "reason", "run") and not (
            self._first_param <= column < self._first_tail and not self._is_numeric(self.columns[column])
        )

    def _is_numeric(self, name: str) -> bool:
        choices = (self._study.distributions.get(name) or {}).get("choices", ()) if self._study else ()
        return not any(isinstance(one, bool | str) for one in choices)

    def _key(self, trial: Trial, column: int) -> Any:
        name, at = self.columns[column], column - 2
        if column == 0:
            return trial.number
        if name == "state" and column == 1:
            return _ORDER.index(trial.state), trial.number
        if column < self._first_param:
            return self._value(trial, at)
        if column < self._first_tail:
            value = trial.params.get(name)
            return (
                None
                if value is None
                else (isinstance(value, str), value if isinstance(value, str) else float(value))
            )
        if name == "step":
            return max(trial.intermediate, default=None)
        if name == "time":
            return _took(trial)
        return (trial.reason if name == "reason" else ",".join(trial.runs)) or None

    def _value(self, trial: Trial, at: int) -> float | None:
        value = value_at(trial, at)
        return last_value(trial) if value is None and at == 0 and trial.state != COMPLETE else value

    def cell(self, trial: Trial, column: int) -> Cell:
        """What stands there, and the role of its colour."""
        name, key = self.columns[column], self._key(trial, column)
        if column == 0:
            return Cell(str(trial.number))
        if name == "state" and column == 1:
            return Cell(trial.state, ROLES[trial.state] if trial.state != COMPLETE else "text")
        if column < self._first_param:
            return Cell(
                "" if key is None else words.number(key), "text" if trial.state == COMPLETE else "faint"
            )
        if column < self._first_tail:
            return Cell("" if name not in trial.params else value_text(trial.params[name]))
        if name == "step":
            return Cell("" if key is None else words.short_steps(key), "dim")
        if name == "time":
            return Cell("" if key is None else words.duration(key), "dim")
        if name == "reason":
            return Cell(trial.reason, "bad" if trial.state == FAILED else "dim")
        more = f" +{len(trial.runs) - 1}" if len(trial.runs) > 1 else ""
        return Cell(f"{words.short_id(trial.runs[0])}{more}" if trial.runs else "", "accent")


def _took(trial: Trial) -> float | None:
    if trial.started_at is None:
        return None
    return max(0.0, (trial.ended_at or time.time()) - trial.started_at)
