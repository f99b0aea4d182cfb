"""DQN: acting and learning without torch."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from cleanrl_worker.agents.q_networks import QNetwork
from cleanrl_worker.kernels.layers import Floats, Stack, is_plain_stack, on_cpu
from cleanrl_worker.kernels.q_values import write_gradient
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.replay import Sample
from cleanrl_worker.training.targets import Target


class DQNSettings(Protocol):
    """The arguments that the update reads."""

    gamma: float
    learning_rate: float


def fits(network: Any) -> bool:
    """Whether the kernel can compute this network: a plain stack on the CPU."""
    return isinstance(network, QNetwork) and is_plain_stack(network.network) and on_cpu(network)


class DQNKernel:
    """Does for a network what `TorchLearner` of the algorithm's file does."""

    def __init__(
        self, network: QNetwork, target: Target[QNetwork], optimizer: Adam, settings: DQNSettings
    ) -> None:
        self._network = Stack(network.network)
        self._target = Stack(target.net.network)
        self._optimizer = optimizer
        self._settings = settings

    def values(self, obs: Floats) -> Floats:
        return self._network.forward(obs)

    def learn(self, sample: Sample) -> Floats:
        """One update; gives what is logged, in the order of the algorithm's `LOGGED`."""
        s = self._settings
        next_values = self._target.forward(sample.next_obs).max(axis=1)
        targets = sample.rewards + np.float32(s.gamma) * (1.0 - sample.dones) * next_values
        logged = write_gradient(self._network, sample.obs, sample.actions, targets)
        self._optimizer.descend(s.learning_rate)
        return logged
