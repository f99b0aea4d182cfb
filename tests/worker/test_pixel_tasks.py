"""The pixel tasks: what one frame hides, what must be remembered, and that they are found by their ids."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from cleanrl_worker.kit.pixel_tasks import SIZE, Catch, Recall
from cleanrl_worker.portable import probe
from cleanrl_worker.schemas.environments import find_environment


@pytest.mark.parametrize("env_id", ["mosaic/Catch-v0", "mosaic/Recall-v0"])
def test_a_task_is_found_by_its_id_and_is_in_the_catalog(env_id: str) -> None:
    env = probe.make_environment(env_id, {"render_mode": "rgb_array"})
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        check_env(env.unwrapped, skip_render_check=True)
    entry = find_environment(env_id)
    assert entry is not None and entry.family == "mosaic" and entry.extra is None
    assert entry.observation == probe.describe_space(env.observation_space)
    env.reset(seed=1)
    picture: Any = env.render()
    assert picture.shape == (4 * SIZE, 4 * SIZE, 3) and picture.dtype == np.uint8
    assert len(env.unwrapped.get_action_meanings()) == env.action_space.n
    assert gymnasium.make(env_id).unwrapped.render() is None
    env.close()


def play(env: gymnasium.Env[Any, int], choose: Any, episodes: int = 300) -> float:
    """The share of episodes that went well."""
    env.reset(seed=1)
    total = 0.0
    for _ in range(episodes):
        env.reset()
        done = False
        while not done:
            _, reward, done, _, _ = env.step(choose())
            total += float(reward)
    return total / episodes


def towards(env: Catch, place: int) -> int:
    aim, at = place + env.BLOCK / 2, env._bat + env.BAT / 2
    return 0 if abs(aim - at) <= 2 else 1 if aim < at else 2


def landing(env: Catch) -> int:
    """Where the block will be when it is down."""
    x, y, drift = env._x, env._y, env._drift
    while y + env.BLOCK < SIZE - env.BAT_HEIGHT:
        x, y = x + drift, y + env.FALL
        if not 0 <= x <= SIZE - env.BLOCK:
            x, drift = (-x if x < 0 else 2 * (SIZE - env.BLOCK) - x), -drift
    return x


def test_every_block_can_be_caught_by_who_knows_its_way_and_few_by_who_follows_it() -> None:
    env = Catch()
    assert play(env, lambda: towards(env, landing(env))) == 1.0
    assert play(env, lambda: towards(env, env._x)) < 0.4
    assert play(env, lambda: 0) < 0.4


@pytest.mark.parametrize("trail", [False, True])
def test_one_frame_shows_which_way_a_block_goes_only_by_its_trail(trail: bool) -> None:
    env = Catch(trail=trail)
    frames = []
    for drift in (-4, 4):
        env.reset(seed=1)
        env._x, env._drift = 40 - 3 * drift, drift
        for _ in range(3):
            frame = env.step(0)[0]
        frames.append(frame)
    assert np.array_equal(*frames) is not trail


def test_a_block_is_caught_when_it_touches_the_bat() -> None:
    env = Catch()
    for place, caught in ((-6, 0.0), (-5, 1.0), (11, 1.0), (12, 0.0)):
        env.reset(seed=1)
        env._bat, env._drift, env._y = 40, 0, SIZE - env.BAT_HEIGHT - env.BLOCK - env.FALL
        env._x = 40 + place
        _, reward, done, _, _ = env.step(0)
        assert done and reward == caught


def test_the_corner_is_seen_early_and_asked_for_when_no_stack_of_four_shows_it() -> None:
    env = Recall()
    waits = set()
    for seed in range(60):
        frames, done = [env.reset(seed=seed)[0]], False
        corner = env._corner
        while not done:
            frame, reward, done, _, _ = env.step(corner)
            frames.append(frame)
            assert reward == float(done)
        *seen, asked, _ = frames
        assert seen[0].any() and np.array_equal(seen[0], seen[1])
        assert not np.any(seen[2:])
        waits.add(len(seen) - 2)
        # Nothing in the frames from which the answer is given tells one corner from another.
        shown = [asked[row, column, 0] for row in (20, 60) for column in (20, 60)]
        assert len(set(shown)) == 1 and shown[0] > 0
    assert waits == set(range(6, 11))


def test_recalling_pays_and_guessing_pays_a_quarter() -> None:
    env = Recall()
    assert play(env, lambda: env._corner) == 1.0
    random = np.random.default_rng(1)
    assert 0.1 < play(env, lambda: int(random.integers(4)), 600) < 0.4
    assert 0.1 < play(env, lambda: 2, 600) < 0.4
