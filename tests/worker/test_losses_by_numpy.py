"""Losses for discrete actions beside their papers' formulas in float64 numpy, gradient by gradient."""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.agents.q_networks import (
    DistributionalQNetwork,
    NormedQNetwork,
    QNetwork,
    QuantileNetwork,
)
from cleanrl_worker.algorithms import (
    c51,
    dqn,
    iqn,
    ppo,
    ppo_masked,
    pqn,
    pqn_atari_envpool,
    qr_dqn,
    sac_atari,
    sac_discrete,
)
from cleanrl_worker.kit.replay import Sample
from cleanrl_worker.kit.rollout import advantages
from support.formulas import (
    Floats,
    Weights,
    assert_same,
    clipped_loss,
    clipped_ppo,
    layers,
    linear,
    log_probs_and_entropies,
    log_softmax,
    quantile_huber,
    relu,
    scattered,
    tensors,
    weights_of,
)

ROWS, OBS, NVEC, ACTIONS = 24, 5, (3, 2), 4
RELU_LAYERS = ("network.0", "network.2", "network.4")


def steps_of_two_choices(agent: MLPAgent) -> ppo.Batch:
    """Steps whose ratios lie inside and outside of what is clipped, with advantages of both signs."""
    own = np.random.default_rng(1)
    obs = own.standard_normal((ROWS, OBS))
    actions = np.stack([own.integers(0, size, ROWS) for size in NVEC], axis=1)
    logits = layers(weights_of(agent), ("actor.0", "actor.2", "actor.4"), obs, np.tanh)
    return ppo.Batch(
        obs=obs,
        actions=actions,
        log_probs=log_probs_and_entropies(logits, actions, NVEC)[0] - own.uniform(-0.4, 0.4, ROWS),
        advantages=own.standard_normal(ROWS),
        returns=own.standard_normal(ROWS),
        values=0.5 * own.standard_normal(ROWS),
        rows=np.arange(ROWS),
    )


@pytest.mark.parametrize("clip_vloss", [True, False])
@pytest.mark.parametrize("norm_adv", [True, False])
def test_ppo_clips_ratios_and_values_and_adds_the_entropy(clip_vloss: bool, norm_adv: bool) -> None:
    agent = scattered(MLPAgent(OBS, NVEC))
    assert isinstance(agent, MLPAgent)
    batch = steps_of_two_choices(agent)
    args = ppo.Args(clip_vloss=clip_vloss, norm_adv=norm_adv, ent_coef=0.07, vf_coef=0.3, clip_coef=0.15)

    def formula(weights: Weights) -> float:
        logits = layers(weights, ("actor.0", "actor.2", "actor.4"), batch.obs, np.tanh)
        values = layers(weights, ("critic.0", "critic.2", "critic.4"), batch.obs, np.tanh)[:, 0]
        return clipped_ppo(logits, values, batch, args, NVEC)

    assert_same(agent, lambda: ppo.ppo_loss(agent, args, tensors(batch)), formula)
    logits = layers(weights_of(agent), ("actor.0", "actor.2", "actor.4"), batch.obs, np.tanh)
    log_probs, _ = log_probs_and_entropies(logits, batch.actions, NVEC)
    ratio, gains = np.exp(log_probs - batch.log_probs), batch.advantages
    for side in (ratio > 1.15, ratio < 0.85, (ratio > 0.85) & (ratio < 1.15)):
        assert (side & (gains > 0)).any() and (side & (gains < 0)).any(), "every branch is taken"


def test_what_ppo_logs_is_what_the_names_say() -> None:
    agent = scattered(MLPAgent(OBS, NVEC))
    assert isinstance(agent, MLPAgent)
    batch = steps_of_two_choices(agent)
    _, logged = ppo.ppo_loss(agent, ppo.Args(), tensors(batch))
    told = dict(zip(ppo.LOGGED, logged.tolist(), strict=True))
    logits = layers(weights_of(agent), ("actor.0", "actor.2", "actor.4"), batch.obs, np.tanh)
    log_probs, entropy = log_probs_and_entropies(logits, batch.actions, NVEC)
    log_ratio = log_probs - batch.log_probs
    assert told["entropy"] == pytest.approx(entropy.mean())
    assert told["old_approx_kl"] == pytest.approx(-log_ratio.mean())
    assert told["approx_kl"] == pytest.approx((np.exp(log_ratio) - 1 - log_ratio).mean())
    assert told["clipfrac"] == pytest.approx((np.abs(np.exp(log_ratio) - 1) > 0.2).mean())


