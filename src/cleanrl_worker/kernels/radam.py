"""RAdam on the flat memory of `training.radam.RAdam`, in one pass over it."""

from __future__ import annotations

import math

import numpy as np
import torch

from cleanrl_worker.training.optimizer import BETA_1, BETA_2
from cleanrl_worker.training.radam import RAdam, rectification


class FusedRAdam:
    """Takes the same steps as the torch optimizer whose state it shares."""

    def __init__(self, radam: RAdam) -> None:
        self._radam = radam
        self._gradient = radam.gradient.numpy()

    def apply(self, learning_rate: float, max_grad_norm: float) -> None:
        """One step down the gradient, whose norm is cut to `max_grad_norm`."""
        radam, gradient = self._radam, self._gradient
        scale = max_grad_norm / (math.sqrt(float(np.dot(gradient, gradient))) + 1e-6)
        if scale < 1.0:
            gradient *= scale
        step = float(radam.step) + 1.0
        trust = rectification(step)
        if trust <= 0.0:
            radam.descend(learning_rate)
            return
        radam.step += 1.0
        # Adam divides the spread by this and RAdam does not: so the step and eps are divided by it too.
        spread = math.sqrt(1.0 - BETA_2**step)
        torch._fused_adam_(
            [radam.weights],
            [radam.gradient],
            [radam.first_moment],
            [radam.second_moment],
            [],
            [radam.step],
            lr=learning_rate * trust / spread,
            beta1=BETA_1,
            beta2=BETA_2,
            weight_decay=0.0,
            eps=radam.eps / spread,
            amsgrad=False,
            maximize=False,
        )
