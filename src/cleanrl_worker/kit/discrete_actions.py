"""Actions that are one choice, or several made at once, and choosing them by their values."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Choices = NDArray[np.int64]
Floats = NDArray[np.float32]


class DiscreteActions:
    """The actions of a `Discrete`, `MultiDiscrete` or `MultiBinary` space as rows of choices from 0 on."""

    def __init__(self, space: Any) -> None:
        self._space = space
        self._single = isinstance(space, spaces.Discrete)
        if isinstance(space, spaces.MultiBinary):
            self._start: Any = 0
            sizes = np.full(space.shape, 2)
        else:
            self._start = space.start
            sizes = np.asarray(space.n if self._single else space.nvec)
        self.nvec: tuple[int, ...] = tuple(sizes.reshape(-1).tolist())
        """Between how many values each choice is."""
        self._slices = choice_slices(self.nvec)

    def best(self, scores: Floats) -> Choices:
        """The choices of the greatest scores, a row for each of theirs."""
        if self._single:
            best: Choices = scores.argmax(axis=1)[:, None]
            return best
        chosen = np.empty((len(scores), len(self._slices)), np.int64)
        for column, part in enumerate(self._slices):
            chosen[:, column] = scores[:, part].argmax(axis=1)
        return chosen

    def log_probs(self, logits: Floats, choices: Choices) -> Floats:
        """The log probabilities of choices; those made at once are independent, so theirs add up."""
        total: Any = 0.0
        for column, part in enumerate(self._slices):
            own = logits[:, part]
            own = own - own.max(axis=1, keepdims=True)
            chosen = np.take_along_axis(own, choices[:, column, None], axis=1)[:, 0]
            total = total + (chosen - np.log(np.exp(own).sum(axis=1)))
        return np.asarray(total)

    def for_envs(self, choices: Choices) -> list[Any]:
        """What each environment takes: a number, or an array of its own."""
        if self._single:
            chosen = choices[:, 0]
            return list((chosen + self._start if self._start else chosen).tolist())
        shaped = choices.reshape(-1, *self._space.shape) + self._start
        return list(shaped.astype(self._space.dtype))


def choice_slices(nvec: tuple[int, ...]) -> list[slice]:
    """Where the logits of each choice lie among those of all."""
    ends = np.cumsum(nvec).tolist()
    return [slice(end - size, end) for size, end in zip(nvec, ends, strict=True)]


def linear_schedule(start: float, end: float, duration: float, step: int) -> float:
    """A value that goes from `start` to `end` within `duration` steps, and stays there."""
    return end if step >= duration else start + (end - start) * step / duration


def epsilon_greedy(
    values: Callable[[Any], Floats], obs: NDArray[Any], epsilon: float, num_actions: int
) -> list[int]:
    """One action for each observation; `values` is asked only when one of them is not random."""
    actions = [
        int(random.random() * num_actions) if random.random() < epsilon else -1 for _ in range(len(obs))
    ]
    if -1 in actions:
        best = values(obs).argmax(axis=1).tolist()
        actions = [greedy if action < 0 else action for action, greedy in zip(actions, best, strict=True)]
    return actions
