"""Losses for continuous actions beside their papers' formulas in float64 numpy, gradient by gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from cleanrl_worker.agents.continuous import Actor, GaussianActor, GaussianAgent, QNetwork
from cleanrl_worker.algorithms import (
    crossq,
    ddpg_continuous_action,
    ppo_continuous_action,
    rpo_continuous_action,
    sac_continuous_action,
    td3_continuous_action,
    tqc,
)
from cleanrl_worker.kit.replay import Sample
from support.formulas import (
    Floats,
    Weights,
    assert_same,
    layers,
    linear,
    quantile_huber,
    relu,
    scattered,
    tensors,
    weights_of,
)

ROWS, OBS = 24, 5
LOW, HIGH = np.array([-1.0, 0.0]), np.array([1.0, 4.0])
"""Bounds of their own in each dimension."""
SCALE, BIAS = (HIGH - LOW) / 2, (HIGH + LOW) / 2
GAMMA = 0.9


class Nets(NamedTuple):
    """What an off-policy algorithm learns, and what is behind it."""

    actor: nn.Module
    critics: nn.ModuleList
    target_actor: nn.Module
    target_critics: nn.ModuleList


def nets(kind: type[Actor] | type[GaussianActor], number: int = 2) -> Nets:
    bounds = torch.from_numpy(LOW), torch.from_numpy(HIGH)
    actors = [scattered(kind(OBS, *bounds), seed) for seed in (1, 2)]
    critics = [nn.ModuleList(QNetwork(OBS, len(LOW)) for _ in range(number)) for _ in range(2)]
    for seed, one in enumerate(critics, 3):
        scattered(one, seed)
    return Nets(actors[0], critics[0], actors[1], critics[1])


def q_value(weights: Weights, number: int, obs: Floats, actions: Floats) -> Floats:
    names = tuple(f"{number}.fc{layer}" for layer in (1, 2, 3))
    return layers(weights, names, np.concatenate([obs, actions], axis=1), relu)[:, 0]


def deterministic(weights: Weights, obs: Floats) -> Floats:
    return BIAS + SCALE * np.tanh(layers(weights, ("fc1", "fc2", "fc_mu"), obs, relu))


def squashed(weights: Weights, obs: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Actions that are drawn and squashed, and their log density by the change of variables."""
    return squashed_from(weights, relu(linear(weights, "fc2", relu(linear(weights, "fc1", obs)))), noise)


