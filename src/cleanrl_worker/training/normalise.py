"""Running normalisation of observations and rewards: part of the model, which is blind without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
        return _standardise(obs, self._obs.mean, self._obs.var, self._clip)

    def statistics(self) -> dict[str, Any]:
        """What a policy needs to see observations as in training, as plain data; see `FrozenNormaliser`."""
        mean, var = self._obs.mean.tolist(), self._obs.var.tolist()
        return {"mean": mean, "var": var, "count": float(self._obs.count), "clip": self._clip}

    def begin_with(self, statistics: Mapping[str, Any]) -> None:
        """See observations as a trained policy did; what is seen from now on changes that."""
        self._obs.mean = np.array(statistics["mean"], dtype=np.float64)
        self._obs.var = np.array(statistics["var"], dtype=np.float64)
        self._obs.count = float(statistics["count"])

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


def statistics_in(state: State) -> dict[str, Any]:
    """The statistics in the state of a normaliser that a checkpoint holds."""
    size = len(state["obs"]["mean"])
    normaliser = Normaliser(size, num_envs=len(state["running"]), gamma=1.0)
    normaliser.load(state)
    return normaliser.statistics()


class FrozenNormaliser:
    """Observations as a trained policy knows them, by statistics that no longer change."""

    def __init__(self, statistics: dict[str, Any]) -> None:
        self._mean = np.array(statistics["mean"], dtype=np.float64)
        self._var = np.array(statistics["var"], dtype=np.float64)
        self._clip = float(statistics["clip"])

    @property
    def size(self) -> int:
        """How many numbers an observation has."""
        return len(self._mean)

    def __call__(self, obs: Floats) -> Floats:
        return _standardise(obs, self._mean, self._var, self._clip)


def _standardise(obs: Floats, mean: NDArray[np.float64], var: NDArray[np.float64], clip: float) -> Floats:
    scaled = (obs - mean) / np.sqrt(var + _EPS)
    return np.clip(scaled, -clip, clip).astype(np.float32)
