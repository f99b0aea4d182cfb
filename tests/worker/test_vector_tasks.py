"""The vector tasks: what a mask tells and what must be remembered, and that they are found by their ids."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from cleanrl_worker.kit.vector_tasks import Corridor, Dial
from cleanrl_worker.portable import probe
from cleanrl_worker.schemas.environments import find_environment


@pytest.mark.parametrize("env_id", ["mosaic/Dial-v0", "mosaic/Corridor-v0"])
def test_a_task_is_found_by_its_id_and_is_in_the_catalog(env_id: str) -> None:
    env = probe.make_environment(env_id, {})
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        check_env(env.unwrapped, skip_render_check=True)
    entry = find_environment(env_id)
    assert entry is not None and entry.family == "mosaic" and entry.extra is None
    assert entry.observation == probe.describe_space(env.observation_space)
    env.close()


def play(env: Any, choose: Any, episodes: int = 400) -> float:
    """The share of episodes that went well; `choose` sees observation, info and the first observation."""
    total = 0.0
    for number in range(episodes):
        obs, info = env.reset(seed=number)
        first, done = obs, False
        while not done:
            obs, reward, done, _, info = env.step(choose(obs, info, first))
            total += reward
    return total / episodes


def nearest(obs: Any, info: Any, first: Any) -> int:
    """The free turn that brings the dial nearest to 0."""
    at = int(obs[: Dial.POSITIONS].argmax())
    left = [(at + turn) % Dial.POSITIONS for turn in Dial.TURNS]
    far = np.array([min(place, Dial.POSITIONS - place) for place in left], float)
    return int(np.where(info["action_mask"], far, np.inf).argmin())


def test_the_dial_opens_to_who_heeds_the_mask_and_breaks_for_others() -> None:
    assert play(Dial(), nearest) > 0.6
    random = np.random.default_rng(1)
    assert play(Dial(), lambda obs, info, first: random.choice(np.flatnonzero(info["action_mask"]))) < 0.2
    everything = {"action_mask": np.ones(len(Dial.TURNS), np.int8)}
    assert play(Dial(), lambda obs, info, first: nearest(obs, everything, first)) < 0.15


def test_the_corridor_rewards_who_remembers_the_sign() -> None:
    def at_the_end(obs: Any, turn: int) -> int:
        return turn if obs[3] else 0

    assert play(Corridor(), lambda obs, info, first: at_the_end(obs, 1 + int(first[1]))) == 1.0
    assert 0.4 < play(Corridor(), lambda obs, info, first: at_the_end(obs, 1)) < 0.6


@pytest.mark.parametrize("task", [Dial, Corridor])
def test_what_is_watched_changes_with_the_steps(task: type[Dial | Corridor]) -> None:
    assert task().render() is None
    env = task(render_mode="rgb_array")
    env.reset(seed=1)
    before = env.render()
    env.step(0)
    assert before.dtype == np.uint8 and before.shape[2] == 3
    assert (env.render() != before).any()
