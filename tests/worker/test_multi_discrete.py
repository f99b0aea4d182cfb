"""Several discrete choices made at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.algorithms import ppo
from cleanrl_worker.algorithms.ppo import Args, Batch
from cleanrl_worker.kit.discrete_actions import DiscreteActions
from mosaic.analytics.store import RunMetrics

NVEC, OBS = (3, 2, 4), 5


class Copy(gymnasium.Env[Any, Any]):
    """Each step shows one wanted choice per dimension and rewards those that are met; ten steps long."""

    def __init__(self, action_space: Any) -> None:
        self.action_space = action_space
        self.observation_space = spaces.Box(0.0, 4.0, (len(DiscreteActions(action_space).nvec),))

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._steps = 0
        return self._want(), {}

    def step(self, action: Any) -> Any:
        assert action in self.action_space
        met = np.asarray(action).reshape(-1) == self._wanted
        self._steps += 1
        return self._want(), float(met.mean()), self._steps == 10, False, {}

    def _want(self) -> Any:
        self.action_space.seed(int(self.np_random.integers(2**31)))
        self._wanted = np.asarray(self.action_space.sample()).reshape(-1)
        return self._wanted.astype(np.float32)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    for name, space in (
        ("CopyNumbers-v0", spaces.MultiDiscrete([2, 3])),
        ("CopySwitches-v0", spaces.MultiBinary(2)),
    ):
        gymnasium.register(name, Copy, kwargs={"action_space": space})
    yield
    for name in ("CopyNumbers-v0", "CopySwitches-v0"):
        del gymnasium.registry[name]


@pytest.mark.parametrize(
    ("space", "nvec", "choices", "taken"),
    [
        (spaces.Discrete(3, start=5), (3,), [[2], [0]], [7, 5]),
        (spaces.MultiDiscrete([3, 2], start=[1, 0]), (3, 2), [[2, 1]], [[3, 1]]),
        (spaces.MultiDiscrete([[3, 2], [2, 2]]), (3, 2, 2, 2), [[2, 1, 0, 1]], [[[2, 1], [0, 1]]]),
        (spaces.MultiBinary([2, 1]), (2, 2), [[1, 0]], [[[1], [0]]]),
    ],
)
def test_choices_become_what_the_environment_takes(
    space: Any, nvec: tuple[int, ...], choices: Any, taken: Any
) -> None:
    actions = DiscreteActions(space)
    assert actions.nvec == nvec
    given = actions.for_envs(np.array(choices))
    assert all(action in space for action in given)
    assert [np.asarray(action).tolist() for action in given] == taken


def test_probabilities_are_those_of_independent_choices() -> None:
    torch.manual_seed(2)
    agent, actions = MLPAgent(OBS, NVEC), DiscreteActions(spaces.MultiDiscrete(NVEC))
    obs = torch.randn(12, OBS)
    logits = agent.logits(obs).detach()
    parts = [torch.distributions.Categorical(logits=part) for part in logits.split(NVEC, dim=1)]
    chosen = actions.best(torch.randn(12, sum(NVEC)).numpy())
    expected = sum(part.log_prob(torch.from_numpy(chosen[:, n])) for n, part in enumerate(parts))
    found = actions.log_probs(logits.numpy(), chosen)
    torch.testing.assert_close(torch.from_numpy(found), expected)

    zeros = torch.zeros(12)
    batch = Batch(
        obs, torch.from_numpy(chosen), torch.from_numpy(found), zeros, zeros, zeros, torch.arange(12)
    )
    _, values = ppo.ppo_loss(agent, Args(norm_adv=False), batch)
    logged = dict(zip(ppo.LOGGED, values.tolist(), strict=True))
    assert logged["entropy"] == pytest.approx(float(sum(part.entropy().mean() for part in parts)))
    assert logged["old_approx_kl"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("env_id", ["CopyNumbers-v0", "CopySwitches-v0"])
def test_ppo_learns_every_choice(env_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--total-timesteps=16000", "--learning-rate=0.002", "--gamma=0.5", "--seed=2"]
    assert ppo.main([f"--env-id={env_id}", *flags]) == 0
    returns = RunMetrics.open(tmp_path / "runs").series("charts/episodic_return").values
    assert np.mean(returns[:40]) < 6.0
    assert np.mean(returns[-40:]) > 9.0
