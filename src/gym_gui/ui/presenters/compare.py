"""What the page that compares runs says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from gym_gui.models import words
from gym_gui.models.compare import Group, differences
from mosaic.client import RunRecord
from mosaic.contract.capabilities import parameter_defaults


@dataclass(frozen=True)
class Cell:
    """One value of the table; `usual` when it is the default."""

    text: str
    usual: bool = False


@dataclass(frozen=True)
class CompareTable:
    """A row for each group: its name, its seeds, how it does, and the settings that differ."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def defaults_for(runs: Sequence[RunRecord]) -> dict[str, dict[str, Any]]:
    """The defaults of each algorithm's parameters. Catalogs load slowly: not in the window's thread."""
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        algo = str(run.worker_config.get("algo"))
        if algo not in found:
            found[algo] = parameter_defaults(run.worker_type, algo)
    return found


def table_of(
    groups: Sequence[Group], defaults: Mapping[str, Mapping[str, Any]] | None = None
) -> CompareTable:
    """The groups side by side."""
    rows = differences(groups, defaults)
    columns = ("Runs", "Seeds", "Mean return", "Steps", "State", *(row.name for row in rows))
    return CompareTable(
        columns,
        tuple(
            (
                Cell(group.label),
                Cell(_seeds(group)),
                Cell(_returns(group)),
                Cell(words.short_steps(max((run.headline.get("step") or 0) for run in group.runs))),
                Cell(_states(group)),
                *(Cell(row.values[place], row.defaults[place]) for row in rows),
            )
            for place, group in enumerate(groups)
        ),
    )


def _seeds(group: Group) -> str:
    return words.seeds_text(group.seeds).removeprefix("seeds ").removeprefix("seed ") or words.NONE


def _returns(group: Group) -> str:
    known = [run.headline.get("mean_return") for run in group.one_for_each_seed]
    values = [float(value) for value in known if value is not None]
    if not values:
        return words.NONE
    spread = f" ± {words.number(pstdev(values))}" if len(values) > 1 else ""
    return f"{words.number(fmean(values))}{spread}"


def _states(group: Group) -> str:
    """`Completed`, or of several `2 Completed, 1 Running`."""
    counts: dict[str, int] = {}
    for run in group.runs:
        word = words.state_of(run).word
        counts[word] = counts.get(word, 0) + 1
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def note_of(groups: Sequence[Group], grouped: bool) -> str:
    """What the lines of the charts are."""
    most = max((len(group.one_for_each_seed) for group in groups), default=0)
    if grouped and most > 1:
        return f"lines are the mean of up to {most} seeds, bands one standard deviation between them"
    return ""
