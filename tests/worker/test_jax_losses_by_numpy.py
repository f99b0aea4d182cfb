"""Losses in JAX beside their papers' formulas in float64 numpy, gradient by gradient."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from cleanrl_worker.agents.jax_nature import NatureAgent, NatureQNetwork
from cleanrl_worker.algorithms import (
    c51_atari_jax,
    c51_jax,
    ddpg_continuous_action_jax,
    dqn_atari_jax,
    dqn_jax,
    td3_continuous_action_jax,
)
from cleanrl_worker.algorithms import ppo_atari_envpool_xla_jax as ppo_jax
from cleanrl_worker.kit.replay import Sample
from support.formulas import (
    Floats,
    Weights,
    assert_slopes,
    clipped_ppo,
    layers,
    linear,
    log_probs_and_entropies,
    log_softmax,
    relu,
)
from support.nature import features, spread

ROWS, OBS, ACTIONS, GAMMA = 24, 5, 4, 0.9
LOW, HIGH = np.array([-1.0, 0.0]), np.array([1.0, 4.0])
SCALE, BIAS = (HIGH - LOW) / 2, (HIGH + LOW) / 2
DENSE = ("Dense_0", "Dense_1", "Dense_2")
SAME = {name: name for name in DENSE}
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


def tree(flat: Weights, names: Mapping[str, str]) -> Any:
    """The same as Flax keeps them; `names` are ours, each with Flax's."""
    parts = {
        theirs: {"kernel": turned(flat[f"{ours}.weight"]), "bias": flat[f"{ours}.bias"]}
        for ours, theirs in names.items()
    }
    return {"params": parts}


def turned(weight: Floats) -> Floats:
    """Flax's kernel: what is read comes before what is given."""
    return weight.T if weight.ndim == 2 else weight.transpose(2, 3, 1, 0)


def from_tree(params: Any, names: Mapping[str, str]) -> Flat:
    found = {}
    for ours, theirs in names.items():
        kernel = np.asarray(params["params"][theirs]["kernel"])
        found[f"{ours}.weight"] = (kernel.T if kernel.ndim == 2 else kernel.transpose(3, 2, 0, 1)).copy()
        found[f"{ours}.bias"] = np.array(params["params"][theirs]["bias"])
    return found


def transitions(actions: Any) -> Sample:
    own = np.random.default_rng(2)
    obs, next_obs = own.standard_normal((2, ROWS, OBS))
    dones = (own.random(ROWS) < 0.3).astype(float)
    return Sample(obs, next_obs, actions, 2.0 * own.standard_normal(ROWS), dones)


def check(
    loss: Callable[[Any], Any],
    flat: Flat,
    formula: Callable[[Weights], float],
    to: Callable[[Weights], Any] = lambda flat: vectors(flat),
    back: Callable[[Any], Flat] = lambda params: from_tree(params, SAME),
    rel: float = 1e-9,
) -> None:
    """A loss in JAX and its gradients are those of a formula of the weights, which `to` makes a tree."""
    value, slopes = jax.value_and_grad(loss)(to(flat))
    assert float(value) == pytest.approx(formula(flat), rel=rel)
    assert_slopes(flat, back(slopes), formula)


def vectors(flat: Weights) -> Any:
    return tree(flat, SAME)


def test_dqn_in_jax() -> None:
    batch = transitions(np.random.default_rng(3).integers(0, ACTIONS, ROWS))
    flat, behind = (drawn(seed, OBS, 120, 84, ACTIONS) for seed in (1, 2))
    network = dqn_jax.QNetwork(ACTIONS)

    def formula(weights: Weights) -> float:
        best = layers(behind, DENSE, batch.next_obs, relu).max(axis=1)
        targets = batch.rewards + np.where(batch.dones == 1.0, 0.0, GAMMA * best)
        values = layers(weights, DENSE, batch.obs, relu)[np.arange(ROWS), batch.actions]
        return float(((targets - values) ** 2).mean())

    check(lambda params: dqn_jax.dqn_loss(network, GAMMA, params, vectors(behind), batch)[0], flat, formula)


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

    check(lambda params: c51_jax.c51_loss(params, network, GAMMA, vectors(behind), batch)[0], flat, formula)


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
        behind = vectors(target_actor), {"qf1": vectors(target_critic)}
        return page.critic_loss({"qf1": params}, network, GAMMA, *behind, batch)[0]

    check(loss, critic, formula)
    check(
        lambda params: page.actor_loss(params, network, vectors(critic), batch),
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
        both = {name: vectors(one) for name, one in critics.items()} | {learned: params}
        targets = {name: vectors(one) for name, one in behind.items()}
        return page.critic_loss(both, network, GAMMA, smoothing, vectors(target_actor), targets, batch, key)[
            0
        ]

    check(loss, critics[learned], formula)
    actor, judge = drawn(1, OBS, 256, 256, 2), critics[learned]
    check(
        lambda params: page.actor_loss(params, network, vectors(judge), batch),
        actor,
        lambda weights: -float(judges(judge, batch.obs, acts(weights, batch.obs)).mean()),
    )


SHAPE, NVEC = (36, 36, 4), (3, 2)
"""Of such pictures the convolutions leave one pixel, so no order in which it is read can matter."""
CONVOLUTIONS = {"network.0": "Conv_0", "network.2": "Conv_1", "network.4": "Conv_2", "network.7": "Dense_0"}
OF_PICTURES = {**CONVOLUTIONS, "network.9": "Dense_1"}
FEW = 6
"""Pictures in a batch."""
SINGLE = 1e-6
"""How near losses come: pixels are divided in single precision."""


def drawn_for_pictures(seed: int, **heads: int) -> Flat:
    """Weights of the convolutions and of layers on their features, by the names that torch has for them."""
    own, found = np.random.default_rng(seed), {}
    shapes: dict[str, tuple[int, ...]] = {
        "network.0": (32, 4, 8, 8),
        "network.2": (64, 32, 4, 4),
        "network.4": (64, 64, 3, 3),
        "network.7": (512, 64),
        **{name.replace("_", "."): (outputs, 512) for name, outputs in heads.items()},
    }
    for name, shape in shapes.items():
        found[f"{name}.weight"] = own.standard_normal(shape) * np.sqrt(2.0 / np.prod(shape[1:]))
        found[f"{name}.bias"] = 0.3 * own.standard_normal(shape[0])
    return found


def pictures(seed: int = 4) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (FEW, *SHAPE), np.uint8)


