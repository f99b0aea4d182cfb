"""C51: acting and learning without torch."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cleanrl_worker.agents.q_networks import DistributionalQNetwork
from cleanrl_worker.kernels.layers import Floats, Stack, is_plain_stack, on_cpu
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.replay import Sample
from cleanrl_worker.training.targets import Target


class C51Settings(Protocol):
    """The arguments that the update reads."""

    gamma: float
    learning_rate: float
    v_min: float
    v_max: float


def fits(network: Any) -> bool:
    """Whether the kernel can compute this network: a plain stack on the CPU."""
    return isinstance(network, DistributionalQNetwork) and is_plain_stack(network.network) and on_cpu(network)


class C51Kernel:
    """Does for a network what `TorchLearner` of the algorithm's file does."""

    def __init__(
        self,
        network: DistributionalQNetwork,
        target: Target[DistributionalQNetwork],
        optimizer: Adam,
        settings: C51Settings,
    ) -> None:
        self._network = Stack(network.network)
        self._target = Stack(target.net.network)
        self._optimizer = optimizer
        self._settings = settings
        self._atoms = network.atoms.numpy()
        self._shape = (network.num_actions, len(self._atoms))

    def values(self, obs: Floats) -> Floats:
        return self._means(softmax(self._network.forward(obs).reshape(-1, *self._shape)))

    def learn(self, sample: Sample) -> Floats:
        """One update; gives what is logged, in the order of the algorithm's `LOGGED`."""
        size, each = len(sample.actions), np.arange(len(sample.actions))
        target_probs = self._target_probs(sample, each)
        logits = self._network.forward(sample.obs)
        by_action = logits.reshape(-1, *self._shape)
        chosen = by_action[each, sample.actions]
        log_probs = np.asarray(torch.log_softmax(torch.from_numpy(chosen), dim=1))
        loss = -np.vdot(target_probs, log_probs) / size
        probs = np.exp(log_probs)
        mean_value = (probs @ self._atoms).mean()
        probs -= target_probs
        probs *= np.float32(1.0 / size)
        # The logits are no longer needed: their memory takes the gradient.
        by_action.fill(0.0)
        by_action[each, sample.actions] = probs
        self._network.backward(logits)
        self._optimizer.descend(self._settings.learning_rate)
        return np.array([loss, mean_value], np.float32)

    def _target_probs(self, sample: Sample, each: NDArray[np.int64]) -> Floats:
        s = self._settings
        logits = self._target.forward(sample.next_obs).reshape(-1, *self._shape)
        probs = softmax(logits)
        best = self._means(probs).argmax(axis=1)
        return project(probs[each, best], sample.rewards, sample.dones, self._atoms, s)

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
