"""RAdam on the flat memory of `training.radam.RAdam`, in a few passes over it."""

from __future__ import annotations

import numpy as np

from cleanrl_worker.kernels.adam import NumpyAdam
from cleanrl_worker.training.optimizer import BETA_1
from cleanrl_worker.training.radam import rectification


class NumpyRAdam(NumpyAdam):
    """Takes the same steps as the torch optimizer whose state it shares."""

    def _move(self, learning_rate: float, step: float) -> None:
        scratch = self._scratch
        scale = learning_rate / (1.0 - BETA_1**step)
        trust = rectification(step)
        if trust > 0.0:
            np.sqrt(self._second, out=scratch)
            scratch += self._eps
            np.divide(self._first, scratch, out=scratch)
            scratch *= scale * trust
        else:
            np.multiply(self._first, scale, out=scratch)
        self._weights -= scratch
