"""What the header of the selected run says, and which of its buttons make sense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gym_gui.models import words
from gym_gui.models.facts import RunFacts, is_evaluation
from gym_gui.models.run_rows import Finder, overall_state, reason_text
from gym_gui.models.words import State, title_of
from mosaic.client import RunRecord

_MOST_SEEDS = 8


@dataclass(frozen=True)
class Doable:
    """For how many of some runs each thing makes sense."""

    pausing: str | None
    """`Pause` or `Resume`; None when neither makes sense."""
    pauses: int
    cancels: int
    removes: int
    waits: int


def doable_with(runs: Sequence[RunRecord]) -> Doable:
    """What can be done with these runs."""
    statuses = [run.status for run in runs]
    pausing = "Pause" if "EXEC" in statuses else "Resume" if "PAUSE" in statuses else None
    ended = sum(run.ended for run in runs)
    pauses = statuses.count("EXEC" if pausing == "Pause" else "PAUSE")
    return Doable(pausing, pauses, len(runs) - ended, ended, statuses.count("INIT"))


def for_all(word: str, count: int) -> str:
    """`Cancel`, or `Cancel 3 runs`."""
    return f"{word} {count:,} runs" if count > 1 else word


@dataclass(frozen=True)
class HeaderWords:
    """The header of one run, or of all seeds of a configuration together."""

    title: str
    state: State
    meta: str
    """Seed, since when, id."""
    labels: str
    """Tags and notes."""
    reason: str
    pausing: str | None
    """`Pause` or `Resume`; None when neither makes sense."""
    pauses: int
    """How many runs that is for."""
    cancels: int
    waits: int
    """How many of those have not begun."""
    removes: int
    plays: bool
    """Whether it is a training, whose policy can be evaluated once there is one."""
    can_evaluate: bool
    can_resume_training: bool
    seeds: tuple[tuple[str, str], ...]
    """For a group of several: id and seed of each run. The list has them where they are too many."""
    count: int
    """How many runs the buttons are for."""


def header_words(
    run: RunRecord,
    meant: Sequence[RunRecord],
    group: Sequence[RunRecord],
    marked: bool,
    facts: RunFacts,
    find: Finder,
) -> HeaderWords:
    """The header for `run`. The buttons are for those `meant`: it, its group, or all that are `marked`."""
    shown = [run] if marked else meant
    state = overall_state(shown)
    seeds = words.seeds_text([one.worker_config.get("seed") for one in shown])
    chosen = f"{len(meant)} runs chosen" if marked else ""
    kind = words.kind_of(run) if words.own_name(run) else ""
    meta = (chosen, kind, seeds, _since(run), words.short_id(run.run_id))
    can = doable_with(meant)
    return HeaderWords(
        title=title_of(run),
        state=state,
        meta=" · ".join(filter(None, meta)),
        labels="   ".join(filter(None, (words.tags_text(run.tags), run.notes))),
        reason=reason_text(shown, state, find),
        pausing=can.pausing,
        pauses=can.pauses,
        cancels=can.cancels,
        waits=can.waits,
        removes=can.removes if marked or not can.cancels else 0,
        plays=not is_evaluation(run),
        can_evaluate=can_evaluate(run, facts),
        can_resume_training=can_resume(run, facts),
        seeds=tuple((one.run_id, _seed(one)) for one in group) if 1 < len(group) <= _MOST_SEEDS else (),
        count=len(meant),
    )


def can_evaluate(run: RunRecord, facts: RunFacts) -> bool:
    """Whether the run has a policy of its own to play."""
    return facts.has_policy and not is_evaluation(run)


def can_resume(run: RunRecord, facts: RunFacts) -> bool:
    """Whether a training may go on from what the run has left."""
    return can_evaluate(run, facts) and run.ended


def _seed(run: RunRecord) -> str:
    seed = run.worker_config.get("seed")
    return "–" if seed is None else str(seed)


def _since(run: RunRecord) -> str:
    if run.ended and run.ended_at and run.started_at:
        took = words.duration(run.ended_at - run.started_at)
        return f"ended {words.clock(run.ended_at)} after {took}"
    if run.started_at:
        return f"started {words.clock(run.started_at)}"
    return f"submitted {words.clock(run.submitted_at)}"