def allowed_only(logits: Floats, actions: Any, allowed: Any) -> tuple[Floats, Floats]:
    """Log probabilities and entropies of choices among what each row allows of them, row by row."""
    log_prob, entropy = np.zeros(ROWS), np.zeros(ROWS)
    for row in range(ROWS):
        start = 0
        for column, size in enumerate(NVEC):
            free = np.flatnonzero(allowed[row, start : start + size])
            part = log_softmax(logits[row, start : start + size][free])
            log_prob[row] += part[list(free).index(actions[row, column])]
            entropy[row] -= (np.exp(part) * part).sum()
            start += size
    return log_prob, entropy


def test_masked_ppo_is_ppo_over_what_is_allowed() -> None:
    agent = scattered(MLPAgent(OBS, NVEC))
    assert isinstance(agent, MLPAgent)
    plain, own = steps_of_two_choices(agent), np.random.default_rng(8)
    allowed = own.random((ROWS, sum(NVEC))) < 0.5
    # What was done was allowed.
    for column, start in enumerate((0, NVEC[0])):
        allowed[np.arange(ROWS), start + plain.actions[:, column]] = True
    names = [tuple(f"{net}.{layer}" for layer in (0, 2, 4)) for net in ("actor", "critic")]
    logits = layers(weights_of(agent), names[0], plain.obs, np.tanh)
    before = allowed_only(logits, plain.actions, allowed)[0] - own.uniform(-0.4, 0.4, ROWS)
    batch = ppo_masked.Batch(
        plain.obs, allowed, plain.actions, before, plain.advantages, plain.returns, plain.values
    )
    args = ppo_masked.Args(ent_coef=0.07, vf_coef=0.3, clip_coef=0.15)

    def formula(weights: Weights) -> float:
        logits, values = (layers(weights, one, batch.obs, np.tanh) for one in names)
        return clipped_loss(*allowed_only(logits, batch.actions, allowed), values[:, 0], batch, args)

    assert not allowed.all() and not allowed.all(axis=0).any()
    assert_same(agent, lambda: ppo_masked.ppo_loss(agent, args, tensors(batch)), formula)


def transitions(seed: int = 2) -> Sample:
    """Transitions of which some end their episode."""
    own = np.random.default_rng(seed)
    return Sample(
        obs=own.standard_normal((ROWS, OBS)),
        next_obs=own.standard_normal((ROWS, OBS)),
        actions=own.integers(0, ACTIONS, ROWS),
        rewards=3.0 * own.standard_normal(ROWS),
        dones=(own.random(ROWS) < 0.3).astype(float),
    )


def test_dqn_learns_the_reward_and_the_best_value_of_the_target() -> None:
    network, target = scattered(QNetwork(OBS, ACTIONS), 1), scattered(QNetwork(OBS, ACTIONS), 2)
    assert isinstance(network, QNetwork) and isinstance(target, QNetwork)
    batch, args, behind = transitions(), dqn.Args(gamma=0.9), weights_of(target)

    def formula(weights: Weights) -> float:
        squares = []
        next_values = layers(behind, RELU_LAYERS, batch.next_obs, relu)
        values = layers(weights, RELU_LAYERS, batch.obs, relu)
        for row in range(ROWS):
            future = 0.0 if batch.dones[row] else 0.9 * next_values[row].max()
            squares.append((batch.rewards[row] + future - values[row, batch.actions[row]]) ** 2)
        return float(np.mean(squares))

    assert_same(network, lambda: dqn.dqn_loss(network, target, args, tensors(batch)), formula)
    assert all(parameter.grad is None for parameter in target.parameters())


def projected(probs: Floats, reward: float, discount: float, atoms: Floats) -> Floats:
    """One distribution after a step, atom by atom: each moves, and gives its share to its two neighbours."""
    spacing, found = atoms[1] - atoms[0], np.zeros(len(atoms))
    for prob, atom in zip(probs, atoms, strict=True):
        place = (min(max(reward + discount * atom, atoms[0]), atoms[-1]) - atoms[0]) / spacing
        lower, upper = int(np.floor(place)), int(np.ceil(place))
        if lower == upper:
            found[lower] += prob
        else:
            found[lower] += prob * (upper - place)
            found[upper] += prob * (place - lower)
    return found


