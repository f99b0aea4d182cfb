"""DQN: acting and its gradient without torch."""

from __future__ import annotations

from typing import Any, Protocol, final

import numpy as np
from torch import nn

from cleanrl_worker.accelerated.layers import Floats, Stack, is_plain_stack, on_cpu
from cleanrl_worker.accelerated.q_values import write_gradient
from cleanrl_worker.agents.q_networks import QNetwork


class DQNSettings(Protocol):
    """The arguments that the update reads."""

    gamma: float
    kernels: bool


@final
class DQNKernel:
    """The gradient of `dqn_loss` for a network that is a plain stack, and its outputs."""

    def __init__(self, network: QNetwork, target: QNetwork, settings: DQNSettings) -> None:
        self._network = Stack(network.network)
        self._target = Stack(target.network)
        self._gamma = np.float32(settings.gamma)

    @classmethod
    def for_network(cls, network: nn.Module, target: nn.Module, settings: DQNSettings) -> DQNKernel | None:
        """The kernel, if it is wanted and fits the network."""
        if not settings.kernels or not isinstance(network, QNetwork) or not isinstance(target, QNetwork):
            return None
        fits = is_plain_stack(network.network) and on_cpu(network)
        return cls(network, target, settings) if fits else None

    def values(self, obs: Floats) -> Floats:
        return self._network.forward(obs)

    def gradient(self, batch: Any) -> Floats:
        """Leave the gradient for a minibatch in memory; gives what the loss logs."""
        next_values = self._target.forward(batch.next_obs).max(axis=1)
        targets = batch.rewards + self._gamma * (1.0 - batch.dones) * next_values
        return write_gradient(self._network, batch.obs, batch.actions, targets)