def picture_transitions() -> Sample:
    own = np.random.default_rng(2)
    dones = np.array([0, 1, 0, 0, 1, 0.0])
    return Sample(pictures(4), pictures(5), own.integers(0, ACTIONS, FEW), own.standard_normal(FEW), dones)


def test_dqn_for_pictures_in_jax() -> None:
    batch = picture_transitions()
    flat, behind = (drawn_for_pictures(seed, network_9=ACTIONS) for seed in (1, 2))
    network = NatureQNetwork(ACTIONS)

    def values(weights: Weights, obs: Any) -> Floats:
        return linear(weights, "network.9", features(weights, obs))

    targets = batch.rewards + GAMMA * (1.0 - batch.dones) * values(behind, batch.next_obs).max(axis=1)

    def formula(weights: Weights) -> float:
        chosen = values(weights, batch.obs)[np.arange(FEW), batch.actions]
        return float(((targets - chosen) ** 2).mean())

    later = tree(behind, OF_PICTURES)
    check(
        lambda params: dqn_atari_jax.dqn_loss(params, network, GAMMA, later, batch)[0],
        flat,
        formula,
        lambda flat: tree(flat, OF_PICTURES),
        lambda params: from_tree(params, OF_PICTURES),
        SINGLE,
    )


def test_c51_for_pictures_in_jax() -> None:
    batch, atoms, each = picture_transitions(), np.linspace(-1.0, 2.0, 7), np.arange(FEW)
    flat, behind = (drawn_for_pictures(seed, network_9=ACTIONS * 7) for seed in (1, 2))
    network = c51_atari_jax.QNetwork(ACTIONS, 7, -1.0, 2.0)

    def log_probs(weights: Weights, obs: Any) -> Floats:
        return log_softmax(linear(weights, "network.9", features(weights, obs)).reshape(FEW, ACTIONS, 7))

    following = np.exp(log_probs(behind, batch.next_obs))
    best = (following @ atoms).argmax(axis=1)
    wanted = spread(following[each, best], batch.rewards, GAMMA * (1.0 - batch.dones), atoms)

    def formula(weights: Weights) -> float:
        return -float((wanted * log_probs(weights, batch.obs)[each, batch.actions]).sum(axis=1).mean())

    later = tree(behind, OF_PICTURES)
    check(
        lambda params: c51_atari_jax.c51_loss(params, network, GAMMA, later, batch)[0],
        flat,
        formula,
        lambda flat: tree(flat, OF_PICTURES),
        lambda params: from_tree(params, OF_PICTURES),
        SINGLE,
    )


PARTS = {"network": CONVOLUTIONS, "actor": {"actor": "Dense_0"}, "critic": {"critic": "Dense_0"}}
"""The trees of PPO's agent."""


@pytest.mark.parametrize("clip_vloss", [True, False])
def test_ppo_for_pictures_in_jax(clip_vloss: bool) -> None:
    args = dataclasses.replace(
        ppo_jax.Args(), clip_coef=0.15, ent_coef=0.07, vf_coef=0.3, clip_vloss=clip_vloss
    )
    assert args.norm_adv
    flat, own = drawn_for_pictures(1, actor=sum(NVEC), critic=1), np.random.default_rng(3)

    def outputs(weights: Weights) -> tuple[Floats, Floats]:
        seen = features(weights, obs)
        return linear(weights, "actor", seen), linear(weights, "critic", seen)[:, 0]

    obs, actions = pictures(), np.stack([own.integers(0, size, FEW) for size in NVEC], axis=1)
    before, _ = log_probs_and_entropies(outputs(flat)[0], actions, NVEC)
    batch = ppo_jax.Batch(
        obs,
        actions,
        before - own.uniform(-0.4, 0.4, FEW),
        own.standard_normal(FEW),
        own.standard_normal(FEW),
        0.5 * own.standard_normal(FEW),
    )
    # Flax's way of a deviation is over all numbers, not over one less.
    gains = (batch.advantages - batch.advantages.mean()) / (batch.advantages.std() + 1e-8)
    known = SimpleNamespace(**{**vars(args), "norm_adv": False})

    def formula(weights: Weights) -> float:
        return clipped_ppo(*outputs(weights), batch._replace(advantages=gains), known, NVEC)

    agent, form = NatureAgent(NVEC), ppo_jax.Form(*(getattr(args, name) for name in ppo_jax.Form._fields))
    check(
        lambda params: ppo_jax.ppo_loss(params, agent, form, batch)[0],
        flat,
        formula,
        lambda flat: {part: tree(flat, names) for part, names in PARTS.items()},
        lambda params: {
            name: one for part, names in PARTS.items() for name, one in from_tree(params[part], names).items()
        },
        SINGLE,
    )
