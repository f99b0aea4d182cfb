"""Exponential smoothing of a whole curve at once."""

from __future__ import annotations

import math

import numpy as np

from gym_gui.models.series import Floats

_SMALLEST = 1e-9
"""Powers of the weight stay above this inside a block, so that dividing by them loses no digits."""

_NOTHING = 1e-17


def smooth(values: Floats, weight: float) -> Floats:
    """The running mean in which each older value counts `weight` times less, without a pull towards zero."""
    count = len(values)
    if weight <= 0.0 or count < 2:
        return values
    length = min(count, max(2, int(math.log(_SMALLEST) / math.log(weight))))
    padded = np.zeros(-(-count // length) * length)
    padded[:count] = values
    blocks = padded.reshape(-1, length)
    powers = weight ** np.arange(1, length + 1)
    # Inside a block: s[i] = w^(i+1) · Σ x[j] / w^(j+1). Then what came before the block is added.
    local = np.cumsum(blocks / powers, axis=1) * powers
    carried = np.empty(len(blocks))
    carry = 0.0
    for index, end in enumerate(local[:, -1].tolist()):
        carried[index] = carry
        carry = carry * float(powers[-1]) + end
    sums = (local + carried[:, None] * powers).reshape(-1)[:count]
    smoothed: Floats = sums * (1.0 - weight)
    # Only the first values are pulled towards the zero that came before them.
    young = min(count, int(math.log(_NOTHING) / math.log(weight)) + 1)
    smoothed[:young] /= 1.0 - weight ** np.arange(1, young + 1)
    return smoothed
