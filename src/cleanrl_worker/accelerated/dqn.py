"""DQN: acting and its gradient without torch."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from torch import nn

from cleanrl_worker.accelerated.layer_norm import NormedStack
from cleanrl_worker.accelerated.layers import Floats, Stack, is_plain_stack, on_cpu
from cleanrl_worker.agents.q_networks import QNetwork


def write_gradient(
    network: Stack | NormedStack, obs: Floats, actions: NDArray[np.int64], targets: Floats
) -> Floats:
    """Leave the gradient of the mean squared error to `targets`; gives that error and the mean value."""
    values = network.forward(obs)
    size, width = values.shape
    places = np.arange(0, size * width, width)
    places += actions
    chosen = values.take(places)
    error = chosen - targets
    means = float(np.dot(error, error)) / size, float(np.add.reduce(chosen)) / size
    grad = np.zeros_like(values)
    error *= np.float32(2.0 / size)
    grad.put(places, error)
    network.backward(grad)
    return np.array(means, np.float32)


@final
class DQNKernel:
    """The gradient of `dqn_loss` for a network that is a plain stack, and its outputs."""

    def __init__(self, network: QNetwork, target: QNetwork, gamma: float) -> None:
        self._network = Stack(network.network)
        self._target = Stack(target.network)
        self._gamma = np.float32(gamma)

    @classmethod
    def for_network(cls, network: nn.Module, target: nn.Module, gamma: float) -> DQNKernel | None:
        """The kernel, if it fits the network."""
        if not isinstance(network, QNetwork) or not isinstance(target, QNetwork):
            return None
        return cls(network, target, gamma) if is_plain_stack(network.network) and on_cpu(network) else None

    def values(self, obs: Floats) -> Floats:
        return self._network.forward(obs)

    def gradient(self, batch: Any) -> Floats:
        """Leave the gradient for a minibatch in memory; gives what the loss logs."""
        next_values = self._target.forward(batch.next_obs).max(axis=1)
        targets = batch.rewards + self._gamma * (1.0 - batch.dones) * next_values
        return write_gradient(self._network, batch.obs, batch.actions, targets)
