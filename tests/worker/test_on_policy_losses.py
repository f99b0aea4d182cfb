"""Losses of algorithms that learn from fresh rollouts beside float64 formulas and finite differences."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from cleanrl_worker.agents.memory import GRUAgent
from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.algorithms import a2c, ppo_gru, trpo
from cleanrl_worker.kit.accelerate import Gradient
from cleanrl_worker.kit.torch_backend import Adam, RMSProp

Weights = dict[str, NDArray[np.float64]]
ROWS, OBS, NVEC = 12, 5, (3, 2)


def weights_of(module: torch.nn.Module) -> Weights:
    return {name: value.detach().double().numpy().copy() for name, value in module.named_parameters()}


def stack(weights: Weights, net: str, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Two tanh layers and a linear one, by their names."""
    for layer in (0, 2):
        x = np.tanh(x @ weights[f"{net}.{layer}.weight"].T + weights[f"{net}.{layer}.bias"])
    outputs: NDArray[np.float64] = x @ weights[f"{net}.4.weight"].T + weights[f"{net}.4.bias"]
    return outputs


def log_softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    found: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return found


def choices(logits: NDArray[np.float64], actions: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log probability and entropy of each row of choices made at once."""
    total, entropy, start = np.zeros(len(logits)), np.zeros(len(logits)), 0
    for column, size in enumerate(NVEC):
        own = log_softmax(logits[:, start : start + size])
        total += own[np.arange(len(own)), actions[:, column]]
        entropy -= (np.exp(own) * own).sum(axis=1)
        start += size
    return total, entropy


def assert_gradients(
    module: torch.nn.Module, loss: Callable[[Weights], float], per_parameter: int = 12
) -> None:
    """The gradient in memory is that of a float64 loss, in some numbers of each parameter."""
    weights, own = weights_of(module), np.random.default_rng(3)
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None
        found = parameter.grad.double().numpy().reshape(-1)
        flat = weights[name].reshape(-1)
        for at in own.choice(flat.size, min(per_parameter, flat.size), replace=False):
            was, both = flat[at], []
            for move in (1e-5, -1e-5):
                flat[at] = was + move
                both.append(loss(weights))
            flat[at] = was
            expected = (both[0] - both[1]) / 2e-5
            assert found[at] == pytest.approx(expected, rel=2e-3, abs=2e-6), (name, at)


def drawn_batch(own: np.random.Generator) -> dict[str, Any]:
    return {
        "obs": own.standard_normal((ROWS, OBS)).astype(np.float32),
        "actions": np.stack([own.integers(0, size, ROWS) for size in NVEC], axis=1),
        "advantages": own.standard_normal(ROWS).astype(np.float32),
        "returns": own.standard_normal(ROWS).astype(np.float32),
    }


@pytest.mark.parametrize("norm_adv", [False, True])
def test_a2c_descends_the_formula_of_its_page(norm_adv: bool) -> None:
    torch.manual_seed(1)
    agent = MLPAgent(OBS, NVEC)
    args = a2c.Args(ent_coef=0.3, norm_adv=norm_adv)
    given = drawn_batch(np.random.default_rng(2))
    gradient = Gradient(functools.partial(a2c.a2c_loss, agent, args), agent, RMSProp(agent))
    logged = gradient(a2c.Batch(**given))

    def parts(weights: Weights) -> tuple[float, float, float]:
        obs, advantages = given["obs"].astype(float), given["advantages"].astype(float)
        if norm_adv:
            advantages = (advantages - advantages.mean()) / (advantages.std(ddof=1) + 1e-8)
        log_probs, entropy = choices(stack(weights, "actor", obs), given["actions"])
        values = stack(weights, "critic", obs)[:, 0]
        return ((values - given["returns"]) ** 2).mean(), -(advantages * log_probs).mean(), entropy.mean()

    np.testing.assert_allclose(logged, parts(weights_of(agent)), rtol=1e-5, atol=1e-6)

    def whole(weights: Weights) -> float:
        value_loss, policy_loss, entropy = parts(weights)
        return policy_loss - 0.3 * entropy + 0.5 * value_loss

    assert_gradients(agent, whole)


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


def gru_outputs(weights: Weights, obs: Any, memory: Any, starts: Any) -> tuple[Any, Any]:
    """Logits and values of sequences, step by step, by the equations of the gated recurrent unit."""
    hidden, found = memory.astype(float), []
    for seen, begins in zip(obs.astype(float), starts, strict=True):
        hidden = hidden * (1.0 - begins)[:, None]
        features = np.tanh(seen @ weights["network.0.weight"].T + weights["network.0.bias"])
        given = features @ weights["gru.weight_ih_l0"].T + weights["gru.bias_ih_l0"]
        kept = hidden @ weights["gru.weight_hh_l0"].T + weights["gru.bias_hh_l0"]
        (reset_in, update_in, new_in), (reset_kept, update_kept, new_kept) = (
            np.split(part, 3, axis=1) for part in (given, kept)
        )
        reset, update = (
            1.0 / (1.0 + np.exp(-gate)) for gate in (reset_in + reset_kept, update_in + update_kept)
        )
        hidden = (1.0 - update) * np.tanh(new_in + reset * new_kept) + update * hidden
        found.append(hidden)
    outputs = np.stack(found)
    logits = outputs @ weights["actor.weight"].T + weights["actor.bias"]
    return logits, (outputs @ weights["critic.weight"].T + weights["critic.bias"])[..., 0]


def test_ppo_gru_descends_the_formula_of_its_page_through_ends_of_episodes() -> None:
    torch.manual_seed(1)
    own, steps, envs = np.random.default_rng(2), 6, 2
    agent = GRUAgent(OBS, NVEC, hidden=8)
    for parameter in agent.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    args = ppo_gru.Args(ent_coef=0.3)
    batch = ppo_gru.Batch(
        memory=own.standard_normal((envs, 8)).astype(np.float32),
        starts=np.array([[0, 1], [0, 0], [0, 0], [1, 0], [0, 0], [1, 0]], np.float32),
        obs=own.standard_normal((steps, envs, OBS)).astype(np.float32),
        actions=np.stack([own.integers(0, size, (steps, envs)) for size in NVEC], axis=2),
        log_probs=own.uniform(-2.5, -1.0, (steps, envs)).astype(np.float32),
        advantages=own.standard_normal((steps, envs)).astype(np.float32),
        returns=own.standard_normal((steps, envs)).astype(np.float32),
        values=own.standard_normal((steps, envs)).astype(np.float32),
    )
    gradient = Gradient(functools.partial(ppo_gru.ppo_loss, agent, args), agent, Adam(agent))
    gradient(batch)

    def whole(weights: Weights) -> float:
        logits, values = gru_outputs(weights, batch.obs, batch.memory, batch.starts)
        log_probs, entropy = choices(logits.reshape(steps * envs, -1), batch.actions.reshape(-1, len(NVEC)))
        return ppo_formula(
            log_probs - batch.log_probs.reshape(-1),
            values.reshape(-1),
            entropy,
            batch,
            clip=0.2,
            ent_coef=0.3,
        )

    assert_gradients(agent, whole)


def ppo_formula(log_ratio: Any, values: Any, entropy: Any, batch: Any, clip: float, ent_coef: float) -> float:
    """PPO's clipped loss with normalised advantages and clipped values."""
    advantages, returns, before = (
        np.asarray(part, float).reshape(-1) for part in (batch.advantages, batch.returns, batch.values)
    )
    advantages = (advantages - advantages.mean()) / (advantages.std(ddof=1) + 1e-8)
    ratio = np.exp(log_ratio)
    gains = np.minimum(advantages * ratio, advantages * np.clip(ratio, 1 - clip, 1 + clip))
    near = before + np.clip(values - before, -clip, clip)
    errors = np.maximum((values - returns) ** 2, (near - returns) ** 2)
    return float(-gains.mean() - ent_coef * entropy.mean() + 0.5 * 0.5 * errors.mean())


def trpo_case(continuous: bool) -> tuple[trpo.Agent, trpo.Batch]:
    torch.manual_seed(1)
    own = np.random.default_rng(2)
    space = spaces.Box(-1.0, 1.0, (2,)) if continuous else spaces.MultiDiscrete(list(NVEC))
    agent = trpo.Agent(OBS, space, -0.5)
    agent.policy.get_parameter("4.weight").data.mul_(60.0)
    given = drawn_batch(own)
    if continuous:
        given["actions"] = own.standard_normal((ROWS, 2)).astype(np.float32)
    return agent, trpo.Batch(*(torch.from_numpy(given[name]) for name in trpo.Batch._fields))


def trpo_parts(agent: trpo.Agent, batch: trpo.Batch) -> tuple[Any, Any]:
    """Surrogate and divergence of weights from those that the agent has now, in float64."""
    obs, actions, begun = batch.obs.double().numpy(), batch.actions.numpy(), weights_of(agent)

    def tell(weights: Weights) -> tuple[Any, Any, Any]:
        outputs = stack(weights, "policy", obs)
        if "log_std" not in weights:
            return choices(outputs, actions)[0], outputs, None
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
    agent.value.zero_grad(set_to_none=False)
    for parameter in agent.value.parameters():
        parameter.grad = torch.zeros_like(parameter)
    assert_gradients(agent, surrogate)

    gained = surrogate(weights_of(agent))
    told = trpo.improve_policy(agent, trpo.Args(target_kl=0.002, cg_damping=0.0), batch)
    moved = weights_of(agent)
    assert told["kl"] == pytest.approx(divergence(moved), rel=1e-2)
    assert told["policy_loss"] == pytest.approx(-surrogate(moved), rel=1e-3, abs=1e-5)
    # To second order the whole length is what the divergence allows, and the objective rises along it.
    assert 0.3 * 0.002 < told["kl"] <= 0.002
    assert surrogate(moved) > gained


def test_trpo_solves_for_the_natural_gradient() -> None:
    torch.manual_seed(3)
    root = torch.randn(20, 20, dtype=torch.float64)
    matrix, target = root @ root.T + torch.eye(20), torch.randn(20, dtype=torch.float64)
    found = trpo.conjugate_gradient(lambda vector: matrix @ vector, target, 60)
    torch.testing.assert_close(found, torch.linalg.solve(matrix, target), rtol=1e-3, atol=1e-5)


def test_trpo_stays_where_no_step_is_good() -> None:
    agent, batch = trpo_case(False)
    before = weights_of(agent)
    told = trpo.improve_policy(agent, trpo.Args(), batch._replace(advantages=torch.zeros(ROWS)))
    assert (told["kl"], told["step_length"]) == (0.0, 0.0)
    for name, weights in weights_of(agent).items():
        np.testing.assert_array_equal(weights, before[name])