def test_c51_projects_each_atom_and_learns_by_cross_entropy() -> None:
    args = c51.Args(n_atoms=11, v_min=-4.0, v_max=6.0, gamma=0.9)
    made = [DistributionalQNetwork(OBS, ACTIONS, 11, -4.0, 6.0) for _ in range(2)]
    network, target = (scattered(one, seed) for seed, one in enumerate(made))
    assert isinstance(network, DistributionalQNetwork) and isinstance(target, DistributionalQNetwork)
    batch, behind, atoms = transitions(), weights_of(target), np.linspace(-4.0, 6.0, 11)

    def formula(weights: Weights) -> float:
        shape = (ROWS, ACTIONS, 11)
        next_probs = np.exp(log_softmax(layers(behind, RELU_LAYERS, batch.next_obs, relu).reshape(shape)))
        log_probs = log_softmax(layers(weights, RELU_LAYERS, batch.obs, relu).reshape(shape))
        entropies = []
        for row in range(ROWS):
            best = int(np.argmax([float(probs @ atoms) for probs in next_probs[row]]))
            discount = 0.9 * (1.0 - batch.dones[row])
            wanted = projected(next_probs[row, best], batch.rewards[row], discount, atoms)
            assert wanted.sum() == pytest.approx(1.0)
            entropies.append(-(wanted * log_probs[row, batch.actions[row]]).sum())
        return float(np.mean(entropies))

    assert_same(network, lambda: c51.c51_loss(network, target, args, tensors(batch)), formula)
    beyond = (np.abs(batch.rewards - 1.0) > 5.0).any()
    assert beyond, "some returns lie beyond the atoms"


def test_a_return_on_an_atom_keeps_its_whole_probability() -> None:
    args = c51.Args(n_atoms=5, v_min=-2.0, v_max=2.0, gamma=1.0)
    atoms = torch.linspace(-2.0, 2.0, 5, dtype=torch.float64)
    probs = torch.tensor([[0.1, 0.2, 0.3, 0.25, 0.15]] * 3, dtype=torch.float64)
    rewards = torch.tensor([1.0, 0.0, 9.0], dtype=torch.float64)
    found = c51.project(probs, rewards, torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64), atoms, args)
    expected = [[0, 0.1, 0.2, 0.3, 0.4], [0, 0, 1, 0, 0], [0, 0, 0, 0, 1]]
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def normed(weights: Weights, x: Floats) -> Floats:
    """Layer normalisation between the linear layer and the relu, by its definition."""
    for number in (0, 3):
        x = linear(weights, f"network.{number}", x)
        centred = x - x.mean(axis=1, keepdims=True)
        x = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        x = relu(x * weights[f"network.{number + 1}.weight"] + weights[f"network.{number + 1}.bias"])
    return linear(weights, "network.6", x)


@pytest.mark.parametrize("page", [pqn, pqn_atari_envpool], ids=["pqn", "pqn_atari_envpool"])
def test_pqn_learns_the_returns_through_normalised_layers(page: ModuleType) -> None:
    network = scattered(NormedQNetwork(OBS, ACTIONS))
    assert isinstance(network, NormedQNetwork)
    own = np.random.default_rng(3)
    batch = page.Batch(
        own.standard_normal((ROWS, OBS)), own.integers(0, ACTIONS, ROWS), own.standard_normal(ROWS)
    )

    def formula(weights: Weights) -> float:
        values = normed(weights, batch.obs)[np.arange(ROWS), batch.actions]
        return float(((values - batch.returns) ** 2).mean())

    assert_same(network, lambda: page.pqn_loss(network, tensors(batch)), formula)


