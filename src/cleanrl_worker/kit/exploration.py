"""Acting on values of actions: mostly at random at first, then mostly the best known."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def linear_schedule(start: float, end: float, duration: float, step: int) -> float:
    """A value that goes from `start` to `end` within `duration` steps, and stays there."""
    return end if step >= duration else start + (end - start) * step / duration


def epsilon_greedy(
    values: Callable[[Any], NDArray[np.float32]], obs: NDArray[Any], epsilon: float, num_actions: int
) -> list[int]:
    """One action for each observation; `values` is asked only when one of them is not random."""
    actions = [
        int(random.random() * num_actions) if random.random() < epsilon else -1 for _ in range(len(obs))
    ]
    if -1 in actions:
        best = values(obs).argmax(axis=1).tolist()
        actions = [greedy if action < 0 else action for action, greedy in zip(actions, best, strict=True)]
    return actions
