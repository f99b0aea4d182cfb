"""Losses of PPO's kin for pictures beside their formulas in float64 numpy, gradient by gradient.

The losses ask a network for outputs and do not look at what it reads, so small layers stand where pictures
would be.
"""

from __future__ import annotations

import dataclasses
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cleanrl_worker.agents.impala import PhasicAgent
from cleanrl_worker.algorithms import ppg_procgen, ppo_atari, ppo_procgen, ppo_rnd_envpool
from support.formulas import (
    Floats,
    Weights,
    assert_same,
    clipped_ppo,
    layers,
    linear,
    log_probs_and_entropies,
    log_softmax,
    scattered,
    tensors,
    weights_of,
)

ROWS, OBS, NVEC, HIDDEN = 24, 5, (3, 2), 16


class Heads(nn.Module):
    """Logits and `values` values on one layer."""

    nvec = NVEC

    def __init__(self, values: int) -> None:
        super().__init__()
        self.body = nn.Linear(OBS, HIDDEN)
        self.actor = nn.Linear(HIDDEN, sum(NVEC))
        self.critics = nn.ModuleList(nn.Linear(HIDDEN, 1) for _ in range(values))

    def forward(self, obs: Tensor) -> tuple[Tensor, ...]:
        features = torch.tanh(self.body(obs))
        return self.actor(features), *(critic(features).squeeze(1) for critic in self.critics)

    all_outputs = forward


def outputs(weights: Weights, obs: Floats, values: int, prefix: str = "") -> list[Floats]:
    features = np.tanh(linear(weights, f"{prefix}body", obs))
    heads = [linear(weights, f"{prefix}critics.{number}", features)[:, 0] for number in range(values)]
    return [linear(weights, f"{prefix}actor", features), *heads]


def steps(agent: nn.Module) -> dict[str, Any]:
    """Steps whose ratios lie inside and outside of what is clipped."""
    own = np.random.default_rng(1)
    obs = own.standard_normal((ROWS, OBS))
    actions = np.stack([own.integers(0, size, ROWS) for size in NVEC], axis=1)
    before, _ = log_probs_and_entropies(outputs(weights_of(agent), obs, 1)[0], actions, NVEC)
    return {
        "obs": obs,
        "actions": actions,
        "log_probs": before - own.uniform(-0.4, 0.4, ROWS),
        "advantages": own.standard_normal(ROWS),
        "returns": own.standard_normal(ROWS),
        "values": 0.5 * own.standard_normal(ROWS),
    }


@pytest.mark.parametrize("page", [ppo_atari, ppo_procgen], ids=lambda page: page.__name__.rpartition(".")[2])
def test_ppo_for_pictures(page: ModuleType) -> None:
    agent = scattered(Heads(1))
    batch = page.Batch(**steps(agent))
    args = dataclasses.replace(page.Args(), clip_coef=0.15, ent_coef=0.07, vf_coef=0.3)
    assert args.norm_adv and args.clip_vloss
    assert_same(
        agent,
        lambda: page.ppo_loss(agent, args, tensors(batch)),
        lambda weights: clipped_ppo(*outputs(weights, batch.obs, 1), batch, args, NVEC),
    )


def test_ppg_learns_policy_and_value_in_its_first_phase() -> None:
    agent: Any = scattered(Heads(1))
    batch = ppg_procgen.Batch(**steps(agent))
    args = dataclasses.replace(ppg_procgen.Args(), clip_coef=0.15, ent_coef=0.07, vf_coef=0.3)
    # Its advantages are normalised over the whole rollout, before the minibatches.
    known = SimpleNamespace(**{**dataclasses.asdict(args), "norm_adv": False})
    assert_same(
        agent,
        lambda: ppg_procgen.phase_loss(agent, args, tensors(batch)),
        lambda weights: clipped_ppo(*outputs(weights, batch.obs, 1), batch, known, NVEC),
    )


def test_ppg_clones_its_policy_while_it_distils_values() -> None:
    agent: Any = scattered(Heads(2))
    own = np.random.default_rng(4)
    obs, returns = own.standard_normal((ROWS, OBS)), own.standard_normal(ROWS)
    before = own.standard_normal((ROWS, sum(NVEC)))
    batch = ppg_procgen.AuxBatch(obs, returns, before)
    args = dataclasses.replace(ppg_procgen.Args(), beta_clone=0.7)

    def formula(weights: Weights) -> float:
        logits, values, auxiliary = outputs(weights, obs, 2)
        divergence, start = 0.0, 0
        for size in NVEC:
            old, new = (log_softmax(part[:, start : start + size]) for part in (before, logits))
            divergence += float((np.exp(old) * (old - new)).sum(axis=1).mean())
            start += size
        errors = ((values - returns) ** 2).mean() + ((auxiliary - returns) ** 2).mean()
        return float(errors / 2 + 0.7 * divergence)

    assert_same(agent, lambda: ppg_procgen.aux_loss(agent, args, tensors(batch)), formula)


