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
from cleanrl_worker.algorithms.ppo import Args, Batch, DiscreteSampler, TorchLearner
from cleanrl_worker.kernels.ppo import PPOKernel, fits
from cleanrl_worker.training.discrete_actions import DiscreteActions
from cleanrl_worker.training.optimizer import Adam
from mosaic.analytics.event_files import EventReader
from mosaic.analytics.table import MetricTable

NVEC, OBS, SIZE = (3, 2, 4), 5, 64


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


def make_batch(random: np.random.Generator) -> Batch:
    def floats(*shape: int) -> Any:
        return random.normal(size=shape).astype(np.float32)

    actions = np.stack([random.integers(0, size, SIZE) for size in NVEC], axis=1)
    log_probs = -np.abs(floats(SIZE)) - 2.5
    return Batch(floats(SIZE, OBS), actions, log_probs, floats(SIZE), floats(SIZE), 0.3 * floats(SIZE))


def test_the_kernel_takes_the_same_steps_as_torch() -> None:
    torch.manual_seed(1)
    args = Args(ent_coef=0.1)
    reference, fused = MLPAgent(OBS, NVEC), MLPAgent(OBS, NVEC)
    fused.load_state_dict(reference.state_dict())
    assert reference.actor[-1].weight.shape == (9, 64) and fits(fused)
    first, second = Adam(reference, eps=1e-5), Adam(fused, eps=1e-5)
    torch_learner, kernel = TorchLearner(reference, first, args), PPOKernel(fused, second, args)
    random = np.random.default_rng(0)
    for _ in range(30):
        batch, rows = make_batch(random), random.permutation(SIZE)[:48]
        expected = torch_learner.learn(batch, rows, 1e-3)
        np.testing.assert_allclose(kernel.learn(batch, rows, 1e-3), expected, rtol=2e-4, atol=2e-6)
        np.testing.assert_allclose(second.gradient.numpy(), first.gradient.numpy(), rtol=1e-3, atol=2e-6)
    np.testing.assert_allclose(second.weights.numpy(), first.weights.numpy(), rtol=1e-3, atol=1e-5)


def test_probabilities_are_those_of_independent_choices() -> None:
    torch.manual_seed(2)
    agent, args = MLPAgent(OBS, NVEC), Args(norm_adv=False)
    learner = TorchLearner(agent, Adam(agent, eps=1e-5), args)
    sampler = DiscreteSampler(learner, 3, 4, DiscreteActions(spaces.MultiDiscrete(NVEC)))
    obs = np.random.default_rng(0).normal(size=(3, 4, OBS)).astype(np.float32)
    for t in range(3):
        sampler.act(t, obs[t])
    logits = agent.logits(torch.from_numpy(obs.reshape(12, OBS))).detach()
    parts = [torch.distributions.Categorical(logits=part) for part in logits.split(NVEC, dim=1)]
    chosen = torch.from_numpy(sampler.actions.reshape(12, -1))
    expected = sum(part.log_prob(chosen[:, column]) for column, part in enumerate(parts))
    torch.testing.assert_close(torch.from_numpy(sampler.log_probs()), expected)

    zeros = np.zeros(12, dtype=np.float32)
    batch = Batch(obs.reshape(12, OBS), chosen.numpy(), sampler.log_probs(), zeros, zeros, zeros)
    logged = dict(zip(ppo.LOGGED, learner.learn(batch, np.arange(12), 0.0), strict=True))
    assert logged["entropy"] == pytest.approx(float(sum(part.entropy().mean() for part in parts)))
    assert logged["old_approx_kl"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("env_id", ["CopyNumbers-v0", "CopySwitches-v0"])
def test_ppo_learns_every_choice(env_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--total-timesteps=16000", "--learning-rate=0.002", "--gamma=0.5", "--seed=2"]
    assert ppo.main([f"--env-id={env_id}", *flags]) == 0
    returns = (
        MetricTable(EventReader(tmp_path / "runs").poll(1_000_000)).series("charts/episodic_return").values
    )
    assert np.mean(returns[:40]) < 6.0
    assert np.mean(returns[-40:]) > 9.0
