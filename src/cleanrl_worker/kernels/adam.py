"""Adam on the flat memory of `training.optimizer.Adam`, in a few passes over it."""

from __future__ import annotations

import math

import numpy as np

from cleanrl_worker.training.optimizer import BETA_1, BETA_2, Adam


class NumpyAdam:
    """Takes the same steps as the torch optimizer whose state it shares."""

    def __init__(self, adam: Adam) -> None:
        self._weights = adam.weights.numpy()
        self._gradient = adam.gradient.numpy()
        self._first = adam.first_moment.numpy()
        self._second = adam.second_moment.numpy()
        self._step = adam.step.numpy()
        self._eps = adam.eps
        self._scratch = np.empty_like(self._weights)

    def apply(self, learning_rate: float, max_grad_norm: float) -> None:
        """One step down the gradient, whose norm is cut to `max_grad_norm`."""
        self._follow_gradient(max_grad_norm)
        self._move(learning_rate, float(self._step))

    def _follow_gradient(self, max_grad_norm: float) -> None:
        gradient, scratch = self._gradient, self._scratch
        norm = math.sqrt(float(np.dot(gradient, gradient)))
        scale = max_grad_norm / (norm + 1e-6)
        if scale < 1.0:
            gradient *= scale
        self._step += 1
        np.subtract(gradient, self._first, out=scratch)
        scratch *= 1.0 - BETA_1
        self._first += scratch
        np.multiply(gradient, gradient, out=scratch)
        scratch *= 1.0 - BETA_2
        self._second *= BETA_2
        self._second += scratch

    def _move(self, learning_rate: float, step: float) -> None:
        scratch = self._scratch
        np.sqrt(self._second, out=scratch)
        scratch /= math.sqrt(1.0 - BETA_2**step)
        scratch += self._eps
        np.divide(self._first, scratch, out=scratch)
        scratch *= learning_rate / (1.0 - BETA_1**step)
        self._weights -= scratch
