"""Q networks for continuous actions, one or two at once: learning, and judging a policy's actions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from cleanrl_worker.agents.continuous import QNetwork
from cleanrl_worker.kernels.nets import Floats, Nets, view_layers
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.targets import Target


def on_cpu(*modules: nn.Module) -> bool:
    """Whether all parameters are where numpy can reach them."""
    return all(parameter.device.type == "cpu" for module in modules for parameter in module.parameters())


class Critics:
    """The Q networks of an algorithm and their targets, on the memory of their optimizer."""

    def __init__(
        self, nets: nn.ModuleList, optimizer: Adam, target: Target[nn.ModuleList], judges: int, batch: int
    ) -> None:
        """The first `judges` networks are those that a policy learns from."""
        (like, *_) = nets
        assert isinstance(like, QNetwork)
        share = optimizer.weights.numel() // len(nets) * judges
        self._optimizer = optimizer
        self._batch = batch
        self._nets = Nets(view_layers(like, optimizer.weights, optimizer.gradient), ["fc3"], batch)
        self._targets = Nets(view_layers(like, target.weights), ["fc3"], batch)
        self._judges = Nets(view_layers(like, optimizer.weights[:share]), ["fc3"], batch)
        self._inputs = np.empty((batch, like.fc1.in_features), dtype=np.float32)

    def foresee(self, sample: Any, next_actions: Floats) -> Floats:
        """The targets' values of what comes next, as (net, row)."""
        return self._targets.forward(self._join(sample.next_obs, next_actions))[0][:, :, 0]

    def learn(self, sample: Any, goals: Floats, learning_rate: float) -> list[float]:
        """One step of all networks towards `goals`; gives the mean value of each, then the loss of each."""
        inputs = self._join(sample.obs, sample.actions)
        values = self._nets.forward(inputs)[0]
        means = values.mean(axis=(1, 2))
        error = values - goals[None, :, None]
        losses = np.square(error).mean(axis=(1, 2))
        error *= np.float32(2.0 / self._batch)
        self._nets.backward([error], inputs)
        self._optimizer.descend(learning_rate)
        return [*means.tolist(), *losses.tolist()]

    def judge(self, obs: Floats, actions: Floats) -> Floats:
        """The judges' values, as (net, row)."""
        return self._judges.forward(self._join(obs, actions))[0][:, :, 0]

    def slopes(self, action_size: int, chosen: NDArray[np.int64] | None = None) -> Floats:
        """How a value changes with the actions just judged; for each row the first judge's, or `chosen`."""
        first = self._inputs.shape[1] - action_size
        if chosen is None:
            return self._judges.slope(0, slice(None), first)
        slopes = np.empty((self._batch, action_size), dtype=np.float32)
        # Each judge goes back through its own rows only, which halves the work.
        for net in range(2):
            rows = np.flatnonzero(chosen == net)
            slopes[rows] = self._judges.slope(net, rows, first)
        return slopes

    def _join(self, obs: Floats, actions: Floats) -> Floats:
        return np.concatenate([obs, actions], axis=1, out=self._inputs)
