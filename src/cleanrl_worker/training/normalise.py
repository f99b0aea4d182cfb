"""Running normalisation of observations and rewards: part of the model, which is blind without it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.training.state import State

Floats = NDArray[np.float32]
_EPS = 1e-8


class RunningMoments:
    """Mean and variance of everything seen so far."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.mean = np.zeros(shape, np.float64)
        self.var = np.ones(shape, np.float64)
        self.count = 1e-4

    def update(self, batch: NDArray[np.float64]) -> None:
        """Take in rows of values."""
        number = len(batch)
        mean, var = batch.mean(axis=0), batch.var(axis=0)
        total = self.count + number
        delta = mean - self.mean
        self.mean += delta * (number / total)
        spread = self.var * self.count + var * number + delta * delta * (self.count * number / total)
        self.var = spread / total
        self.count = total

    def state(self) -> State:
        return {"mean": self.mean, "var": self.var, "count": self.count}

    def load(self, state: State) -> None:
        self.mean, self.var, self.count = state["mean"], state["var"], state["count"]


class Normaliser:
    """Observations to mean 0 and variance 1, rewards to returns of variance 1, both cut at ±`clip`."""

    def __init__(self, obs_size: int, num_envs: int, gamma: float, clip: float = 10.0) -> None:
        self._obs = RunningMoments((obs_size,))
        self._returns = RunningMoments(())
        self._running = np.zeros(num_envs)
        self._gamma = gamma
        self._clip = clip

    def observe(self, obs: Floats, out: Floats) -> None:
        """Learn from new observations and write them normalised to `out`."""
        self._obs.update(obs.astype(np.float64))
        out[:] = self.peek(obs)

    def peek(self, obs: Floats) -> Floats:
        """Observations normalised, without learning from them."""
        scaled = (obs - self._obs.mean) / np.sqrt(self._obs.var + _EPS)
        return np.clip(scaled, -self._clip, self._clip).astype(np.float32)

    def scale(self, rewards: Floats, dones: Floats) -> Floats:
        """Rewards divided by the standard deviation of the discounted return."""
        self._running = self._running * self._gamma + rewards
        self._returns.update(self._running)
        self._running *= 1.0 - dones
        scaled = rewards / np.sqrt(self._returns.var + _EPS)
        return np.clip(scaled, -self._clip, self._clip).astype(np.float32)

    def state(self) -> State:
        return {"obs": self._obs.state(), "returns": self._returns.state(), "running": self._running}

    def load(self, state: State) -> None:
        self._obs.load(state["obs"])
        self._returns.load(state["returns"])
        self._running = state["running"]
