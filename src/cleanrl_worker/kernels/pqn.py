"""PQN: acting and learning without torch."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.agents.q_networks import NormedQNetwork
from cleanrl_worker.kernels.layer_norm import NormedStack, is_normed_stack
from cleanrl_worker.kernels.layers import Floats, on_cpu
from cleanrl_worker.kernels.q_values import write_gradient
from cleanrl_worker.kernels.radam import FusedRAdam
from cleanrl_worker.training.radam import RAdam


class PQNSettings(Protocol):
    """The arguments that the update reads."""

    max_grad_norm: float


def fits(network: Any) -> bool:
    """Whether the kernel can compute this network: a normalised stack on the CPU."""
    return isinstance(network, NormedQNetwork) and is_normed_stack(network.network) and on_cpu(network)


class PQNKernel:
    """Does for a network what `TorchLearner` of the algorithm's file does."""

    def __init__(self, network: NormedQNetwork, optimizer: RAdam, settings: PQNSettings) -> None:
        self._network = NormedStack(network.network)
        self._radam = FusedRAdam(optimizer)
        self._settings = settings

    def values(self, obs: Floats) -> Floats:
        return self._network.look(obs)

    def learn(self, obs: Floats, actions: NDArray[np.int64], returns: Floats, learning_rate: float) -> Floats:
        """One minibatch; gives what is logged, in the order of the algorithm's `LOGGED`."""
        logged = write_gradient(self._network, obs, actions, returns)
        self._radam.apply(learning_rate, self._settings.max_grad_norm)
        self._network.weights_changed()
        return logged
