"""The bounds of the learning benchmark can be missed."""

from __future__ import annotations

import pytest
from learning_plan import PLAN, RANGES, Row


@pytest.mark.parametrize("row", PLAN, ids=lambda row: f"{row.algo} {row.env_id}")
def test_the_worst_return_reaches_no_bound(row: Row) -> None:
    if row.env_id in RANGES:
        assert row.verdict(RANGES[row.env_id][0]) in ("**no**", "not solved here")


def test_a_bound_is_below_the_published_mean_or_that_itself() -> None:
    assert Row("a", "CartPole-v1", 9, (490.0, 30.0)).bound == 430.0
    car = Row("a", "MountainCar-v0", 9, (-190.0, 8.0))
    assert (car.bound, car.verdict(-189.0), car.verdict(-191.0)) == (-190.0, "yes", "**no**")
    never = Row("a", "MountainCar-v0", 9, (-200.0, 0.0))
    assert (never.bound, never.verdict(-200.0), never.verdict(-150.0)) == (None, "not solved here", "–")