def squashed_from(weights: Weights, features: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """The same, from the last hidden layer."""
    log_std = -5.0 + 7.0 * (np.tanh(linear(weights, "fc_logstd", features)) + 1.0) / 2.0
    drawn = linear(weights, "fc_mean", features) + np.exp(log_std) * noise
    normal = np.exp(-(noise**2) / 2) / (np.exp(log_std) * np.sqrt(2 * np.pi))
    slope = SCALE / np.cosh(drawn) ** 2
    return BIAS + SCALE * np.tanh(drawn), np.log(normal / slope).sum(axis=1)


def transitions() -> Sample:
    """Transitions of which some end their episode."""
    own = np.random.default_rng(2)
    return Sample(
        obs=own.standard_normal((ROWS, OBS)),
        next_obs=own.standard_normal((ROWS, OBS)),
        actions=own.uniform(LOW, HIGH, (ROWS, len(LOW))),
        rewards=own.standard_normal(ROWS),
        dones=(own.random(ROWS) < 0.3).astype(float),
    )


def noise() -> Floats:
    return np.random.default_rng(6).standard_normal((ROWS, len(LOW)))


def gaussian_log_probs(weights: Weights, obs: Floats, actions: Floats, shift: Floats) -> Floats:
    """Log density of independent normal distributions around shifted means."""
    mean = layers(weights, ("actor_mean.0", "actor_mean.2", "actor_mean.4"), obs, np.tanh) + shift
    spread = np.exp(weights["actor_logstd"])
    density = np.exp(-(((actions - mean) / spread) ** 2) / 2) / np.sqrt(2 * np.pi * spread**2)
    found: Floats = np.log(density).sum(axis=1)
    return found


@pytest.mark.parametrize("alpha", [0.0, 0.5], ids=["ppo", "rpo"])
@pytest.mark.parametrize("clip_vloss", [True, False])
def test_ppo_and_rpo_for_normal_distributions(alpha: float, clip_vloss: bool) -> None:
    agent = scattered(GaussianAgent(OBS, 2))
    assert isinstance(agent, GaussianAgent)
    own = np.random.default_rng(1)
    obs, actions = own.standard_normal((ROWS, OBS)), own.standard_normal((ROWS, 2))
    shift = own.uniform(-alpha, alpha, (ROWS, 2))
    before = gaussian_log_probs(weights_of(agent), obs, actions, shift) - own.uniform(-0.4, 0.4, ROWS)
    batch = rpo_continuous_action.Batch(
        obs=obs,
        actions=actions,
        log_probs=before,
        advantages=own.standard_normal(ROWS),
        returns=own.standard_normal(ROWS),
        values=0.5 * own.standard_normal(ROWS),
        shift=shift,
    )
    settings = dict[str, Any](clip_vloss=clip_vloss, ent_coef=0.07, vf_coef=0.3, clip_coef=0.15)

    def formula(weights: Weights) -> float:
        gains = batch.advantages - batch.advantages.mean()
        gains = gains / (np.sqrt((gains**2).sum() / (ROWS - 1)) + 1e-8)
        ratio = np.exp(gaussian_log_probs(weights, obs, actions, shift) - before)
        surrogate = [min(r * a, min(max(r, 0.85), 1.15) * a) for r, a in zip(ratio, gains, strict=True)]
        spread = np.exp(weights["actor_logstd"])
        entropy = float((np.log(2 * np.pi * np.e * spread**2) / 2).sum())
        values = layers(weights, ("critic.0", "critic.2", "critic.4"), obs, np.tanh)[:, 0]
        errors = (values - batch.returns) ** 2
        if clip_vloss:
            near = batch.values + np.minimum(np.maximum(values - batch.values, -0.15), 0.15)
            errors = np.where((near - batch.returns) ** 2 > errors, (near - batch.returns) ** 2, errors)
        return float(-np.mean(surrogate) - 0.07 * entropy + 0.3 * errors.mean() / 2)

    def loss() -> Any:
        given = tensors(batch)
        if alpha:
            return rpo_continuous_action.rpo_loss(agent, rpo_continuous_action.Args(**settings), given)
        own_batch = ppo_continuous_action.Batch(*given[:-1])
        return ppo_continuous_action.ppo_loss(agent, ppo_continuous_action.Args(**settings), own_batch)

    assert_same(agent, loss, formula)
    ratio = np.exp(gaussian_log_probs(weights_of(agent), obs, actions, shift) - before)
    for side in (ratio > 1.15, ratio < 0.85, (ratio > 0.85) & (ratio < 1.15)):
        assert (side & (batch.advantages > 0)).any() and (side & (batch.advantages < 0)).any()


def test_td3_learns_the_lesser_value_of_a_smoothed_action_within_its_bounds() -> None:
    made, batch = nets(Actor), transitions()
    smoothing = np.clip(0.6 * noise(), -0.5, 0.5)
    args = td3_continuous_action.Args(gamma=GAMMA)
    behind = weights_of(made.target_actor), weights_of(made.target_critics)
    moved = deterministic(behind[0], batch.next_obs) + smoothing * SCALE
    assert ((moved < LOW) | (moved > HIGH)).any(), "some actions leave their bounds"
    next_actions = np.minimum(np.maximum(moved, LOW), HIGH)

    def formula(weights: Weights) -> float:
        lesser = np.minimum(*(q_value(behind[1], number, batch.next_obs, next_actions) for number in (0, 1)))
        targets = batch.rewards + np.where(batch.dones == 1.0, 0.0, GAMMA * lesser)
        errors = [q_value(weights, number, batch.obs, batch.actions) - targets for number in (0, 1)]
        return float(sum((error**2).mean() for error in errors))

    given = tensors(td3_continuous_action.Batch(*batch, smoothing))
    assert isinstance(made.target_actor, Actor) and isinstance(made.actor, Actor)
    target_actor, actor = made.target_actor, made.actor
    assert_same(
        made.critics,
        lambda: td3_continuous_action.critic_loss(
            made.critics, target_actor, made.target_critics, args, given
        ),
        formula,
    )
    critics = weights_of(made.critics)
    assert_same(
        actor,
        lambda: td3_continuous_action.actor_loss(actor, made.critics, given),
        lambda weights: (
            -float(
                q_value(critics, 0, batch.obs, deterministic(weights, batch.obs)).mean(),
            )
        ),
    )


def test_ddpg_learns_the_value_of_the_targets_action() -> None:
    made, batch = nets(Actor, number=1), transitions()
    args = ddpg_continuous_action.Args(gamma=GAMMA)
    behind = weights_of(made.target_actor), weights_of(made.target_critics)

    def formula(weights: Weights) -> float:
        future = q_value(behind[1], 0, batch.next_obs, deterministic(behind[0], batch.next_obs))
        targets = batch.rewards + np.where(batch.dones == 1.0, 0.0, GAMMA * future)
        return float(((q_value(weights, 0, batch.obs, batch.actions) - targets) ** 2).mean())

    given = tensors(batch)
    assert isinstance(made.target_actor, Actor) and isinstance(made.actor, Actor)
    target_actor, actor = made.target_actor, made.actor
    assert_same(
        made.critics,
        lambda: ddpg_continuous_action.critic_loss(
            made.critics, target_actor, made.target_critics, args, given
        ),
        formula,
    )
    critics = weights_of(made.critics)
    assert_same(
        actor,
        lambda: ddpg_continuous_action.actor_loss(actor, made.critics, given),
        lambda weights: -float(q_value(critics, 0, batch.obs, deterministic(weights, batch.obs)).mean()),
    )


def test_sac_learns_soft_values_and_a_policy_that_draws() -> None:
    made, batch = nets(GaussianActor), transitions()
    args, alpha = sac_continuous_action.Args(gamma=GAMMA), 0.3
    temperature = sac_continuous_action.Temperature(alpha).double()
    alpha = float(temperature.log_alpha.exp())
    given = tensors(sac_continuous_action.Batch(*batch, noise()))
    assert isinstance(made.actor, GaussianActor)
    actor, now, behind = made.actor, weights_of(made.actor), weights_of(made.target_critics)

    def critics_formula(weights: Weights) -> float:
        next_actions, log_probs = squashed(now, batch.next_obs, noise())
        lesser = np.minimum(*(q_value(behind, number, batch.next_obs, next_actions) for number in (0, 1)))
        targets = batch.rewards + np.where(batch.dones == 1.0, 0.0, GAMMA * (lesser - alpha * log_probs))
        errors = [q_value(weights, number, batch.obs, batch.actions) - targets for number in (0, 1)]
        return float(sum((error**2).mean() for error in errors))

    assert_same(
        made.critics,
        lambda: sac_continuous_action.critic_loss(
            made.critics, actor, made.target_critics, temperature, args, given
        ),
        critics_formula,
    )
    critics = weights_of(made.critics)

    def actor_formula(weights: Weights) -> float:
        actions, log_probs = squashed(weights, batch.obs, noise())
        lesser = np.minimum(*(q_value(critics, number, batch.obs, actions) for number in (0, 1)))
        return float((alpha * log_probs - lesser).mean())

    assert_same(
        actor,
        lambda: sac_continuous_action.actor_loss(actor, made.critics, temperature, given),
        actor_formula,
    )
    assert temperature.log_alpha.grad is None, "the policy's loss does not move the temperature"


def quantiles_of(weights: Weights, obs: Floats, actions: Floats, critics: int) -> Floats:
    """Those of all critics, one critic after the other."""
    pairs = np.concatenate([obs, actions], axis=1)
    names = [tuple(f"{number}.fc{layer}" for layer in (1, 2, 3)) for number in range(critics)]
    return np.concatenate([layers(weights, one, pairs, relu) for one in names], axis=1)


def test_tqc_learns_the_pooled_quantiles_without_the_highest() -> None:
    number, each, dropped = 2, 8, 3
    args = tqc.Args(n_critics=number, n_quantiles=each, top_quantiles_to_drop=dropped, gamma=GAMMA, kappa=0.5)
    actor = scattered(GaussianActor(OBS, torch.from_numpy(LOW), torch.from_numpy(HIGH)), 1)
    assert isinstance(actor, GaussianActor)
    made = [nn.ModuleList(tqc.QuantileCritic(OBS, len(LOW), each) for _ in range(number)) for _ in range(2)]
    critics, targets = made
    for seed, one in enumerate(made, 3):
        scattered(one, seed)
    temperature = sac_continuous_action.Temperature(0.3).double()
    batch = sac_continuous_action.Batch(*transitions(), noise())
    alpha, given = float(temperature.log_alpha.exp()), tensors(batch)

    next_actions, log_probs = squashed(weights_of(actor), batch.next_obs, batch.noise)
    pooled = np.sort(quantiles_of(weights_of(targets), batch.next_obs, next_actions, number), axis=1)
    soft = pooled[:, : number * (each - dropped)] - alpha * log_probs[:, None]
    wanted = batch.rewards[:, None] + np.where(batch.dones[:, None] == 1.0, 0.0, GAMMA * soft)

    def critics_formula(weights: Weights) -> float:
        found, losses = quantiles_of(weights, batch.obs, batch.actions, number), []
        for row, quantiles in enumerate(found):
            for place, quantile in enumerate(quantiles):
                fraction = (place % each + 0.5) / each
                losses.extend(quantile_huber(one - quantile, fraction, args.kappa) for one in wanted[row])
        return float(np.mean(losses))

    assert_same(
        critics, lambda: tqc.critic_loss(critics, actor, targets, temperature, args, given), critics_formula
    )
    known = weights_of(critics)

    def actor_formula(weights: Weights) -> float:
        actions, log_probs = squashed(weights, batch.obs, batch.noise)
        return float(
            (alpha * log_probs - quantiles_of(known, batch.obs, actions, number).mean(axis=1)).mean()
        )

    assert_same(actor, lambda: tqc.actor_loss(actor, critics, temperature, given), actor_formula)
    assert temperature.log_alpha.grad is None


def normed(weights: Weights, prefix: str, rows: Floats, known: Weights | None = None) -> Floats:
    """Two hidden layers with batch normalisation before and behind each, by its statistics or known ones."""

    def norm(number: int, x: Floats) -> Floats:
        name = f"{prefix}norm{number}"
        mean, var = x.mean(axis=0), ((x - x.mean(axis=0)) ** 2).mean(axis=0)
        if known is not None:
            mean, var = known[f"{name}.running_mean"], known[f"{name}.running_var"]
        found: Floats = (x - mean) / np.sqrt(var + 1e-5) * weights[f"{name}.weight"]
        return found + weights[f"{name}.bias"]

    rows = norm(0, rows)
    for number in (1, 2):
        rows = norm(number, relu(linear(weights, f"{prefix}fc{number}", rows)))
    return rows


def normed_values(weights: Weights, pairs: Floats, known: Weights | None = None) -> list[Floats]:
    return [
        linear(weights, f"{number}.fc3", normed(weights, f"{number}.", pairs, known))[:, 0]
        for number in (0, 1)
    ]


def statistics_of(module: nn.Module) -> dict[str, Floats]:
    """The running means and variances, drawn anew and as they are now."""
    own = torch.Generator().manual_seed(9)
    for name, buffer in module.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            buffer.copy_(0.5 + torch.rand(buffer.shape, generator=own, dtype=torch.float64))
    return {name: buffer.numpy().copy() for name, buffer in module.named_buffers()}


def test_crossq_learns_from_both_observations_as_one_batch() -> None:
    actor = crossq.NormedActor(OBS, torch.from_numpy(LOW), torch.from_numpy(HIGH)).eval()
    critics = nn.ModuleList(crossq.NormedQNetwork(OBS, len(LOW), 16) for _ in range(2)).eval()
    scattered(actor, 1)
    scattered(critics, 2)
    of_actor, _ = statistics_of(actor), statistics_of(critics)
    temperature = sac_continuous_action.Temperature(0.3).double()
    batch = sac_continuous_action.Batch(*transitions(), noise())
    alpha, given = float(temperature.log_alpha.exp()), tensors(batch)

    features = normed(weights_of(actor), "", batch.next_obs, of_actor)
    next_actions, log_probs = squashed_from(weights_of(actor), features, batch.noise)
    pairs = [
        np.concatenate(one, axis=1) for one in ((batch.obs, batch.actions), (batch.next_obs, next_actions))
    ]
    both = np.concatenate(pairs)
    # The targets come from the same pass, and give no gradient.
    soft = np.minimum(*normed_values(weights_of(critics), both))[ROWS:] - alpha * log_probs
    wanted = batch.rewards + np.where(batch.dones == 1.0, 0.0, GAMMA * soft)

    def critics_formula(weights: Weights) -> float:
        return float(sum(((one[:ROWS] - wanted) ** 2).mean() for one in normed_values(weights, both)))

    args = crossq.Args(gamma=GAMMA)
    assert_same(
        critics, lambda: crossq.critic_loss(critics, actor, temperature, args, given), critics_formula
    )
    known, of_critics = weights_of(critics), statistics_of(critics)

    def actor_formula(weights: Weights) -> float:
        actions, log_probs = squashed_from(weights, normed(weights, "", batch.obs), batch.noise)
        pairs = np.concatenate((batch.obs, actions), axis=1)
        return float((alpha * log_probs - np.minimum(*normed_values(known, pairs, of_critics))).mean())

    assert_same(actor, lambda: crossq.actor_loss(actor, critics, temperature, given), actor_formula)
    assert temperature.log_alpha.grad is None