@pytest.mark.parametrize("kappa", [1.0, 0.3])
def test_qr_dqn_weighs_each_pair_by_its_quantile(kappa: float) -> None:
    number = 8  # Their middles are exact in single precision, as the network keeps them.
    made = [QuantileNetwork(OBS, ACTIONS, number) for _ in range(2)]
    network, target = (scattered(one, seed) for seed, one in enumerate(made))
    assert isinstance(network, QuantileNetwork) and isinstance(target, QuantileNetwork)
    batch, behind = transitions(), weights_of(target)
    args = dataclasses.replace(qr_dqn.Args(), gamma=0.9, kappa=kappa)

    def formula(weights: Weights) -> float:
        shape, total = (ROWS, ACTIONS, number), 0.0
        next_quantiles = layers(behind, RELU_LAYERS, batch.next_obs, relu).reshape(shape)
        quantiles = layers(weights, RELU_LAYERS, batch.obs, relu).reshape(shape)
        for row in range(ROWS):
            best = int(np.argmax(next_quantiles[row].mean(axis=1)))
            for index, own in enumerate(quantiles[row, batch.actions[row]]):
                for future in next_quantiles[row, best]:
                    error = batch.rewards[row] + 0.9 * (1.0 - batch.dones[row]) * future - own
                    total += quantile_huber(error, (index + 0.5) / number, kappa) / number
        return total / ROWS

    assert_same(network, lambda: qr_dqn.qr_dqn_loss(network, target, args, tensors(batch)), formula)


@pytest.mark.parametrize("kappa", [1.0, 0.3])
def test_iqn_weighs_each_pair_by_the_fraction_that_was_drawn(kappa: float) -> None:
    number, others, greedy, cosines = 5, 3, 8, 6
    made = [iqn.ImplicitQuantileNetwork(OBS, ACTIONS, cosines, greedy) for _ in range(2)]
    network, target = (scattered(one, seed) for seed, one in enumerate(made))
    assert isinstance(network, iqn.ImplicitQuantileNetwork)
    assert isinstance(target, iqn.ImplicitQuantileNetwork)
    for one in (network, target):
        # As they are, they are multiples of a pi in single precision.
        one.cosines = np.pi * torch.arange(cosines, dtype=torch.float64)
    own = np.random.default_rng(6)
    batch = iqn.Batch(*transitions(), own.random((ROWS, number)), own.random((ROWS, others)))
    behind, even = weights_of(target), np.tile((np.arange(greedy) + 0.5) / greedy, (ROWS, 1))
    args = dataclasses.replace(iqn.Args(), gamma=0.9, kappa=kappa)

    def quantiles(weights: Weights, obs: Floats, fractions: Floats) -> Floats:
        """Of shape (row, fraction, action)."""
        waves = np.cos(np.pi * np.arange(cosines) * fractions[:, :, None])
        told = relu(linear(weights, "embedding.0", waves))
        seen = relu(linear(weights, "body.0", obs))[:, None, :]
        return layers(weights, ("head.0", "head.2"), seen * told, relu)

    best = quantiles(behind, batch.next_obs, even).mean(axis=1).argmax(axis=1)
    futures = quantiles(behind, batch.next_obs, batch.target_fractions)

    def formula(weights: Weights) -> float:
        found, total = quantiles(weights, batch.obs, batch.fractions), 0.0
        for row in range(ROWS):
            for fraction, quantile in zip(
                batch.fractions[row], found[row, :, batch.actions[row]], strict=True
            ):
                for future in futures[row, :, best[row]]:
                    error = batch.rewards[row] + 0.9 * (1.0 - batch.dones[row]) * future - quantile
                    total += quantile_huber(error, fraction, kappa) / others
        return total / ROWS

    assert_same(network, lambda: iqn.iqn_loss(network, target, args, tensors(batch)), formula)


PAGES_OF_SAC = pytest.mark.parametrize("page", [sac_discrete, sac_atari], ids=["sac_discrete", "sac_atari"])
ACTOR_LAYERS = ("fc1", "fc2", "fc_logits")


def soft_nets() -> tuple[nn.Module, nn.ModuleList, nn.ModuleList]:
    """A policy, two Q networks and their targets; the losses do not look at what these read."""
    pairs = [nn.ModuleList(QNetwork(OBS, ACTIONS) for _ in range(2)) for _ in range(2)]
    for seed, pair in enumerate(pairs, 2):
        scattered(pair, seed)
    return scattered(sac_discrete.CategoricalActor(OBS, ACTIONS), 1), pairs[0], pairs[1]


