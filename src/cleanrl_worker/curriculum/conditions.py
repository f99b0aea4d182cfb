"""When a stage of a curriculum is over: `steps>=N`, `episodes>=N`, `episode_return>=X`, joined by | and &."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from mosaic.contract.errors import UserError, closest

STEPS, EPISODES, RETURN = METRICS = ("steps", "episodes", "episode_return")

_CLAUSE = re.compile(r"\s*(\w+)\s*>=\s*([^\s|&]+)\s*")
_HELP = "write steps>=N, episodes>=N or episode_return>=X, joined by | (or) and & (and)"


@dataclass(frozen=True)
class Counts:
    """What a stage has seen, over all environments; without an episode there is no mean return."""

    steps: int = 0
    episodes: int = 0
    mean_return: float | None = None


@dataclass(frozen=True)
class Clause:
    """One comparison."""

    metric: str
    least: float

    def value(self, counts: Counts) -> float | None:
        values = {STEPS: counts.steps, EPISODES: counts.episodes, RETURN: counts.mean_return}
        return values[self.metric]

    def is_met(self, counts: Counts) -> bool:
        value = self.value(counts)
        return value is not None and value >= self.least

    def progress(self, counts: Counts) -> float:
        """How much of the way is done; of a return below zero nobody can say, so nothing until it is."""
        if self.is_met(counts):
            return 1.0
        value = self.value(counts)
        return 0.0 if value is None or self.least <= 0.0 else max(0.0, value / self.least)


@dataclass(frozen=True)
class Condition:
    """A condition as it was written, and its parts: it holds when all clauses of one of `choices` do."""

    text: str
    choices: tuple[tuple[Clause, ...], ...]

    def is_met(self, counts: Counts) -> bool:
        return any(all(clause.is_met(counts) for clause in clauses) for clauses in self.choices)

    def progress(self, counts: Counts) -> float:
        """From 0 to 1, by the choice that is nearest to being met."""
        return max(min(clause.progress(counts) for clause in clauses) for clauses in self.choices)

    def least_steps(self) -> int:
        """The fewest steps after which it can hold: an episode has at least one, a return needs one."""
        return min(
            max(1 if clause.metric == RETURN else int(clause.least) for clause in clauses)
            for clauses in self.choices
        )


def parse_condition(text: str) -> Condition:
    """The condition in a text; a UserError says what in it cannot be read. & binds tighter than |."""
    choices = tuple(
        tuple(_parse_clause(clause, text) for clause in choice.split("&")) for choice in text.split("|")
    )
    return Condition(re.sub(r"\s+", "", text), choices)


def _parse_clause(part: str, text: str) -> Clause:
    match = _CLAUSE.fullmatch(part)
    if match is None:
        raise UserError(f"The condition '{text}' cannot be read at '{part.strip()}': {_HELP}.")
    metric = match[1]
    if metric not in METRICS:
        hint = closest(metric, METRICS) or f"; {_HELP}."
        raise UserError(f"The condition '{text}' counts '{metric}', which nothing counts{hint}")
    return Clause(metric, _parse_number(metric, match[2], text))


def _parse_number(metric: str, number: str, text: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"The condition '{text}' has '{number}' where a number must be: {_HELP}.")
    if metric != RETURN and (value < 1 or value != int(value)):
        raise UserError(
            f"The condition '{text}' has {number} {metric}, but that must be a whole number of at least 1."
        )
    return value
