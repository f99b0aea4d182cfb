"""How much better a step went than the value function expected."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def estimate_advantages(
    rewards: Floats, dones: Floats, values: Floats, next_values: Floats, gamma: float, gae_lambda: float
) -> Floats:
    """Generalised advantages; `next_values` is 0 after a terminal step, no sum runs past an episode's end."""
    deltas = rewards + gamma * next_values - values
    decay = gamma * gae_lambda * (1.0 - dones)
    advantages = np.zeros_like(rewards)
    running = np.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        running = deltas[t] + decay[t] * running
        advantages[t] = running
    return advantages


def explained_variance(values: Floats, returns: Floats) -> float | None:
    """Which share of the returns' variance the values explain; None when the returns are all the same."""
    variance = float(returns.var())
    return 1.0 - float((returns - values).var()) / variance if variance > 0.0 else None
