"""Acting on values of actions: mostly at random at first, then mostly the best known."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.training.common import CommonArgs, Fraction


@dataclass
class ExplorationArgs(CommonArgs):
    """Arguments of every algorithm that acts on values of actions."""

    start_e: Fraction = 1.0
    """the share of random actions at the start"""
    end_e: Fraction = 0.05
    """the share of random actions once exploration has ended"""
    exploration_fraction: Fraction = 0.5
    """over which part of the run the share of random actions falls"""


class EpsilonGreedy:
    """Acts at random with a probability that falls over the run, else takes the best known action."""

    def __init__(
        self, args: ExplorationArgs, values: Callable[[Any], NDArray[np.float32]], num_actions: int
    ) -> None:
        self.epsilon = args.start_e
        self._args = args
        self._values = values
        self._num_actions = num_actions
        self._duration = args.exploration_fraction * args.total_timesteps

    def act(self, obs: NDArray[Any], step: int) -> list[int]:
        """One action for each observation, after `step` steps."""
        args = self._args
        self.epsilon = linear_schedule(args.start_e, args.end_e, self._duration, step)
        return epsilon_greedy(self._values, obs, self.epsilon, self._num_actions)


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