def slopes_of(agent: nn.Module, found: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    """The gradient of each parameter that a loss moves."""
    agent.zero_grad()
    found[0].backward()  # type: ignore[no-untyped-call]
    slopes = {name: one.grad for name, one in agent.named_parameters() if one.grad is not None}
    return {name: slope.clone() for name, slope in slopes.items() if slope.abs().max() > 0.0}


def test_values_teach_the_network_of_ppg_in_its_second_phase_only_and_by_a_head_of_their_own() -> None:
    torch.manual_seed(1)
    agent, own = PhasicAgent((16, 16, 3), NVEC), np.random.default_rng(1)
    given = {name: one[:6].astype(np.float32) for name, one in steps(scattered(Heads(1))).items()}
    pictures = own.integers(0, 256, (6, 16, 16, 3), np.uint8)
    batch = tensors(ppg_procgen.Batch(**{**given, "obs": pictures, "actions": np.zeros((6, 2), np.int64)}))
    args = dataclasses.replace(ppg_procgen.Args(), ent_coef=0.1)

    def parts(slopes: dict[str, Tensor]) -> set[str]:
        return {name.partition(".")[0] for name in slopes}

    both = slopes_of(agent, ppg_procgen.phase_loss(agent, args, batch))
    policy = slopes_of(agent, ppg_procgen.phase_loss(agent, args, batch, value=False))
    value = slopes_of(agent, ppg_procgen.phase_loss(agent, args, batch, policy=False))
    assert (parts(policy), parts(value)) == ({"network", "actor"}, {"critic"})
    for name, slope in {**policy, **value}.items():
        torch.testing.assert_close(both[name], slope)

    before = agent.all_outputs(batch.obs)[0].detach() + torch.randn(6, sum(NVEC))
    aux = ppg_procgen.AuxBatch(batch.obs, batch.returns, before)
    cloned = slopes_of(agent, ppg_procgen.aux_loss(agent, args, aux))
    free = dataclasses.replace(args, beta_clone=0.0)
    found = slopes_of(agent, ppg_procgen.aux_loss(agent, free, aux))
    assert parts(cloned) == {"network", "actor", "critic", "aux_critic"}
    assert parts(found) == {"network", "critic", "aux_critic"}
    wanted = 0.5 * (agent.all_outputs(batch.obs)[2] - batch.returns).square().mean()
    for name, slope in slopes_of(agent, (wanted, wanted)).items():
        torch.testing.assert_close(found[name], slope)


class Distillation(nn.Module):
    """How far a network is from one with fixed weights, for each frame."""

    def __init__(self) -> None:
        super().__init__()
        self.predictor = nn.Sequential(nn.Linear(6, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 4))
        self.register_buffer("target", torch.linspace(-1.0, 1.0, 24, dtype=torch.float64).reshape(6, 4))

    def forward(self, frames: Tensor) -> Tensor:
        flat = frames.flatten(1)
        return (self.predictor(flat) - flat @ self.get_buffer("target")).square().mean(1)


def test_rnd_learns_two_values_and_what_is_new() -> None:
    both = scattered(nn.ModuleDict({"agent": Heads(2), "distillation": Distillation()}))
    assert isinstance(both, nn.ModuleDict)
    agent: Any = both["agent"]
    distillation: Any = both["distillation"]
    own = np.random.default_rng(7)
    pictures = 3.0 * own.standard_normal((ROWS, 2, 3))
    frames = ppo_rnd_envpool.Frames((2, 3, 1), torch.device("cpu"))
    batch = ppo_rnd_envpool.Batch(**steps(agent), int_returns=own.standard_normal(ROWS), frames=pictures)
    # Every row teaches the predictor, where otherwise a random share of them does.
    args = dataclasses.replace(
        ppo_rnd_envpool.Args(), clip_coef=0.15, ent_coef=0.07, vf_coef=0.3, update_proportion=1.0
    )

    def formula(weights: Weights) -> float:
        logits, values, new_values = outputs(weights, batch.obs, 2, prefix="agent.")
        seen = np.clip(pictures, -5.0, 5.0).reshape(ROWS, 6)
        names = ("distillation.predictor.0", "distillation.predictor.2")
        guesses = layers(weights, names, seen, lambda x: np.maximum(x, 0.0))
        missed = ((guesses - seen @ np.linspace(-1.0, 1.0, 24).reshape(6, 4)) ** 2).mean()
        of_novelty = 0.3 * ((new_values - batch.int_returns) ** 2).mean() / 2
        return float(clipped_ppo(logits, values, batch, args, NVEC) + of_novelty + missed)

    assert (np.abs(pictures) > 5.0).any(), "some frames are cut"
    assert_same(
        both, lambda: ppo_rnd_envpool.ppo_loss(agent, distillation, frames, args, tensors(batch)), formula
    )
