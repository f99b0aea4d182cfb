"""The error of the values of actions that were taken, which `dqn` and `pqn` have in common."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.accelerated.layers import Floats


class Network(Protocol):
    """A network that has been written out in numpy."""

    def forward(self, x: Floats) -> Floats: ...
    def backward(self, grad: Floats) -> None: ...


def write_gradient(network: Network, obs: Floats, actions: NDArray[np.int64], targets: Floats) -> Floats:
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
