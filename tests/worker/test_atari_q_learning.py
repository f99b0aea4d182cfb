"""Q-learning from pictures: losses against float64 written from the papers, and what the buffer holds."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cleanrl_worker.agents.q_networks import DistributionalQNetwork, NatureQNetwork
from cleanrl_worker.algorithms import c51_atari, dqn_atari
from cleanrl_worker.kit.accelerate import as_tensors
from cleanrl_worker.kit.replay import FrameBuffer, Replay, Sample
from cleanrl_worker.kit.run import Run, train
from cleanrl_worker.kit.stopping import StopSignals
from support.nature import assert_slopes, features, gradient_of, linear, softmax, spread, weights_of

SHAPE, ACTIONS, ROWS = (36, 36, 4), 3, 6


def sample(seed: int = 1) -> Sample:
    dice = np.random.default_rng(seed)
    return Sample(
        obs=dice.integers(0, 256, (ROWS, *SHAPE), np.uint8),
        next_obs=dice.integers(0, 256, (ROWS, *SHAPE), np.uint8),
        actions=dice.integers(0, ACTIONS, ROWS),
        rewards=dice.standard_normal(ROWS).astype(np.float32),
        dones=np.array([0, 1, 0, 0, 1, 0], np.float32),
    )


def test_the_loss_of_dqn_is_that_of_its_formula() -> None:
    torch.manual_seed(1)
    network, target = NatureQNetwork(SHAPE, ACTIONS), NatureQNetwork(SHAPE, ACTIONS)
    args, batch = dqn_atari.Args(gamma=0.9), sample()
    old = weights_of(target)

    def values(weights: Any, obs: Any) -> Any:
        return linear(weights, "network.9", features(weights, obs))

    def loss(weights: Any) -> float:
        targets = batch.rewards + 0.9 * (1.0 - batch.dones) * values(old, batch.next_obs).max(axis=1)
        chosen = values(weights, batch.obs)[np.arange(ROWS), batch.actions]
        return float(((chosen - targets) ** 2).mean())

    logged = gradient_of(network, dqn_atari.dqn_loss(network, target, args, as_tensors(batch, "cpu")))
    now = weights_of(network)
    mean = values(now, batch.obs)[np.arange(ROWS), batch.actions].mean()
    np.testing.assert_allclose(logged, [loss(now), mean], rtol=1e-4, atol=1e-6)
    assert_slopes(network, loss)


def test_the_loss_of_c51_is_that_of_its_formula() -> None:
    torch.manual_seed(1)
    network, target = (DistributionalQNetwork(SHAPE, ACTIONS, 7, -1.0, 2.0) for _ in range(2))
    args, batch = c51_atari.Args(gamma=0.9, n_atoms=7, v_min=-1.0, v_max=2.0), sample()
    old, atoms, each = weights_of(target), np.linspace(-1.0, 2.0, 7), np.arange(ROWS)

    def chances(weights: Any, obs: Any) -> Any:
        return softmax(linear(weights, "network.9", features(weights, obs)).reshape(ROWS, ACTIONS, 7))

    def loss(weights: Any) -> float:
        following = chances(old, batch.next_obs)
        best = (following @ atoms).argmax(axis=1)
        discounts = 0.9 * (1.0 - batch.dones)
        wanted = spread(following[each, best], batch.rewards, discounts, atoms)
        return float(-(wanted * np.log(chances(weights, batch.obs)[each, batch.actions])).sum(axis=1).mean())

    logged = gradient_of(network, c51_atari.c51_loss(network, target, args, as_tensors(batch, "cpu")))
    now = weights_of(network)
    mean = (chances(now, batch.obs)[each, batch.actions] @ atoms).mean()
    np.testing.assert_allclose(logged, [loss(now), mean], rtol=1e-4, atol=1e-6)
    assert_slopes(network, loss)


def remember(run: Run[Any]) -> None:
    """What every algorithm here does with its buffer, and a look at what it holds and draws."""
    replay = run.keep("replay", Replay(run, 1_000, (), "int64"))
    for _ in run.updates(every=2):
        replay.step([1, 2], [1, 2])
    buffer: Any = replay._buffer
    assert isinstance(buffer, FrameBuffer)
    drawn = replay.sample(500)
    assert drawn.obs.shape == (500, 84, 84, 4) and drawn.obs.dtype == np.uint8
    np.testing.assert_array_equal(drawn.obs[..., 1:], drawn.next_obs[..., :-1])
    # The block falls by four rows with each step, and has fallen in the next observation.
    tops = [(one == 255).any(axis=2).argmax(axis=1) for one in (drawn.obs[..., 3], drawn.next_obs[..., 3])]
    np.testing.assert_array_equal(tops[0] + 4, tops[1])
    np.testing.assert_array_equal(drawn.dones, tops[1] + 6 >= 80)
    # One frame for each step and one more for each episode, of nineteen steps.
    assert buffer._used <= 200 + 2 * (200 // 19 + 2)


def test_pictures_of_the_wrappers_are_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = dataclasses.replace(dqn_atari.SPEC, train=remember, model={})
    args = dqn_atari.Args(
        env_id="mosaic/Catch-v0", num_envs=2, total_timesteps=200, eval_episodes=0, save_model=False
    )
    with StopSignals() as stop:
        train(spec, args, stop)
