"""TQC and CrossQ: their losses are those of float64 sums, and batches leave their statistics in the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from cleanrl_worker.agents.continuous import GaussianActor
from cleanrl_worker.algorithms import crossq, tqc
from cleanrl_worker.algorithms.sac_continuous_action import Batch, Temperature
from cleanrl_worker.kit.accelerate import as_tensors
from cleanrl_worker.schemas.check import check_together
from mosaic.contract.errors import UserError

Doubles = NDArray[np.float64]
ROWS, OBS, ACTIONS = 6, 3, 2
ALPHA, GAMMA = 0.3, 0.9
LOW, HIGH = torch.tensor([-1.0, -2.0]), torch.tensor([1.0, 4.0])


@pytest.fixture
def batch() -> Batch:
    generator = np.random.default_rng(5)

    def drawn(*shape: int) -> Any:
        return generator.normal(size=shape).astype(np.float32)

    dones = np.array([0, 1, 0, 0, 1, 0], np.float32)
    return Batch(
        drawn(ROWS, OBS), drawn(ROWS, OBS), drawn(ROWS, ACTIONS), drawn(ROWS), dones, drawn(ROWS, ACTIONS)
    )


def linear(layer: nn.Linear, rows: Doubles) -> Doubles:
    weight, bias = (one.detach().numpy().astype(np.float64) for one in layer.parameters())
    return rows @ weight.T + bias


def relu(rows: Doubles) -> Doubles:
    return np.maximum(rows, 0.0)


def next_actions(actor: GaussianActor, batch: Batch) -> tuple[Doubles, Doubles]:
    """What the policy would do next, and its log probabilities."""
    with torch.no_grad():
        drawn = actor.draw(torch.from_numpy(batch.next_obs), torch.from_numpy(batch.noise))
    actions, log_probs = (one.numpy().astype(np.float64) for one in drawn)
    return actions, log_probs


def test_tqc_learns_from_the_pooled_quantiles_without_the_highest(batch: Batch) -> None:
    torch.manual_seed(5)
    args = tqc.Args(n_critics=2, n_quantiles=4, top_quantiles_to_drop=1, gamma=GAMMA, kappa=0.5)
    actor = GaussianActor(OBS, LOW, HIGH)
    nets = [tqc.QuantileCritic(OBS, ACTIONS, 4) for _ in range(4)]
    critics, target_critics = nn.ModuleList(nets[:2]), nn.ModuleList(nets[2:])

    def quantiles(critic: Any, obs: Any, actions: Any) -> Doubles:
        hidden = relu(linear(critic.fc1, np.concatenate((obs, actions), axis=1)))
        return linear(critic.fc3, relu(linear(critic.fc2, hidden)))

    actions, log_probs = next_actions(actor, batch)
    pooled = np.concatenate([quantiles(net, batch.next_obs, actions) for net in nets[2:]], axis=1)
    soft = np.sort(pooled, axis=1)[:, :6] - ALPHA * log_probs[:, None]
    targets = batch.rewards[:, None] + (1.0 - batch.dones)[:, None] * GAMMA * soft
    total, slopes = 0.0, np.zeros((2, 4))
    own = [quantiles(net, batch.obs, batch.actions) for net in nets[:2]]
    for (critic, row, place), quantile in np.ndenumerate(own):
        for error in targets[row] - quantile:
            weight = abs((place + 0.5) / 4 - (error < 0)) / 0.5 / (ROWS * 8 * 6)
            size = abs(error)
            total += weight * (0.5 * error**2 if size <= 0.5 else 0.5 * (size - 0.25))
            slopes[critic, place] -= weight * np.clip(error, -0.5, 0.5)

    loss, logged = tqc.critic_loss(
        critics, actor, target_critics, Temperature(ALPHA), args, as_tensors(batch, "cpu")
    )
    np.testing.assert_allclose(logged.detach(), [np.mean(own), total], rtol=1e-4)
    torch.autograd.backward(loss)
    for net, slope in zip(nets[:2], slopes, strict=True):
        np.testing.assert_allclose(net.fc3.bias.grad, slope, rtol=1e-4, atol=1e-7)


def test_tqc_must_keep_a_quantile() -> None:
    values = vars(tqc.Args(n_quantiles=3, top_quantiles_to_drop=3))
    with pytest.raises(UserError, match="a critic has only 3 quantiles"):
        check_together(values)


def test_crossq_normalises_both_observations_as_one_batch_and_keeps_its_statistics(batch: Batch) -> None:
    torch.manual_seed(5)
    args = crossq.Args(gamma=GAMMA)
    actor = crossq.NormedActor(OBS, LOW, HIGH).eval()
    nets = [crossq.NormedQNetwork(OBS, ACTIONS, 8) for _ in range(2)]
    critics = nn.ModuleList(nets).eval()
    actions, log_probs = next_actions(actor, batch)

    def normed(layer: nn.BatchNorm1d, rows: Doubles) -> Doubles:
        return (rows - rows.mean(axis=0)) / np.sqrt(rows.var(axis=0) + layer.eps)

    both = np.concatenate(
        [
            np.concatenate((batch.obs, batch.actions), axis=1),
            np.concatenate((batch.next_obs, actions), axis=1),
        ]
    )
    values = []
    for net in nets:
        hidden = normed(net.norm1, relu(linear(net.fc1, normed(net.norm0, both))))
        values.append(linear(net.fc3, normed(net.norm2, relu(linear(net.fc2, hidden))))[:, 0])
    soft = np.minimum(*values)[ROWS:] - ALPHA * log_probs
    targets = batch.rewards + (1.0 - batch.dones) * GAMMA * soft
    errors = [value[:ROWS] - targets for value in values]

    loss, logged = crossq.critic_loss(critics, actor, Temperature(ALPHA), args, as_tensors(batch, "cpu"))
    wanted = [*(value[:ROWS].mean() for value in values), *((error**2).mean() for error in errors)]
    np.testing.assert_allclose(logged.detach(), wanted, rtol=1e-4, atol=1e-6)
    torch.autograd.backward(loss)
    for net, error in zip(nets, errors, strict=True):
        # The targets give no gradient, though they come from the same pass.
        np.testing.assert_allclose(net.fc3.bias.grad, [2.0 * error.mean()], rtol=1e-4, atol=1e-6)
        moved = crossq.MOMENTUM * both.mean(axis=0)
        np.testing.assert_allclose(net.norm0.running_mean, moved, rtol=1e-4, atol=1e-6)
        spread = 1.0 - crossq.MOMENTUM + crossq.MOMENTUM * both.var(axis=0, ddof=1)
        np.testing.assert_allclose(net.norm0.running_var, spread, rtol=1e-4)


def test_crossqs_policy_is_moved_through_its_own_batch_only(batch: Batch) -> None:
    torch.manual_seed(5)
    actor = crossq.NormedActor(OBS, LOW, HIGH).eval()
    critics = nn.ModuleList(crossq.NormedQNetwork(OBS, ACTIONS, 8) for _ in range(2)).eval()
    before = {name: tensor.clone() for name, tensor in critics.state_dict().items()}
    crossq.actor_loss(actor, critics, Temperature(ALPHA), as_tensors(batch, "cpu"))
    np.testing.assert_allclose(
        actor.norm0.running_mean, crossq.MOMENTUM * batch.obs.mean(axis=0), rtol=1e-4, atol=1e-6
    )
    for name, tensor in critics.state_dict().items():
        torch.testing.assert_close(tensor, before[name])
    assert not actor.training and not critics.training
