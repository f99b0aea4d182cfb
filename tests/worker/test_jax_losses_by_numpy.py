"""Losses in JAX beside their papers' formulas in float64 numpy, gradient by gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import jax
import numpy as np
import pytest

from cleanrl_worker.algorithms import c51_jax, ddpg_continuous_action_jax, dqn_jax, td3_continuous_action_jax
from cleanrl_worker.kit.replay import Sample
from support.formulas import Floats, Weights, assert_slopes, layers, log_softmax, relu

ROWS, OBS, ACTIONS, GAMMA = 24, 5, 4, 0.9
LOW, HIGH = np.array([-1.0, 0.0]), np.array([1.0, 4.0])
SCALE, BIAS = (HIGH - LOW) / 2, (HIGH + LOW) / 2
DENSE = ("Dense_0", "Dense_1", "Dense_2")
Flat = dict[str, Floats]


@pytest.fixture(autouse=True)
def _in_double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def drawn(seed: int, *sizes: int) -> Flat:
    """Weights of linear layers by the names of Flax."""
    own, found = np.random.default_rng(seed), {}
    for name, (before, after) in zip(DENSE, pairwise(sizes), strict=True):
        found[f"{name}.weight"] = own.standard_normal((after, before)) / np.sqrt(before)
        found[f"{name}.bias"] = 0.3 * own.standard_normal(after)
    return found


def tree(flat: Weights) -> Any:
    """The same as Flax keeps them."""
    parts = {name: {"kernel": flat[f"{name}.weight"].T, "bias": flat[f"{name}.bias"]} for name in DENSE}
    return {"params": parts}


def from_tree(params: Any) -> Flat:
    found = {}
    for name, part in params["params"].items():
        found[f"{name}.weight"] = np.asarray(part["kernel"]).T.copy()
        found[f"{name}.bias"] = np.asarray(part["bias"])
    return found


def transitions(actions: Any) -> Sample:
    own = np.random.default_rng(2)
    obs, next_obs = own.standard_normal((2, ROWS, OBS))
    dones = (own.random(ROWS) < 0.3).astype(float)
    return Sample(obs, next_obs, actions, 2.0 * own.standard_normal(ROWS), dones)


def check(loss: Callable[[Any], Any], flat: Flat, formula: Callable[[Weights], float]) -> None:
    value, slopes = jax.value_and_grad(loss)(tree(flat))
    assert float(value) == pytest.approx(formula(flat), rel=1e-9)
    assert_slopes(flat, from_tree(slopes), formula)


def test_dqn_in_jax() -> None:
    batch = transitions(np.random.default_rng(3).integers(0, ACTIONS, ROWS))
    flat, behind = (drawn(seed, OBS, 120, 84, ACTIONS) for seed in (1, 2))
    network = dqn_jax.QNetwork(ACTIONS)

    def formula(weights: Weights) -> float:
        best = layers(behind, DENSE, batch.next_obs, relu).max(axis=1)
        targets = batch.rewards + np.where(batch.dones == 1.0, 0.0, GAMMA * best)
        values = layers(weights, DENSE, batch.obs, relu)[np.arange(ROWS), batch.actions]
        return float(((targets - values) ** 2).mean())

    check(lambda params: dqn_jax.dqn_loss(network, GAMMA, params, tree(behind), batch)[0], flat, formula)


def test_c51_in_jax() -> None:
    batch = transitions(np.random.default_rng(3).integers(0, ACTIONS, ROWS))
    atoms = np.linspace(-4.0, 6.0, 11)
    flat, behind = (drawn(seed, OBS, 120, 84, ACTIONS * 11) for seed in (1, 2))
    network = c51_jax.QNetwork(ACTIONS, 11, -4.0, 6.0)

    def formula(weights: Weights) -> float:
        shape, total = (ROWS, ACTIONS, 11), 0.0
        next_probs = np.exp(log_softmax(layers(behind, DENSE, batch.next_obs, relu).reshape(shape)))
        log_probs = log_softmax(layers(weights, DENSE, batch.obs, relu).reshape(shape))
        for row in range(ROWS):
            best = int(np.argmax(next_probs[row] @ atoms))
            for prob, atom in zip(next_probs[row, best], atoms, strict=True):
                moved = batch.rewards[row] + GAMMA * (1.0 - batch.dones[row]) * atom
                moved = min(max(moved, -4.0), 6.0)
                # A return shares its probability with each atom by how near it is, within one spacing of 1.
                shares = np.maximum(0.0, 1.0 - np.abs(atoms - moved))
                total -= prob * float(shares @ log_probs[row, batch.actions[row]])
        return total / ROWS

    check(lambda params: c51_jax.c51_loss(params, network, GAMMA, tree(behind), batch)[0], flat, formula)


def acts(weights: Weights, obs: Floats) -> Floats:
    return BIAS + SCALE * np.tanh(layers(weights, DENSE, obs, relu))


def judges(weights: Weights, obs: Floats, actions: Floats) -> Floats:
    return layers(weights, DENSE, np.concatenate([obs, actions], axis=1), relu)[:, 0]


def test_ddpg_in_jax() -> None:
    batch = transitions(np.random.default_rng(3).uniform(LOW, HIGH, (ROWS, 2)))
    actor, target_actor = (drawn(seed, OBS, 256, 256, 2) for seed in (1, 2))
    critic, target_critic = (drawn(seed, OBS + 2, 256, 256, 1) for seed in (3, 4))
    page, network = ddpg_continuous_action_jax, ddpg_continuous_action_jax.Actor((-1.0, 0.0), (1.0, 4.0))

    def formula(weights: Weights) -> float:
        future = judges(target_critic, batch.next_obs, acts(target_actor, batch.next_obs))
        targets = batch.rewards + np.where(batch.dones == 1.0, 0.0, GAMMA * future)
        return float(((judges(weights, batch.obs, batch.actions) - targets) ** 2).mean())

    def loss(params: Any) -> Any:
        behind = tree(target_actor), {"qf1": tree(target_critic)}
        return page.critic_loss({"qf1": params}, network, GAMMA, *behind, batch)[0]

    check(loss, critic, formula)
    check(
        lambda params: page.actor_loss(params, network, tree(critic), batch),
        actor,
        lambda weights: -float(judges(critic, batch.obs, acts(weights, batch.obs)).mean()),
    )


@pytest.mark.parametrize("learned", ["qf1", "qf2"])
def test_td3_in_jax(learned: str) -> None:
    batch = transitions(np.random.default_rng(3).uniform(LOW, HIGH, (ROWS, 2)))
    target_actor = drawn(2, OBS, 256, 256, 2)
    critics = {name: drawn(seed, OBS + 2, 256, 256, 1) for seed, name in enumerate(("qf1", "qf2"), 3)}
    behind = {name: drawn(seed, OBS + 2, 256, 256, 1) for seed, name in enumerate(("qf1", "qf2"), 5)}
    page, network = td3_continuous_action_jax, td3_continuous_action_jax.Actor((-1.0, 0.0), (1.0, 4.0))
    key, smoothing = jax.random.PRNGKey(4), td3_continuous_action_jax.Smoothing(0.6, 0.5)
    noise = np.clip(0.6 * np.asarray(jax.random.normal(key, (ROWS, 2))), -0.5, 0.5) * SCALE
    moved = acts(target_actor, batch.next_obs) + noise
    assert ((moved < LOW) | (moved > HIGH)).any(), "some actions leave their bounds"

    def formula(weights: Weights) -> float:
        next_actions = np.minimum(np.maximum(moved, LOW), HIGH)
        lesser = np.minimum(*(judges(one, batch.next_obs, next_actions) for one in behind.values()))
        targets = batch.rewards + np.where(batch.dones == 1.0, 0.0, GAMMA * lesser)
        both = {**critics, learned: weights}.values()
        return float(sum(((judges(one, batch.obs, batch.actions) - targets) ** 2).mean() for one in both))

    def loss(params: Any) -> Any:
        both = {name: tree(one) for name, one in critics.items()} | {learned: params}
        targets = {name: tree(one) for name, one in behind.items()}
        return page.critic_loss(both, network, GAMMA, smoothing, tree(target_actor), targets, batch, key)[0]

    check(loss, critics[learned], formula)
