"""The error of the values of actions that were taken, which `dqn` and `pqn` have in common."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.kernels.layers import Floats


class Network(Protocol):
    """A network that has been written out in numpy."""

    def forward(self, x: Floats) -> Floats: ...
    def backward(self, grad: Floats) -> None: ...


def write_gradient(network: Network, obs: Floats, actions: NDArray[np.int64], targets: Floats) -> Floats:
    """Leave the gradient of the mean squared error to `targets`; gives that error and the mean value."""
    size = len(actions)
    each = np.arange(size)
    values = network.forward(obs)
    chosen = values[each, actions]
    error = chosen - targets
    logged = np.array([np.dot(error, error), chosen.sum()], np.float32) / np.float32(size)
    grad = np.zeros_like(values)
    grad[each, actions] = error * np.float32(2.0 / size)
    network.backward(grad)
    return logged
