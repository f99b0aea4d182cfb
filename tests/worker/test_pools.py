"""Compiled backends step environments as Python does: ends, returns, final observations, new episodes."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from cleanrl_worker.algorithms import dqn, ppo, ppo_atari, ppo_continuous_action
from cleanrl_worker.kit.envs import AtariOptions, Envs, Episode
from cleanrl_worker.kit.open_envs import open_envs, open_episodes
from cleanrl_worker.kit.pools import AleEnvs, EnvPoolEnvs, EnvPoolEpisodes, EnvPoolTask
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.portable import probe
from cleanrl_worker.schemas.environments import load_environments
from cleanrl_worker.schemas.spaces import grid_of_dict
from cleanrl_worker.wrappers.atari import atari_options

Array = NDArray[Any]


def pool(
    spec: AlgorithmSpec, env_id: str, num_envs: int = 2, seed: int = 5, **kwargs: Any
) -> tuple[Envs, Array]:
    """EnvPool's environments after their reset, and what they show."""
    options = {"env_id": env_id, "env_backend": "envpool", "num_envs": num_envs}
    envs = open_envs(spec, spec.args(**options, env_kwargs=json.dumps(kwargs)))
    obs = np.zeros((num_envs, *envs.observation_space.shape), envs.obs_dtype)
    envs.reset(seed, obs)
    return envs, obs


def breakout(**options: Any) -> AtariOptions:
    return AtariOptions(**{"noop_max": 1, **options})


def test_cartpole_moves_as_gymnasiums_does_and_ends_and_begins_within_one_step() -> None:
    envs, obs = pool(ppo.SPEC, "CartPole-v1", num_envs=3)
    python: Any = gymnasium.make("CartPole-v1").unwrapped
    python.reset()
    ends = 0
    returns = [0.0] * 3
    for _ in range(60):
        before = obs.copy()
        step = envs.step([1, 1, 1], obs)
        finished = iter(step.episodes)
        for index in range(3):
            python.state, python.steps_beyond_terminated = before[index].astype(np.float64), None
            expected, _, terminated, _, _ = python.step(1)
            seen = step.final_obs.get(index, obs[index])
            assert seen == pytest.approx(expected, abs=1e-5)
            assert (step.terminated[index], step.rewards[index]) == (terminated, 1.0)
            returns[index] += 1.0
            if terminated:
                ends += 1
                episode = next(finished)
                assert (episode.total_reward, episode.length) == (returns[index], returns[index])
                assert np.abs(obs[index]).max() <= 0.05, "already the first observation of the next episode"
                returns[index] = 0.0
        assert next(finished, None) is None
    assert ends > 9
    envs.close()


def test_an_episode_that_is_cut_off_is_truncated_and_keeps_its_last_observation() -> None:
    envs, obs = pool(ppo_continuous_action.SPEC, "Pendulum-v1")
    still = [np.zeros(1, np.float32)] * 2
    for _ in range(199):
        before = envs.step(still, obs)
        assert not before.final_obs
    last = obs.copy()
    step = envs.step(still, obs)
    assert (step.terminated, step.truncated) == ([False, False], [True, True])
    assert [episode.length for episode in step.episodes] == [200, 200]
    for index in range(2):
        assert step.final_obs[index] == pytest.approx(last[index], abs=0.5), "one step further on"
        assert np.abs(step.final_obs[index] - obs[index]).max() > 1e-4, "not the next episode's"
    envs.close()


def test_a_seed_gives_the_same_episodes_and_each_environment_its_own() -> None:
    (first, seen), (second, again) = pool(ppo.SPEC, "CartPole-v1"), pool(ppo.SPEC, "CartPole-v1")
    other, different = pool(ppo.SPEC, "CartPole-v1", seed=6)
    assert np.array_equal(seen, again)
    assert not np.array_equal(seen[0], seen[1])
    assert np.array_equal(seen[1], different[0]), "environment n begins from seed + n, as in Python"
    for envs in (first, second, other):
        envs.close()


def test_a_grid_world_shows_what_minigrid_shows() -> None:
    envs, obs = pool(ppo.SPEC, "MiniGrid-Empty-5x5-v0", num_envs=1)
    probe.import_family("MiniGrid-Empty-5x5-v0")
    python = gymnasium.make("MiniGrid-Empty-5x5-v0")
    assert np.array_equal(obs[0], python.reset()[0]["image"])
    assert (obs.dtype, envs.observation_space.shape) == (np.uint8, (7, 7, 3))
    for action in (2, 1, 2, 0, 2, 1):
        step = envs.step([action], obs)
        expected, reward, *_ = python.step(action)
        assert np.array_equal(obs[0], expected["image"])
        assert step.rewards == [reward]
    python.close()
    envs.close()


def test_robots_take_the_numbers_of_gymnasiums_and_show_single_precision() -> None:
    envs, obs = pool(ppo_continuous_action.SPEC, "HalfCheetah-v5")
    python = gymnasium.make("HalfCheetah-v5")
    assert envs.action_space == python.action_space
    assert (obs.dtype, obs.shape) == (np.float32, (2, 17))
    assert len(envs.step([envs.action_space.sample() for _ in range(2)], obs).rewards) == 2
    python.close()
    envs.close()


def test_states_by_number_become_vectors() -> None:
    envs, obs = pool(dqn.SPEC, "FrozenLake-v1")
    assert obs.tolist() == [[1.0] + [0.0] * 15] * 2
    envs.close()