def lesser_value(weights: Weights, obs: Floats) -> Floats:
    names = [tuple(f"{number}.{name}" for name in RELU_LAYERS) for number in (0, 1)]
    found: Floats = np.minimum(*(layers(weights, one, obs, relu) for one in names))
    return found


@PAGES_OF_SAC
def test_discrete_sac_learns_soft_values_over_all_actions(page: ModuleType) -> None:
    actor, critics, targets = soft_nets()
    temperature, batch = page.Temperature(0.3).double(), transitions()
    alpha, behind = temperature.log_alpha.exp().item(), weights_of(targets)
    log_probs = log_softmax(layers(weights_of(actor), ACTOR_LAYERS, batch.next_obs, relu))
    soft = (np.exp(log_probs) * (lesser_value(behind, batch.next_obs) - alpha * log_probs)).sum(axis=1)
    wanted = batch.rewards + np.where(batch.dones == 1.0, 0.0, 0.9 * soft)

    def formula(weights: Weights) -> float:
        each = []
        for number in (0, 1):
            names = tuple(f"{number}.{name}" for name in RELU_LAYERS)
            values = layers(weights, names, batch.obs, relu)[np.arange(ROWS), batch.actions]
            each.append(((values - wanted) ** 2).mean())
        return float(sum(each))

    assert_same(
        critics,
        lambda: page.critic_loss(critics, actor, targets, temperature, 0.9, tensors(batch)),
        formula,
    )
    assert temperature.log_alpha.grad is None


@PAGES_OF_SAC
def test_discrete_sac_moves_its_policy_to_where_values_and_entropy_are_high(page: ModuleType) -> None:
    actor, critics, _ = soft_nets()
    temperature, batch = page.Temperature(0.3).double(), transitions()
    alpha, lesser = temperature.log_alpha.exp().item(), lesser_value(weights_of(critics), batch.obs)

    def formula(weights: Weights) -> float:
        log_probs = log_softmax(layers(weights, ACTOR_LAYERS, batch.obs, relu))
        # As in CleanRL's script the mean is over the actions too.
        return float((np.exp(log_probs) * (alpha * log_probs - lesser)).mean())

    assert_same(actor, lambda: page.actor_loss(actor, critics, temperature, tensors(batch)), formula)
    assert temperature.log_alpha.grad is None
    log_probs = log_softmax(layers(weights_of(actor), ACTOR_LAYERS, batch.obs, relu))
    entropy = page.actor_loss(actor, critics, temperature, tensors(batch))[1][1].item()
    assert entropy == pytest.approx(-(np.exp(log_probs) * log_probs).sum(axis=1).mean())


def test_advantages_are_the_sums_of_the_discounted_errors() -> None:
    """By the definition: for each step a sum over what follows in its episode, not a recursion."""
    own, steps, envs, gamma, lam = np.random.default_rng(4), 12, 3, 0.93, 0.8
    rewards, values, next_values = own.standard_normal((3, steps, envs))
    dones = (own.random((steps, envs)) < 0.25).astype(float)
    found = advantages(rewards, dones, values, next_values, gamma, lam)
    for env in range(envs):
        for start in range(steps):
            total, weight = 0.0, 1.0
            for t in range(start, steps):
                total += weight * (rewards[t, env] + gamma * next_values[t, env] - values[t, env])
                weight *= gamma * lam
                if dones[t, env]:
                    break
            assert found[start, env] == pytest.approx(total, rel=1e-9)
    assert dones.any()


def test_advantages_and_best_values_together_are_q_lambda() -> None:
    """Peng's Q(lambda), backwards: what was earned, and a mix of the best value and of what followed."""
    own, steps, gamma, lam = np.random.default_rng(5), 12, 0.93, 0.65
    rewards, best, next_best = own.standard_normal((3, steps, 1))
    next_best[:-1] = best[1:]
    dones = (own.random((steps, 1)) < 0.25).astype(float)
    next_best *= 1.0 - dones
    found = best + advantages(rewards, dones, best, next_best, gamma, lam)
    following = next_best[-1, 0]
    for t in reversed(range(steps)):
        if dones[t, 0]:
            expected = rewards[t, 0]
        else:
            expected = rewards[t, 0] + gamma * ((1 - lam) * next_best[t, 0] + lam * following)
        assert found[t, 0] == pytest.approx(expected, rel=1e-9)
        following = expected
