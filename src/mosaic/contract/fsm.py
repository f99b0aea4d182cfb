"""The states of a run and the only moves between them."""

from __future__ import annotations

from enum import StrEnum

from mosaic.contract.errors import MosaicError


class RunStatus(StrEnum):
    """Where a run stands."""

    INIT = "INIT"
    HSHK = "HSHK"
    RDY = "RDY"
    EXEC = "EXEC"
    PAUSE = "PAUSE"
    FAULT = "FAULT"
    TERM = "TERM"


class Outcome(StrEnum):
    """How an ended run ended."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    FAILED = "failed"


LIVE = frozenset({RunStatus.INIT, RunStatus.HSHK, RunStatus.RDY, RunStatus.EXEC, RunStatus.PAUSE})
"""States in which a run waits or has processes."""

STARTED = LIVE - {RunStatus.INIT}
"""States in which a supervisor exists, or existed a moment ago."""

MOST_PRIORITY = 1000
"""Of a waiting run, and the least with a minus: the higher starts first."""

_STOPPED_BY_REQUEST = frozenset({Outcome.CANCELLED, Outcome.TIMED_OUT})

# (from, to) -> the outcomes that the move may carry; None stands for a run that does not exist yet.
TRANSITIONS: dict[tuple[RunStatus | None, RunStatus], frozenset[Outcome | None]] = {
    (None, RunStatus.INIT): frozenset({None}),
    (RunStatus.INIT, RunStatus.HSHK): frozenset({None}),
    (RunStatus.HSHK, RunStatus.RDY): frozenset({None}),
    (RunStatus.RDY, RunStatus.EXEC): frozenset({None}),
    (RunStatus.EXEC, RunStatus.PAUSE): frozenset({None}),
    (RunStatus.PAUSE, RunStatus.EXEC): frozenset({None}),
    (RunStatus.EXEC, RunStatus.TERM): frozenset({Outcome.COMPLETED}) | _STOPPED_BY_REQUEST,
    **{(status, RunStatus.TERM): _STOPPED_BY_REQUEST for status in LIVE - {RunStatus.EXEC}},
    **{(status, RunStatus.FAULT): frozenset({None}) for status in LIVE},
    (RunStatus.FAULT, RunStatus.INIT): frozenset({None}),
    (RunStatus.FAULT, RunStatus.TERM): frozenset({Outcome.FAILED}),
}


class TransitionError(MosaicError):
    """A move that the table does not have."""


def check_transition(run_id: str, old: RunStatus | None, new: RunStatus, outcome: Outcome | None) -> None:
    """Refuse any move that is not in the table."""
    allowed = TRANSITIONS.get((old, new))
    if allowed is None:
        raise TransitionError(f"Run {run_id} cannot go from {old or 'nothing'} to {new}.")
    if outcome not in allowed:
        raise TransitionError(f"Run {run_id} cannot go from {old} to {new} with the outcome {outcome}.")
