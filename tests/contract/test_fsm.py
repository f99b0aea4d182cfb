"""The run FSM: every move of the design's table, and no other."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosaic.contract.fsm import (
    LIVE,
    STARTED,
    TRANSITIONS,
    Outcome,
    RunStatus,
    TransitionError,
    check_transition,
)

S, E = RunStatus, Outcome

# The table of docs/architecture.md, written out move by move.
MOVES: set[tuple[RunStatus | None, RunStatus, Outcome | None]] = {
    (None, S.INIT, None),
    (S.INIT, S.HSHK, None),
    (S.HSHK, S.RDY, None),
    (S.RDY, S.EXEC, None),
    (S.EXEC, S.PAUSE, None),
    (S.PAUSE, S.EXEC, None),
    (S.EXEC, S.TERM, E.COMPLETED),
    (S.INIT, S.TERM, E.CANCELLED),
    (S.HSHK, S.TERM, E.CANCELLED),
    (S.RDY, S.TERM, E.CANCELLED),
    (S.EXEC, S.TERM, E.CANCELLED),
    (S.PAUSE, S.TERM, E.CANCELLED),
    (S.INIT, S.TERM, E.TIMED_OUT),
    (S.HSHK, S.TERM, E.TIMED_OUT),
    (S.RDY, S.TERM, E.TIMED_OUT),
    (S.EXEC, S.TERM, E.TIMED_OUT),
    (S.PAUSE, S.TERM, E.TIMED_OUT),
    (S.INIT, S.FAULT, None),
    (S.HSHK, S.FAULT, None),
    (S.RDY, S.FAULT, None),
    (S.EXEC, S.FAULT, None),
    (S.PAUSE, S.FAULT, None),
    (S.FAULT, S.INIT, None),
    (S.FAULT, S.TERM, E.FAILED),
}

ALL_MOVES = list(itertools.product([None, *RunStatus], RunStatus, [None, *Outcome]))


def allowed(old: RunStatus | None, new: RunStatus, outcome: Outcome | None) -> bool:
    try:
        check_transition("01RUN", old, new, outcome)
    except TransitionError:
        return False
    return True


def test_exactly_the_moves_of_the_table_are_allowed() -> None:
    assert {move for move in ALL_MOVES if allowed(*move)} == MOVES


def test_an_ended_run_never_moves_again() -> None:
    assert not any(old is S.TERM for old, _ in TRANSITIONS)


def test_only_an_end_has_an_outcome_and_every_end_has_one() -> None:
    for (_, new), outcomes in TRANSITIONS.items():
        assert (None in outcomes) == (new is not S.TERM)


def test_live_states_are_those_that_can_be_cancelled() -> None:
    assert {old for old, new, outcome in MOVES if outcome is E.CANCELLED} == LIVE
    assert {S.INIT} == LIVE - STARTED


@pytest.mark.parametrize(
    ("move", "told"),
    [
        ((S.TERM, S.EXEC, None), "Run 01RUN cannot go from TERM to EXEC."),
        ((None, S.EXEC, None), "Run 01RUN cannot go from nothing to EXEC."),
        ((S.RDY, S.TERM, E.COMPLETED), "cannot go from RDY to TERM with the outcome completed"),
    ],
)
def test_a_refused_move_is_told_by_name(
    move: tuple[RunStatus | None, RunStatus, Outcome | None], told: str
) -> None:
    with pytest.raises(TransitionError, match=told):
        check_transition("01RUN", *move)


@given(st.lists(st.sampled_from(ALL_MOVES), max_size=60))
def test_no_sequence_of_requests_leads_past_the_table(
    requests: list[tuple[RunStatus | None, RunStatus, Outcome | None]],
) -> None:
    status: RunStatus | None = None
    history: list[RunStatus] = []
    for _, new, outcome in requests:
        if allowed(status, new, outcome):
            assert (status, new, outcome) in MOVES
            status = new
            history.append(new)
    assert history[:1] in ([], [S.INIT])
    assert S.TERM not in history[:-1]
    if S.EXEC in history:
        assert {S.HSHK, S.RDY} <= set(history[: history.index(S.EXEC)])