@pytest.mark.parametrize("backend", ["envpool", "ale"])
def test_returns_are_the_games_whatever_the_learner_sees(backend: str) -> None:
    """Clipped rewards and lost lives are for the learner; each point of a game counts in its return."""
    envs = make_atari(backend, "QbertNoFrameskip-v4", AtariOptions(noop_max=1))
    obs = np.zeros((2, 4, 84, 84), np.uint8)
    envs.reset(1, obs)
    random = np.random.default_rng(0)
    clipped, lost, episodes = 0.0, 0, list[Episode]()
    while len(episodes) < 2:
        step = envs.step(random.integers(0, 6, 2).tolist(), obs)
        assert set(step.rewards) <= {-1.0, 0.0, 1.0}
        clipped += sum(step.rewards)
        lost += len(step.final_obs)
        assert sorted(step.final_obs) == np.flatnonzero(step.terminated).tolist()
        episodes += step.episodes
    assert lost >= 4 * len(episodes), "Q*bert has four lives"
    assert all(episode.total_reward >= 25.0 and episode.total_reward % 25.0 == 0.0 for episode in episodes)
    assert sum(episode.total_reward for episode in episodes) > 5 * clipped
    envs.close()


def make_atari(backend: str, env_id: str, options: AtariOptions, num_envs: int = 2, **kwargs: Any) -> Any:
    if backend == "ale":
        return AleEnvs(env_id, num_envs, kwargs, options)
    return EnvPoolEnvs(env_id, num_envs, EnvPoolTask(env_id, kwargs, options), False, options.clip_rewards)


@pytest.mark.parametrize("backend", ["envpool", "ale"])
def test_a_game_that_is_cut_off_is_truncated_and_ends_whatever_lives_are_left(backend: str) -> None:
    limit = {"max_episode_steps": 10} if backend == "envpool" else {"max_num_frames_per_episode": 40}
    envs = make_atari(backend, "PongNoFrameskip-v4", breakout(), **limit)
    obs = np.zeros((2, 4, 84, 84), np.uint8)
    envs.reset(1, obs)
    steps = 0
    while not (step := envs.step([0, 0], obs)).episodes:
        steps += 1
        assert steps < 12
    assert (step.terminated, step.truncated) == ([False, False], [True, True])
    for index in range(2):
        assert not np.array_equal(step.final_obs[index], obs[index]), "the next game has begun"
    envs.close()


@pytest.mark.parametrize("env_id", ["ALE/Pong-v5", "PongNoFrameskip-v4"])
def test_a_game_is_made_as_python_makes_it(env_id: str) -> None:
    """Actions do not stick unless the user says so, whatever the id stands for elsewhere."""
    prepared = atari_options(ppo_atari.Args(), 4)
    assert EnvPoolTask(env_id, {}, prepared).make([1]).config["repeat_action_probability"] == 0.0
    sticky = EnvPoolTask(env_id, {"repeat_action_probability": 0.25}, prepared).make([1])
    assert sticky.config["repeat_action_probability"] == 0.25
    assert sticky.config["stack_num"] == 4


@pytest.mark.parametrize("backend", ["envpool", "ale"])
def test_a_resumed_run_begins_episodes_that_are_not_those_it_began_with(backend: str) -> None:
    first: list[Array] = []
    state: Any = {}
    for round_ in range(3):
        envs = make_atari(backend, "PongNoFrameskip-v4", AtariOptions())
        obs = np.zeros((2, 4, 84, 84), np.uint8)
        assert not envs.exact
        if round_:
            envs.load(state)
            assert sorted(envs.begun) == [0, 1]
            obs = np.stack([envs.begun[0], envs.begun[1]])
        else:
            envs.reset(1, obs)
            assert not envs.begun
        for _ in range(40):
            envs.step([0, 0], obs)
        first.append(obs.copy())
        state = envs.state()
        envs.close()
    assert state == {"seed": 1, "resumed": 2}
    assert not any(np.array_equal(first[0], other) for other in first[1:])


def test_episodes_of_what_only_envpool_has_are_played_there_from_their_seeds() -> None:
    spec = ppo_continuous_action.SPEC
    args = spec.args(env_id="CheetahRun-v1", env_backend="envpool")
    with open_episodes(spec, args, 2) as envs:
        assert isinstance(envs, EnvPoolEpisodes)
        obs = np.zeros((2, *envs.observation_space.shape), envs.obs_dtype)
        envs.restart(0, 3, obs)
        envs.restart(1, 3, obs)
        assert np.array_equal(obs[0], obs[1])
        first = obs[0].copy()
        envs.restart(1, 4, obs)
        assert not np.array_equal(obs[0], obs[1])
        for _ in range(999):
            assert envs.advance([1], [np.zeros(6, np.float32)], obs)[1] == [False]
        assert envs.advance([1], [np.zeros(6, np.float32)], obs)[1] == [True]
        assert np.array_equal(obs[0], first), "the other one waits"


def test_what_python_has_is_evaluated_in_python() -> None:
    args = ppo.SPEC.args(env_id="CartPole-v1", env_backend="envpool")
    with open_episodes(ppo.SPEC, args, 1) as envs:
        assert not isinstance(envs, EnvPoolEpisodes)


def test_ids_that_envpool_shares_with_gymnasium_are_the_same_tasks() -> None:
    """Observations, actions and time limits agree, so a policy of the one plays the other."""
    compared = 0
    for env_id, entry in load_environments().items():
        if probe.is_atari(env_id):
            continue
        try:
            found = probe.describe_with("envpool", env_id, {})
        except probe.ProbeError:
            continue
        compared += 1
        was = grid_of_dict(entry.observation) or entry.observation
        for name in ("kind", "shape", "n"):
            assert found["observation"].get(name) == was.get(name), env_id
            assert found["action"].get(name) == entry.action.get(name), env_id
        if entry.max_episode_steps is not None:
            assert found["max_episode_steps"] == entry.max_episode_steps, env_id
    assert compared > 200
