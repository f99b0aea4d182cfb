"""A typo gets the nearest name; nothing gets a wild guess."""

from __future__ import annotations

import pytest

from mosaic.contract.errors import ConflictError, MosaicError, NotFoundError, StorageError, UserError, closest


@pytest.mark.parametrize(
    ("typo", "nearest"),
    [
        ("pp0", "ppo"),
        ("PPO", "ppo"),
        ("learning_rat", "learning_rate"),
        ("cartpole-v1", "CartPole-v1"),
        ("CartPol-v1", "CartPole-v1"),
    ],
)
def test_the_nearest_name_is_proposed(typo: str, nearest: str) -> None:
    known = ["ppo", "dqn", "learning_rate", "CartPole-v1", "Acrobot-v1"]
    assert closest(typo, known) == f"; did you mean '{nearest}'?"


def test_a_name_far_from_all_gets_no_proposal() -> None:
    assert closest("zebra", ["ppo", "dqn"]) == ""
    assert closest("ppo", []) == ""


def test_what_the_user_can_change_ends_with_code_two_and_the_rest_with_one() -> None:
    assert {kind.exit_code for kind in (UserError, NotFoundError, StorageError)} == {2}
    assert {kind.exit_code for kind in (MosaicError, ConflictError)} == {1}
