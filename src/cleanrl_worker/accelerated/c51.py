"""C51: acting and its gradient without torch's autograd."""

from __future__ import annotations

from typing import Any, Protocol, final

import numpy as np
import torch
from torch import nn

from cleanrl_worker.accelerated.layers import Floats, Stack, is_plain_stack, on_cpu
from cleanrl_worker.agents.q_networks import DistributionalQNetwork


class C51Settings(Protocol):
    """The arguments that the update reads."""

    gamma: float
    v_min: float
    v_max: float
    kernels: bool


@final
class C51Kernel:
    """The gradient of `c51_loss` for a network that is a plain stack, and its values."""

    def __init__(
        self, network: DistributionalQNetwork, target: DistributionalQNetwork, settings: C51Settings
    ) -> None:
        self._network = Stack(network.network)
        self._target = Stack(target.network)
        self._settings = settings
        self._atoms = network.atoms.numpy()
        self._shape = (network.num_actions, len(self._atoms))

    @classmethod
    def for_network(cls, network: nn.Module, target: nn.Module, settings: C51Settings) -> C51Kernel | None:
        """The kernel, if it is wanted and fits the network."""
        if not isinstance(network, DistributionalQNetwork) or not isinstance(target, DistributionalQNetwork):
            return None
        fits = settings.kernels and is_plain_stack(network.network) and on_cpu(network)
        return cls(network, target, settings) if fits else None

    def values(self, obs: Floats) -> Floats:
        return self._means(softmax(self._network.forward(obs).reshape(-1, *self._shape)))

    def gradient(self, batch: Any) -> Floats:
        """Leave the gradient for a minibatch in memory; gives what the loss logs."""
        size, each = len(batch.actions), np.arange(len(batch.actions))
        probs = softmax(self._target.forward(batch.next_obs).reshape(-1, *self._shape))
        best = self._means(probs).argmax(axis=1)
        target_probs = project(probs[each, best], batch.rewards, batch.dones, self._atoms, self._settings)
        logits = self._network.forward(batch.obs)
        by_action = logits.reshape(-1, *self._shape)
        chosen = by_action[each, batch.actions]
        log_probs = np.asarray(torch.log_softmax(torch.from_numpy(chosen), dim=1))
        loss = -np.vdot(target_probs, log_probs) / size
        probs = np.exp(log_probs)
        mean_value = (probs @ self._atoms).mean()
        probs -= target_probs
        probs *= np.float32(1.0 / size)
        # The logits are no longer needed: their memory takes the gradient.
        by_action.fill(0.0)
        by_action[each, batch.actions] = probs
        self._network.backward(logits)
        return np.array([loss, mean_value], np.float32)

    def _means(self, probs: Floats) -> Floats:
        """The mean return of each action; one product is faster than one for each row."""
        means: Floats = probs.reshape(-1, len(self._atoms)) @ self._atoms
        return means.reshape(probs.shape[:-1])


def softmax(logits: Floats) -> Floats:
    """Probabilities over the last axis; in numpy they take two and a half times as long."""
    return np.asarray(torch.softmax(torch.from_numpy(logits), dim=-1))


def project(probs: Floats, rewards: Floats, dones: Floats, atoms: Floats, s: C51Settings) -> Floats:
    """The distributions of reward plus discounted next return, brought back onto the atoms."""
    size, num_atoms = probs.shape
    places = (np.float32(s.gamma) * (1.0 - dones))[:, None] * atoms
    places += rewards[:, None]
    np.clip(places, s.v_min, s.v_max, out=places)
    places -= np.float32(s.v_min)
    places *= np.float32((num_atoms - 1) / (s.v_max - s.v_min))
    lower = np.minimum(places.astype(np.int32), num_atoms - 2)
    places -= lower
    places *= probs
    lower += np.arange(0, size * num_atoms, num_atoms, dtype=np.int32)[:, None]
    flat, upper_share = lower.reshape(-1), places.reshape(-1)
    total = size * num_atoms
    projected = np.bincount(flat, probs.reshape(-1) - upper_share, total)
    projected[1:] += np.bincount(flat, upper_share, total)[:-1]
    return projected.reshape(size, num_atoms).astype(np.float32)
