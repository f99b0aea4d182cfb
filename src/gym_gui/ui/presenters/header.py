"""What the header of the selected run says, and which of its buttons make sense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gym_gui.models import words
from gym_gui.models.facts import RunFacts
from gym_gui.models.run_rows import Finder, overall_state, reason_text
from gym_gui.models.words import State, title_of
from mosaic.client import RunRecord

_MOST_SEEDS = 8


@dataclass(frozen=True)
class HeaderWords:
    """The header of one run, or of all seeds of a configuration together."""

    title: str
    state: State
    meta: str
    """Seed, since when, id."""
    reason: str
    pausing: str | None
    """`Pause` or `Resume`; None when neither makes sense."""
    can_cancel: bool
    can_evaluate: bool
    can_resume_training: bool
    can_remove: bool
    seeds: tuple[tuple[str, str], ...]
    """For a group of several: id and seed of each run. The list has them where they are too many."""
    count: int
    """How many runs the buttons are for."""


def header_words(
    run: RunRecord, meant: Sequence[RunRecord], group: Sequence[RunRecord], facts: RunFacts, find: Finder
) -> HeaderWords:
    """The header for `run`. The buttons are for those `meant`: the run alone, or its whole group."""
    state = overall_state(meant)
    statuses = {one.status for one in meant}
    seeds = words.seeds_text([one.worker_config.get("seed") for one in meant])
    meta = (seeds, _since(run), words.short_id(run.run_id))
    return HeaderWords(
        title=title_of(run),
        state=state,
        meta=" · ".join(filter(None, meta)),
        reason=reason_text(meant, state, find),
        pausing="Pause" if "EXEC" in statuses else "Resume" if "PAUSE" in statuses else None,
        can_cancel=not all(one.ended for one in meant),
        can_evaluate=facts.has_policy and not facts.is_evaluation,
        can_resume_training=facts.has_policy and run.ended and not facts.is_evaluation,
        can_remove=all(one.ended for one in meant),
        seeds=tuple((one.run_id, _seed(one)) for one in group) if 1 < len(group) <= _MOST_SEEDS else (),
        count=len(meant),
    )


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
