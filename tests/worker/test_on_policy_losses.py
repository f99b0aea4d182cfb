"""A2C and TRPO beside float64 formulas and finite differences; RMSprop beside torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.algorithms import a2c, trpo
from cleanrl_worker.kit.torch_backend import RMSProp
from support.formulas import (
    Floats,
    Weights,
    assert_same,
    assert_slopes,
    layers,
    log_probs_and_entropies,
    log_softmax,
    scattered,
    tensors,
    weights_of,
)

ROWS, OBS, NVEC = 12, 5, (3, 2)


def stack(weights: Weights, net: str, x: Floats) -> Floats:
    """Two tanh layers and a linear one, by their names."""
    return layers(weights, [f"{net}.{layer}" for layer in (0, 2, 4)], x, np.tanh)


def drawn_batch(own: np.random.Generator) -> dict[str, Any]:
    return {
        "obs": own.standard_normal((ROWS, OBS)),
        "actions": np.stack([own.integers(0, size, ROWS) for size in NVEC], axis=1),
        "advantages": own.standard_normal(ROWS),
        "returns": own.standard_normal(ROWS),
    }


@pytest.mark.parametrize("norm_adv", [False, True])
def test_a2c_descends_the_formula_of_its_page(norm_adv: bool) -> None:
    agent = scattered(MLPAgent(OBS, NVEC))
    assert isinstance(agent, MLPAgent)
    args = a2c.Args(ent_coef=0.3, norm_adv=norm_adv)
    batch = a2c.Batch(**drawn_batch(np.random.default_rng(2)))

    def parts(weights: Weights) -> tuple[float, float, float]:
        gains = batch.advantages
        if norm_adv:
            gains = (gains - gains.mean()) / (gains.std(ddof=1) + 1e-8)
        log_probs, entropies = log_probs_and_entropies(
            stack(weights, "actor", batch.obs), batch.actions, NVEC
        )
        values = stack(weights, "critic", batch.obs)[:, 0]
        value_loss = ((values - batch.returns) ** 2).mean()
        return float(value_loss), -float((gains * log_probs).mean()), float(entropies.mean())

    def formula(weights: Weights) -> float:
        value_loss, policy_loss, entropy = parts(weights)
        return policy_loss - 0.3 * entropy + 0.5 * value_loss

    assert_same(agent, lambda: a2c.a2c_loss(agent, args, tensors(batch)), formula)
    logged = a2c.a2c_loss(agent, args, tensors(batch))[1]
    np.testing.assert_allclose(logged.detach(), parts(weights_of(agent)))


def test_rmsprop_steps_as_torchs_own() -> None:
    torch.manual_seed(1)
    ours, theirs = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
    theirs.load_state_dict(ours.state_dict())
    optimizer = RMSProp(ours, eps=1e-5)
    expected = torch.optim.RMSprop(theirs.parameters(), lr=0.01, alpha=0.99, eps=1e-5)
    for _ in range(20):
        obs = torch.randn(8, 4)
        optimizer.update(ours(obs).square().mean(), 0.01)
        expected.zero_grad()
        theirs(obs).square().mean().backward()
        expected.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


def trpo_case(continuous: bool) -> tuple[trpo.Agent, trpo.Batch]:
    own = np.random.default_rng(2)
    space = spaces.Box(-1.0, 1.0, (2,)) if continuous else spaces.MultiDiscrete(list(NVEC))
    agent, given = scattered(trpo.Agent(OBS, space)), drawn_batch(own)
    assert isinstance(agent, trpo.Agent)
    if continuous:
        given["actions"] = own.standard_normal((ROWS, 2))
    return agent, tensors(trpo.Batch(**given))


def trpo_parts(agent: trpo.Agent, batch: trpo.Batch) -> tuple[Any, Any]:
    """Surrogate and divergence of weights from those that the agent has now, in float64."""
    obs, actions, begun = batch.obs.numpy(), batch.actions.numpy(), weights_of(agent)

    def tell(weights: Weights) -> tuple[Any, Any, Any]:
        outputs = stack(weights, "policy", obs)
        if "log_std" not in weights:
            return log_probs_and_entropies(outputs, actions, NVEC)[0], outputs, None
        spread = weights["log_std"]
        log_probs = -((actions - outputs) ** 2) / (2 * np.exp(2 * spread)) - spread - 0.5 * np.log(2 * np.pi)
        return log_probs.sum(axis=1), outputs, spread

    log_probs, before, spread = tell(begun)

    def surrogate(weights: Weights) -> float:
        return float((np.exp(tell(weights)[0] - log_probs) * batch.advantages.numpy()).mean())

    def divergence(weights: Weights) -> float:
        _, outputs, now = tell(weights)
        if now is not None:
            gap = (np.exp(2 * spread) + (before - outputs) ** 2) / (2 * np.exp(2 * now))
            return float((now - spread + gap - 0.5).sum(axis=1).mean())
        total, start = 0.0, 0
        for size in NVEC:
            old, new = (log_softmax(part[:, start : start + size]) for part in (before, outputs))
            total += (np.exp(old) * (old - new)).sum(axis=1).mean()
            start += size
        return float(total)

    return surrogate, divergence


@pytest.mark.parametrize("continuous", [False, True])
def test_trpo_steps_to_the_edge_of_the_trust_region_of_its_formula(continuous: bool) -> None:
    agent, batch = trpo_case(continuous)
    surrogate, divergence = trpo_parts(agent, batch)
    log_probs = agent.log_probs(agent.policy(batch.obs), batch.actions).detach()
    torch.autograd.backward(trpo.surrogate(agent, batch, log_probs))
    learned = dict(agent.policy.named_parameters(prefix="policy"))
    learned |= {} if agent.log_std is None else {"log_std": agent.log_std}
    slopes = {name: one.grad.numpy() for name, one in learned.items() if one.grad is not None}
    weights = {name: one for name, one in weights_of(agent).items() if name in slopes}
    assert slopes.keys() == learned.keys()
    assert all(parameter.grad is None for parameter in agent.value.parameters())
    assert_slopes(weights, slopes, surrogate)

    gained = surrogate(weights_of(agent))
    told = trpo.improve_policy(agent, trpo.Args(target_kl=0.002, cg_damping=0.0), batch)
    moved = weights_of(agent)
    assert told["kl"] == pytest.approx(divergence(moved), rel=1e-6)
    assert told["policy_loss"] == pytest.approx(-surrogate(moved), rel=1e-6)
    # To second order the whole length is what the divergence allows, and the objective rises along it.
    assert 0.3 * 0.002 < told["kl"] <= 0.002
    assert surrogate(moved) > gained


def test_the_values_of_trpo_descend_to_the_returns() -> None:
    agent, batch = trpo_case(False)
    obs, returns = batch.obs.numpy(), batch.returns.numpy()

    def formula(weights: Weights) -> float:
        values = layers(weights, ("0", "2", "4"), obs, np.tanh)[:, 0]
        return float(((values - returns) ** 2).mean())

    def compute() -> tuple[torch.Tensor, torch.Tensor]:
        loss = trpo.value_loss(agent, batch.obs, batch.returns)
        return loss, loss

    assert_same(agent.value, compute, formula)


def test_trpo_solves_for_the_natural_gradient() -> None:
    torch.manual_seed(3)
    root = torch.randn(20, 20, dtype=torch.float64)
    matrix, target = root @ root.T + torch.eye(20), torch.randn(20, dtype=torch.float64)
    found = trpo.conjugate_gradient(lambda vector: matrix @ vector, target, 60)
    torch.testing.assert_close(found, torch.linalg.solve(matrix, target), rtol=1e-3, atol=1e-5)


def test_trpo_stays_where_no_step_is_good() -> None:
    agent, batch = trpo_case(False)
    before = weights_of(agent)
    told = trpo.improve_policy(agent, trpo.Args(), batch._replace(advantages=torch.zeros(ROWS).double()))
    assert (told["kl"], told["step_length"]) == (0.0, 0.0)
    for name, weights in weights_of(agent).items():
        np.testing.assert_array_equal(weights, before[name])
