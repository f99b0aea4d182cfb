"""PQN: acting and its gradient without torch's autograd."""

from __future__ import annotations

from typing import Any, final

from torch import nn

from cleanrl_worker.accelerated.dqn import write_gradient
from cleanrl_worker.accelerated.layer_norm import NormedStack, is_normed_stack
from cleanrl_worker.accelerated.layers import Floats, on_cpu
from cleanrl_worker.agents.q_networks import NormedQNetwork


@final
class PQNKernel:
    """The gradient of `pqn_loss` for a network that is a normalised stack, and its outputs."""

    def __init__(self, network: NormedQNetwork) -> None:
        self._network = NormedStack(network.network)

    @classmethod
    def for_network(cls, network: nn.Module) -> PQNKernel | None:
        """The kernel, if it fits the network."""
        if not isinstance(network, NormedQNetwork) or not is_normed_stack(network.network):
            return None
        return cls(network) if on_cpu(network) else None

    def values(self, obs: Floats) -> Floats:
        return self._network.look(obs)

    def gradient(self, batch: Any) -> Floats:
        """Leave the gradient for a minibatch in memory; gives what the loss logs."""
        logged = write_gradient(self._network, batch.obs, batch.actions, batch.returns)
        # A step along the gradient comes next.
        self._network.weights_changed()
        return logged
