"""Kernels compute what the torch code of their algorithm computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from cleanrl_worker.agents.gaussian import GaussianAgent
from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.algorithms import ppo_continuous_action as continuous
from cleanrl_worker.algorithms.ppo import Args, Batch, TorchLearner, make_learner
from cleanrl_worker.kernels.ppo import PPOKernel, fits
from cleanrl_worker.kernels.ppo_gaussian import GaussianPPOKernel
from cleanrl_worker.training.optimizer import Adam

OBS, ACTIONS, SIZE = 5, 3, 64


def make_batch(seed: int) -> Batch:
    random = np.random.default_rng(seed)

    def floats(*shape: int) -> Any:
        return random.normal(size=shape).astype(np.float32)

    # Old probabilities and values far from the new ones, so that both clippings bite.
    return Batch(
        obs=floats(SIZE, OBS),
        actions=random.integers(0, ACTIONS, (SIZE, 1)),
        log_probs=-np.abs(floats(SIZE)) - 0.5,
        advantages=floats(SIZE),
        returns=floats(SIZE),
        values=0.3 * floats(SIZE),
    )


def learners(args: Args) -> tuple[TorchLearner, MLPAgent, Adam, PPOKernel, MLPAgent, Adam]:
    torch.manual_seed(1)
    reference = MLPAgent(OBS, ACTIONS)
    fused = MLPAgent(OBS, ACTIONS)
    fused.load_state_dict(reference.state_dict())
    first, second = Adam(reference, eps=1e-5), Adam(fused, eps=1e-5)
    return (
        TorchLearner(reference, first, args),
        reference,
        first,
        PPOKernel(fused, second, args),
        fused,
        second,
    )


@pytest.mark.parametrize(
    "changes",
    [{}, {"clip_vloss": False}, {"norm_adv": False}, {"ent_coef": 0.3}, {"max_grad_norm": 0.01}],
    ids=str,
)
def test_the_ppo_kernel_takes_the_same_steps(changes: dict[str, Any]) -> None:
    args = Args(**changes)
    torch_learner, _, first, kernel, _, second = learners(args)
    order = np.random.default_rng(0)
    for number in range(50):
        batch = make_batch(number)
        rows = order.permutation(SIZE)[:48]
        expected = torch_learner.learn(batch, rows, 1e-3)
        given = kernel.learn(batch, rows, 1e-3)
        np.testing.assert_allclose(given, expected, rtol=2e-4, atol=2e-6)
        np.testing.assert_allclose(
            second.gradient.numpy(), first.gradient.numpy(), rtol=1e-3, atol=2e-6, err_msg=f"update {number}"
        )
    np.testing.assert_allclose(second.weights.numpy(), first.weights.numpy(), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(second.first_moment.numpy(), first.first_moment.numpy(), rtol=1e-2, atol=1e-6)
    assert float(second.step) == float(first.step) == 50


def test_the_ppo_kernel_acts_and_values_alike_and_shares_the_agents_memory() -> None:
    torch_learner, _, _, kernel, fused, second = learners(Args())
    obs = np.random.default_rng(2).normal(size=(7, OBS)).astype(np.float32)
    np.testing.assert_allclose(kernel.logits(obs), torch_learner.logits(obs), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(kernel.values(obs), torch_learner.values(obs), rtol=1e-5, atol=1e-6)
    before = fused.state_dict()["actor.0.weight"].clone()
    kernel.learn(make_batch(0), np.arange(SIZE), 1e-2)
    assert not torch.equal(before, fused.state_dict()["actor.0.weight"])
    assert float(second.step) == 1


@pytest.mark.parametrize(
    "changes",
    [{}, {"clip_vloss": False}, {"norm_adv": False}, {"ent_coef": 0.3}, {"max_grad_norm": 0.01}],
    ids=str,
)
def test_the_gaussian_ppo_kernel_takes_the_same_steps(changes: dict[str, Any]) -> None:
    args = continuous.Args(**changes)
    torch.manual_seed(1)
    reference, fused = GaussianAgent(OBS, ACTIONS), GaussianAgent(OBS, ACTIONS)
    fused.load_state_dict(reference.state_dict())
    first, second = Adam(reference, eps=1e-5), Adam(fused, eps=1e-5)
    torch_learner = continuous.TorchLearner(reference, first, args)
    kernel = GaussianPPOKernel(fused, second, args)
    random = np.random.default_rng(0)
    for number in range(50):
        discrete = make_batch(number)
        actions = random.normal(size=(SIZE, ACTIONS)).astype(np.float32)
        fields = {**vars(discrete), "actions": actions, "log_probs": discrete.log_probs - 3.0}
        batch = continuous.Batch(**fields)
        rows = random.permutation(SIZE)[:48]
        shift = random.uniform(-0.5, 0.5, (48, ACTIONS)).astype(np.float32)
        expected = torch_learner.learn(batch, rows, shift, 1e-3)
        given = kernel.learn(batch, rows, shift, 1e-3)
        np.testing.assert_allclose(given, expected, rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(second.gradient.numpy(), first.gradient.numpy(), rtol=2e-3, atol=5e-6)
    np.testing.assert_allclose(second.weights.numpy(), first.weights.numpy(), rtol=1e-3, atol=2e-5)


def test_torch_is_used_where_no_kernel_fits_or_none_is_wanted() -> None:
    shared = MLPAgent(OBS, ACTIONS, shared_trunk=True)
    assert not fits(shared)
    assert isinstance(make_learner(shared, Adam(shared, eps=1e-5), Args()), TorchLearner)
    plain = MLPAgent(OBS, ACTIONS)
    assert isinstance(make_learner(plain, Adam(plain, eps=1e-5), Args(kernels=False)), TorchLearner)
    assert isinstance(make_learner(plain, Adam(plain, eps=1e-5), Args()), PPOKernel)
