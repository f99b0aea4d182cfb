"""Several runs side by side: how each group does, and in what they differ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gym_gui.models import words
from mosaic.analytics.statistics import Interval, interval, iqm
from mosaic.client.groups import Defaults, Group, differences

_COLUMNS = ("Runs", "Seeds", "Mean return", "95 % interval", "IQM", "Steps", "State")


@dataclass(frozen=True)
class Cell:
    """What stands at one place of a table, and the role of its colour."""

    text: str
    role: str = "text"


def table_of(groups: Sequence[Group], defaults: Defaults = None) -> tuple[list[str], list[list[Cell]]]:
    """The columns, and a row for each group: name, seeds, how it does, and what differs."""
    differ = differences([group.runs[0] for group in groups], defaults)
    rows = [
        [
            Cell(group.label),
            Cell(words.seeds_text(group.seeds).removeprefix("seeds ").removeprefix("seed ") or words.NONE),
            *map(Cell, _returns(group)),
            Cell(words.short_steps(max((run.headline.get("step") or 0) for run in group.runs))),
            Cell(_states(group)),
            *(Cell(row.values[place], "faint" if row.defaults[place] else "text") for row in differ),
        ]
        for place, group in enumerate(groups)
    ]
    return [*_COLUMNS, *(row.name for row in differ)], rows


def _returns(group: Group) -> tuple[str, str, str]:
    """Mean, its interval of 95 % and the interquartile mean over the seeds, as reports have them."""
    known = [run.headline.get("mean_return") for run in group.one_for_each_seed]
    values = tuple(float(value) for value in known if value is not None and math.isfinite(value))
    if not values:
        return words.NONE, words.NONE, words.NONE
    found, middle = _interval(values), float(iqm([np.array(values)]))
    spread = f"{words.number(found.low)} to {words.number(found.high)}" if len(values) > 1 else words.NONE
    return words.number(found.value), spread, words.number(middle)


@lru_cache(1000)
def _interval(values: tuple[float, ...]) -> Interval:
    """The table is made anew whenever a run has news, and most of its rows have none."""
    return interval([values])


def _states(group: Group) -> str:
    """`Completed`, or of several `2 Completed, 1 Running`."""
    counts = Counter(words.state_of(run).word for run in group.runs)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def note_of(groups: Sequence[Group], grouped: bool) -> str:
    """What the lines of the charts are."""
    most = max((len(group.one_for_each_seed) for group in groups), default=0)
    if grouped and most > 1:
        return f"lines are means over up to {most} seeds, bands are one standard deviation"
    return ""
