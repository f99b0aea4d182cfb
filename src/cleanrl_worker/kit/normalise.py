"""Running normalisation of observations, part of the model, which is blind without it, and of rewards."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.kit.state import State

Floats = NDArray[np.float32]
_EPS = 1e-8


class RunningMoments:
    """Mean and variance of everything seen so far."""

    def __init__(self, mean: Any, var: Any) -> None:
        """What to begin with: arrays, or numbers for the moments of one number."""
        self.mean = mean
        self.var = var
        self.count = 1e-4

    def update(self, batch: NDArray[np.float64]) -> None:
        """Take in rows of values."""
        number = len(batch)
        if number == 1:
            self.merge(batch[0], 0.0, 1)
            return
        # What `mean` and `var` compute, without their overhead, which is most of their time for a few rows.
        mean = np.add.reduce(batch, axis=0) / number
        apart = batch - mean
        self.merge(mean, np.add.reduce(apart * apart, axis=0) / number, number)

    def merge(self, mean: Any, var: Any, number: int) -> None:
        """Take in `number` values of this mean and variance."""
        total = self.count + number
        delta = mean - self.mean
        self.mean = self.mean + delta * (number / total)
        spread = self.var * self.count + var * number + delta * delta * (self.count * number / total)
        self.var = spread / total
        self.count = total

    def state(self) -> State:
        return {"mean": self.mean, "var": self.var, "count": self.count}

    def load(self, state: State) -> None:
        self.mean, self.var, self.count = state["mean"], state["var"], state["count"]


class RewardScaler:
    """Rewards over the deviation of the discounted return so far, cut at ±`clip`."""

    def __init__(self, num_envs: int, gamma: float, clip: float = 10.0) -> None:
        self._returns = RunningMoments(0.0, 1.0)
        self._running = np.zeros(num_envs)
        self._gamma = gamma
        self._clip = clip

    def scale(self, rewards: Floats, dones: Floats) -> Floats:
        """A rollout's rewards, (step, environment), made smaller or larger."""
        running = np.empty(rewards.shape)
        now = self._running
        for step, (reward, going_on) in enumerate(zip(rewards, 1.0 - dones, strict=True)):
            np.add(now * self._gamma, reward, out=running[step])
            now = running[step] * going_on
        self._running = now
        deviations, returns, number = [], self._returns, rewards.shape[1]
        means, spreads = running.mean(axis=1).tolist(), running.var(axis=1).tolist()
        for mean, spread in zip(means, spreads, strict=True):
            returns.merge(mean, spread, number)
            deviations.append(math.sqrt(returns.var + _EPS))
        scaled: Floats = (rewards / np.array(deviations)[:, None]).clip(-self._clip, self._clip)
        return scaled.astype(np.float32)

    def state(self) -> State:
        return {"returns": self._returns.state(), "running": self._running}

    def load(self, state: State) -> None:
        self._returns.load(state["returns"])
        self._running = state["running"]


class Normaliser(RewardScaler):
    """Observations to mean 0 and variance 1, rewards to returns of variance 1, both cut at ±`clip`."""

    def __init__(self, obs_size: int, num_envs: int, gamma: float, clip: float = 10.0) -> None:
        super().__init__(num_envs, gamma, clip)
        self._obs = RunningMoments(np.zeros(obs_size), np.ones(obs_size))

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

    def state(self) -> State:
        return {"obs": self._obs.state(), **super().state()}

    def load(self, state: State) -> None:
        self._obs.load(state["obs"])
        super().load(state)


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
        if self._mean.ndim != 1 or self._mean.shape != self._var.shape:
            raise ValueError("means and variances are not rows of equal length")

    @property
    def size(self) -> int:
        """How many numbers an observation has."""
        return len(self._mean)

    def __call__(self, obs: Floats) -> Floats:
        return _standardise(obs, self._mean, self._var, self._clip)


def _standardise(obs: Floats, mean: NDArray[np.float64], var: NDArray[np.float64], clip: float) -> Floats:
    scaled = obs - mean
    scaled /= np.sqrt(var + _EPS)
    # What `np.clip` does, at a fifth of its time for a few numbers.
    np.minimum(scaled, clip, out=scaled)
    np.maximum(scaled, -clip, out=scaled)
    return scaled.astype(np.float32)
