"""RAdam over all parameters of a network at once."""

from __future__ import annotations

import math

from torch import nn

from cleanrl_worker.training.optimizer import BETA_1, BETA_2, Adam

_LONGEST = 2.0 / (1.0 - BETA_2) - 1.0


class RAdam(Adam):
    """Adam that steps along the mean gradient until it has seen enough of its spread to divide by it."""

    def __init__(self, module: nn.Module, eps: float = 1e-8) -> None:
        super().__init__(module, eps)

    def _move(self, learning_rate: float) -> None:
        step = float(self.step)
        self.first_moment.lerp_(self.gradient, 1.0 - BETA_1)
        self.second_moment.mul_(BETA_2).addcmul_(self.gradient, self.gradient, value=1.0 - BETA_2)
        scale = learning_rate / (1.0 - BETA_1**step)
        trust = rectification(step)
        if trust > 0.0:
            spread = self.second_moment.sqrt().add_(self.eps)
            self.weights.addcdiv_(self.first_moment, spread, value=-scale * trust)
        else:
            self.weights.add_(self.first_moment, alpha=-scale)


def rectification(step: float) -> float:
    """The factor of a step that is divided by the gradient's spread; 0 while too little is known of that."""
    decayed = BETA_2**step
    length = _LONGEST - 2.0 * step * decayed / (1.0 - decayed)
    if length <= 5.0:
        return 0.0
    now = (length - 4.0) * (length - 2.0) / length
    later = (_LONGEST - 4.0) * (_LONGEST - 2.0) / _LONGEST
    return math.sqrt(now / later * (1.0 - decayed))
