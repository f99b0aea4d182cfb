"""Continuous actions within bounds."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class NumpyBoxActions:
    """The actions of a `Box` space as rows of numbers; each dimension has bounds of its own.

    What is random is drawn from numpy's generator.
    """

    dtype = np.float32

    def __init__(self, space: Any) -> None:
        self._space = space
        self.low: Floats = np.asarray(space.low, dtype=np.float32).reshape(-1)
        self.high: Floats = np.asarray(space.high, dtype=np.float32).reshape(-1)
        self.size = len(self.low)
        self.shape = (self.size,)
        """The shape of one action in a replay buffer."""
        self.scale: Floats = (self.high - self.low) / 2.0

    def random(self, count: int) -> Floats:
        """Actions drawn evenly between the bounds."""
        share: Floats = np.random.random_sample((count, self.size)).astype(np.float32)
        return self._between(share)

    def noise(self, count: int) -> Floats:
        """Numbers of a standard normal distribution, of its own for each row and dimension."""
        drawn: Floats = np.random.standard_normal((count, self.size)).astype(np.float32)
        return drawn

    def with_noise(self, actions: Floats, deviation: float) -> Floats:
        """The actions with exploration noise, a share of half their range, within the bounds."""
        return self._bounded(actions + self.noise(len(actions)) * (self.scale * np.float32(deviation)))

    def for_envs(self, actions: Floats) -> list[Any]:
        """One new array for each environment, of the shape and type that it takes."""
        bounded = self._bounded(actions).astype(self._space.dtype)
        return [row.reshape(self._space.shape) for row in bounded]

    def _between(self, share: Floats) -> Floats:
        return self.low + share * (self.high - self.low)

    def _bounded(self, actions: Floats) -> Floats:
        # At each step of one environment `np.clip` takes several times as long for the same.
        bounded: Floats = np.minimum(np.maximum(actions, self.low), self.high)
        return bounded


class BoxActions(NumpyBoxActions):
    """The same with what is random drawn from torch's generator."""

    @cached_property
    def bounds(self) -> Any:
        """The lowest and the highest action, as tensors."""
        import torch

        return torch.from_numpy(self.low), torch.from_numpy(self.high)

    def random(self, count: int) -> Floats:
        import torch

        return self._between(torch.rand(count, self.size).numpy())

    def noise(self, count: int) -> Floats:
        import torch

        drawn: Floats = torch.randn(count, self.size).numpy()
        return drawn
