"""Which runs are shown: a state, words, and conditions such as `return>400`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from gym_gui.models import words
from mosaic.client import RunQuery, RunRecord
from mosaic.contract import run_filter
from mosaic.contract.run_filter import RUN_STATES, WHOLE, Term, parse_terms

Known = str | float | None
TEXTS: dict[str, Callable[[RunRecord], Known]] = {
    "name": lambda run: run.run_name,
    "algo": lambda run: PurePath(str(run.worker_config.get("algo") or "")).name,
    "env": lambda run: str(run.worker_config.get("env_id") or ""),
    "tag": lambda run: ", ".join(run.tags),
    "state": lambda run: words.state_of(run).word,
    "notes": lambda run: run.notes,
    "id": lambda run: run.run_id,
    "sweep": lambda run: run.sweep,
}
HINT = "Words, or: algo=ppo  env:cart  tag=x  seed=1  state=failed  return>400  age<2d  learning_rate=0.01"
"""What may be written, in a line."""
STATES = tuple(RUN_STATES)

Settings = Callable[[], Mapping[str, Any]]


def elapsed(run: RunRecord, now: float) -> float | None:
    """Seconds since the run was started, up to its end, without pauses."""
    if run.started_at is None:
        return None
    paused = sum(after.at - entry.at for entry, after in pairwise(run.history) if entry.status == "PAUSE")
    until = run.ended_at or now
    if run.status == "PAUSE" and run.history:
        until = run.history[-1].at
    return max(0.0, until - run.started_at - paused)


def _headline(name: str) -> Callable[[RunRecord], Known]:
    return lambda run: run.headline.get(name)


NUMBERS: dict[str, Callable[[RunRecord], Known]] = {
    "return": _headline("mean_return"),
    "steps": _headline("step"),
    "speed": _headline("sps"),
    "episodes": _headline("episodes"),
    "progress": _headline("progress"),
    "seed": lambda run: run.worker_config.get("seed"),
    "priority": lambda run: run.priority,
    "duration": lambda run: elapsed(run, time.time()),
    "age": lambda run: time.time() - run.submitted_at,
}


@dataclass(frozen=True)
class RunFilter:
    """A state and conditions, all of which must hold."""

    state: str = "all"
    text: str = ""

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return parse_terms(self.text)

    @property
    def problem(self) -> str:
        """What is wrong with the first condition that cannot be understood; empty when all can."""
        return next(filter(None, (term.problem for term in self.terms)), "")

    def finds(self, run: RunRecord, text: str, settings: Settings) -> bool:
        """Whether the conditions hold, whatever the state chosen; `text` is the run's `search_text`."""
        return all(_holds(term, run, text, settings) for term in self.terms)


def _holds(term: Term, run: RunRecord, text: str, settings: Settings) -> bool:
    if not term.name:
        return term.value in text
    if not term.value:
        return True
    if term.name == "tag":
        return term.fits_texts(tag.lower() for tag in run.tags)
    if term.name in TEXTS:
        return term.fits_texts([str(TEXTS[term.name](run)).lower()])
    return term.fits(NUMBERS[term.name](run) if term.name in NUMBERS else settings().get(term.name))


def query_for(wanted: RunFilter, sorted_by: str = "date", descending: bool = True) -> RunQuery:
    """The same filter as a question to the daemon, in the order of a column."""
    statuses, outcomes = RUN_STATES[wanted.state]
    order = {"date": "submitted"}.get(sorted_by, sorted_by)
    return RunQuery(
        statuses=statuses,
        outcomes=outcomes,
        filter=wanted.text,
        order_by=order,
        ascending=not descending,
        fields=WHOLE,
    )


def counts_by_state(counts: Mapping[tuple[str, str | None], int]) -> dict[str, int]:
    """How many runs belong under each of `STATES`, by what the daemon counted."""
    return {
        state: sum(number for told, number in counts.items() if _belongs(*told, state)) for state in STATES
    }


def in_state(run: RunRecord, state: str) -> bool:
    """Whether the run belongs under one of `STATES`."""
    return _belongs(run.status, run.outcome, state)


def _belongs(status: str, outcome: str | None, state: str) -> bool:
    statuses, outcomes = RUN_STATES[state]
    return not statuses or (status in statuses and (not outcome or not outcomes or outcome in outcomes))


def search_text(run: RunRecord) -> str:
    """All that words may find of a run, but for its state."""
    seed = run.worker_config.get("seed")
    return run_filter.search_text(words.kind_of(run), seed, run.tags, run.run_name, run.notes, run.run_id)
