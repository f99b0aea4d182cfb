"""Losses of policies with memory beside float64 formulas: gradients go back in time and end with episodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn

from cleanrl_worker.agents.memory import GRUAgent
from cleanrl_worker.agents.nature import FEATURES, MEMORY, NatureLSTMAgent, NatureLSTMQNetwork
from cleanrl_worker.agents.transformer import TransformerAgent
from cleanrl_worker.algorithms import ppo_atari_lstm, ppo_gru, ppo_trxl, pqn_atari_envpool_lstm
from support.formulas import (
    Floats,
    Weights,
    assert_same,
    clipped_loss,
    linear,
    log_probs_and_entropies,
    scattered,
    tensors,
    weights_of,
)
from support.transformer import step_of

STEPS, ENVS, OBS, NVEC = 6, 2, 5, (3, 2)
STARTS = np.array([[0, 1], [0, 0], [0, 0], [1, 0], [0, 0], [1, 0]], float)
PICTURE = (36, 36, 1)
"""The least that the convolutions can be made for. Vectors stand in their place: the losses do not look."""


def sigmoid(x: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-x))


def gates(weights: Weights, net: str, into: str, x: Floats) -> Floats:
    found: Floats = x @ weights[f"{net}.weight_{into}_l0"].T + weights[f"{net}.bias_{into}_l0"]
    return found


def gru(weights: Weights, features: Floats, hidden: Floats, starts: Floats) -> Floats:
    """What a gated recurrent unit gives for sequences, step by step, by its equations."""
    found = []
    for seen, begins in zip(features, starts, strict=True):
        hidden = hidden * (1.0 - begins)[:, None]
        given, kept = gates(weights, "gru", "ih", seen), gates(weights, "gru", "hh", hidden)
        (reset_in, update_in, new_in), (reset_kept, update_kept, new_kept) = (
            np.split(part, 3, axis=1) for part in (given, kept)
        )
        reset, update = sigmoid(reset_in + reset_kept), sigmoid(update_in + update_kept)
        hidden = (1.0 - update) * np.tanh(new_in + reset * new_kept) + update * hidden
        found.append(hidden)
    return np.stack(found)


def lstm(weights: Weights, features: Floats, memory: Floats, starts: Floats) -> Floats:
    """What an LSTM gives for sequences, step by step, by its equations; memory is hidden state, then cell."""
    (hidden, cell), found = np.split(memory, 2, axis=1), []
    for seen, begins in zip(features, starts, strict=True):
        goes_on = (1.0 - begins)[:, None]
        hidden, cell = hidden * goes_on, cell * goes_on
        both = gates(weights, "lstm", "ih", seen) + gates(weights, "lstm", "hh", hidden)
        into, kept, new, out = np.split(both, 4, axis=1)
        cell = sigmoid(kept) * cell + sigmoid(into) * np.tanh(new)
        hidden = sigmoid(out) * np.tanh(cell)
        found.append(hidden)
    return np.stack(found)


def rows_of(found: Floats) -> Floats:
    """Sequences as rows of steps."""
    return found.reshape(STEPS * ENVS, -1)


def sequences(memory_size: int, acted: Any) -> dict[str, Any]:
    """Sequences with ends of episodes in them, whose ratios lie inside and outside of what is clipped.

    `acted` gives logits, in rows, of observations and the memory before them.
    """
    own = np.random.default_rng(1)
    obs, memory = own.standard_normal((STEPS, ENVS, OBS)), own.standard_normal((ENVS, memory_size))
    actions = np.stack([own.integers(0, size, (STEPS, ENVS)) for size in NVEC], axis=2)
    before, _ = log_probs_and_entropies(acted(obs, memory), rows_of(actions), NVEC)
    return {
        "memory": memory,
        "starts": STARTS,
        "obs": obs,
        "actions": actions,
        "log_probs": before.reshape(STEPS, ENVS) - own.uniform(-0.4, 0.4, (STEPS, ENVS)),
        "advantages": own.standard_normal((STEPS, ENVS)),
        "returns": own.standard_normal((STEPS, ENVS)),
        "values": 0.5 * own.standard_normal((STEPS, ENVS)),
    }


def heads(weights: Weights, seen: Floats) -> tuple[Floats, Floats]:
    return linear(weights, "actor", seen), linear(weights, "critic", seen)[:, 0]


def test_ppo_with_a_gru() -> None:
    agent = scattered(GRUAgent(OBS, NVEC, hidden=8))
    assert isinstance(agent, GRUAgent)

    def outputs(weights: Weights, obs: Floats, memory: Floats) -> tuple[Floats, Floats]:
        features = np.tanh(linear(weights, "network.0", obs))
        return heads(weights, rows_of(gru(weights, features, memory, STARTS)))

    batch = ppo_gru.Batch(**sequences(8, lambda obs, memory: outputs(weights_of(agent), obs, memory)[0]))
    args = ppo_gru.Args(ent_coef=0.3, vf_coef=0.4)

    def formula(weights: Weights) -> float:
        logits, values = outputs(weights, batch.obs, batch.memory)
        told = log_probs_and_entropies(logits, rows_of(batch.actions), NVEC)
        return clipped_loss(*told, values, batch, args)

    assert_same(agent, lambda: ppo_gru.ppo_loss(agent, args, tensors(batch)), formula)


def of_vectors(net: nn.Module) -> nn.Module:
    """A network for pictures with one layer for vectors in the place of its convolutions."""
    net.network = nn.Sequential(nn.Linear(OBS, FEATURES), nn.Tanh())
    return scattered(net)


def remembered(weights: Weights, obs: Floats, memory: Floats) -> Floats:
    features = np.tanh(linear(weights, "network.0", obs))
    return rows_of(lstm(weights, features, memory, STARTS))


def test_ppo_with_an_lstm() -> None:
    agent = of_vectors(NatureLSTMAgent(PICTURE, NVEC))
    assert isinstance(agent, NatureLSTMAgent)

    def outputs(weights: Weights, obs: Floats, memory: Floats) -> tuple[Floats, Floats]:
        return heads(weights, remembered(weights, obs, memory))

    given = sequences(2 * MEMORY, lambda obs, memory: outputs(weights_of(agent), obs, memory)[0])
    batch, args = ppo_atari_lstm.Batch(**given), ppo_atari_lstm.Args(ent_coef=0.3, vf_coef=0.4)

    def formula(weights: Weights) -> float:
        logits, values = outputs(weights, batch.obs, batch.memory)
        told = log_probs_and_entropies(logits, rows_of(batch.actions), NVEC)
        return clipped_loss(*told, values, batch, args)

    assert_same(agent, lambda: ppo_atari_lstm.ppo_loss(agent, args, tensors(batch)), formula)


def test_pqn_with_an_lstm() -> None:
    network = of_vectors(NatureLSTMQNetwork(PICTURE, 4))
    assert isinstance(network, NatureLSTMQNetwork)
    own = np.random.default_rng(2)
    batch = pqn_atari_envpool_lstm.Batch(
        memory=own.standard_normal((ENVS, 2 * MEMORY)),
        starts=STARTS,
        obs=own.standard_normal((STEPS, ENVS, OBS)),
        actions=own.integers(0, 4, (STEPS, ENVS)),
        returns=own.standard_normal((STEPS, ENVS)),
    )

    def formula(weights: Weights) -> float:
        values = linear(weights, "q_func", remembered(weights, batch.obs, batch.memory))
        chosen = values[np.arange(STEPS * ENVS), batch.actions.reshape(-1)]
        return float(((chosen - batch.returns.reshape(-1)) ** 2).mean())

    assert_same(network, lambda: pqn_atari_envpool_lstm.pqn_loss(network, tensors(batch)), formula)


def test_ppo_with_a_transformer() -> None:
    rows, dim, number, length = 10, 8, 2, 5
    agent = scattered(TransformerAgent((OBS,), NVEC, number, 2, dim, length))
    assert isinstance(agent, TransformerAgent)
    ages = np.arange(length + 1)[::-1, None] / 10_000 ** (np.arange(0, dim, 2) / dim)
    # As they are, they are the waves in single precision.
    agent.ages = torch.from_numpy(np.concatenate((np.sin(ages), np.cos(ages)), axis=1))
    own = np.random.default_rng(1)
    obs, window = own.standard_normal((rows, OBS)), own.standard_normal((rows, length, number, dim))
    counts = own.integers(0, length + 1, rows).astype(float)
    actions = np.stack([own.integers(0, size, rows) for size in NVEC], axis=1)

    def outputs(weights: Weights) -> tuple[Floats, Floats]:
        each = [
            step_of(weights, obs[row], list(window[row, length - int(counts[row]) :]), number, 2)
            for row in range(rows)
        ]
        return np.stack([one[0] for one in each]), np.array([one[1] for one in each])

    before, _ = log_probs_and_entropies(outputs(weights_of(agent))[0], actions, NVEC)
    batch = ppo_trxl.Batch(
        window=window,
        counts=counts,
        obs=obs,
        actions=actions,
        log_probs=before - own.uniform(-0.4, 0.4, rows),
        advantages=own.standard_normal(rows),
        returns=own.standard_normal(rows),
        values=0.5 * own.standard_normal(rows),
        ent_coef=np.array(0.3),
    )
    args = ppo_trxl.Args(vf_coef=0.4, norm_adv=True)
    known = SimpleNamespace(**vars(args), ent_coef=0.3)

    def formula(weights: Weights) -> float:
        logits, values = outputs(weights)
        return clipped_loss(*log_probs_and_entropies(logits, actions, NVEC), values, batch, known)

    assert len({*counts}) > 3, "some windows are not full"
    assert_same(agent, lambda: ppo_trxl.ppo_loss(agent, args, tensors(batch)), formula)
