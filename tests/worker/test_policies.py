"""Policies take the actions that their weights mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from torch import Tensor

from cleanrl_worker.evaluation.models import SavedModel, find_spec
from cleanrl_worker.kit.policy import Policy
from support.foreign_models import actor, c51_file, critic, layers


class Given:
    """Spaces for a policy that plays in no environment."""

    def __init__(self, observation_space: Any, action_space: Any) -> None:
        self.observation_space, self.action_space = observation_space, action_space


def load(algo: str, weights: Any, spaces: Given) -> Policy:
    spec = find_spec(algo)
    return SavedModel("mine", spec, spec.args(), weights).load_policy(spaces)


def by_hand(weights: dict[str, Tensor], names: list[str], obs: Tensor, between: Any) -> Tensor:
    """What linear layers give, with a function between them."""
    for name in names:
        obs = obs @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        if name != names[-1]:
            obs = between(obs)
    return obs


def assert_close(given: Any, expected: Any) -> None:
    np.testing.assert_allclose(given, expected, rtol=1e-4, atol=1e-4)


def test_actions_are_those_that_the_weights_mean() -> None:
    obs = torch.randn(40, 4)
    spaces = Given(Box(-9.0, 9.0, (4,)), Discrete(2, start=5))
    plain = layers("network", 4, 120, 84, 2)
    values = by_hand(plain, ["network.0", "network.2", "network.4"], obs, torch.relu)
    policy = load("dqn", plain, spaces)
    assert policy.act(obs.numpy()) == (values.argmax(1) + 5).tolist()
    assert_close(policy.judge(obs.numpy()).action_values, values)

    agent = layers("critic", 4, 64, 64, 1) | layers("actor", 4, 64, 64, 2)
    logits = by_hand(agent, ["actor.0", "actor.2", "actor.4"], obs, torch.tanh)
    opinion = load("ppo", agent, spaces).judge(obs.numpy())
    assert_close(opinion.probabilities, logits.softmax(1))
    expected = by_hand(agent, ["critic.0", "critic.2", "critic.4"], obs, torch.tanh)[:, 0]
    assert_close(opinion.values, expected)

    spread = c51_file(atoms=False)
    weights = spread["model_weights"]
    logits = by_hand(weights, ["network.0", "network.2", "network.4"], obs, torch.relu)
    means = logits.view(40, 2, 11).softmax(2) @ torch.linspace(-5.0, 5.0, 11)
    assert_close(load("c51", spread, spaces).judge(obs.numpy()).action_values, means)


def test_continuous_actions_are_scaled_and_stay_in_bounds() -> None:
    obs, bounds = torch.randn(40, 3), Given(Box(-9.0, 9.0, (3,)), Box(-2.0, 2.0, (1,)))
    weights = actor("fc_mu", row=True)
    squashed = torch.tanh(by_hand(weights, ["fc1", "fc2", "fc_mu"], obs, torch.relu)) * 2.0
    policy = load("ddpg_continuous_action", (weights, critic()), bounds)
    assert_close(policy.act(obs.numpy()), squashed)
    assert np.asarray(policy.judge(obs.numpy()).values).shape == (40,)
    noisy = np.stack(policy.act(obs.numpy(), deterministic=False))
    assert 0.0 < np.abs(noisy - squashed.numpy()).max() < 2.0
    assert np.abs(noisy).max() <= 2.0
    wide = layers("critic", 3, 64, 64, 1) | layers("actor_mean", 3, 64, 64, 1)
    wide["actor_logstd"] = torch.full((1, 1), 3.0)
    drawn = np.stack(load("ppo_continuous_action", wide, bounds).act(obs.numpy(), deterministic=False))
    assert np.abs(drawn).max() == 2.0 and len(np.unique(drawn)) > 2


def test_random_actions_follow_the_policys_chances() -> None:
    spaces, obs = Given(Box(-9.0, 9.0, (4,)), Discrete(2)), np.zeros((4000, 4), np.float32)
    q_values = {name: torch.zeros_like(value) for name, value in layers("network", 4, 120, 84, 2).items()}
    q_values["network.4.bias"] = torch.tensor([1.0, 2.0])
    drawn = load("dqn", q_values, spaces).act(obs, deterministic=False)
    # Of the 5 % random actions that the script ends with, half are the best one all the same.
    assert 60 < drawn.count(0) < 140
    agent = layers("critic", 4, 64, 64, 1) | layers("actor", 4, 64, 64, 5)
    agent = {name: torch.zeros_like(value) for name, value in agent.items()}
    agent["actor.4.bias"] = torch.tensor([0.9, 0.1, 0.2, 0.5, 0.3]).log()
    policy = load("ppo", agent, Given(spaces.observation_space, MultiDiscrete([2, 3])))
    assert np.mean(policy.act(obs, deterministic=False), axis=0) == pytest.approx([0.1, 1.1], abs=0.05)
    assert policy.act(obs[:1])[0].tolist() == [0, 1]
    chances = policy.judge(obs[:1]).probabilities
    assert chances is not None
    assert chances[0] == pytest.approx([0.9, 0.1, 0.2, 0.5, 0.3], abs=1e-5)
