"""Networks of JAX as players: observations in, actions that the environments take out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.kit.discrete_actions import DiscreteActions
from cleanrl_worker.kit.policy import Floats, Policy, PolicyOutput


class GreedyPolicy(Policy):
    """Takes the action of the highest value; else, in a share `epsilon` of all steps, any."""

    def __init__(self, values: Callable[[Floats], Any], action_space: Any, epsilon: float) -> None:
        """`values` gives the value of each action, a row for each observation; it may be compiled."""
        self._values = values
        self._actions = DiscreteActions(action_space)
        self._epsilon = epsilon
        self._random = np.random.default_rng()
        self._rows = 0

    def seed(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def act(self, obs: NDArray[Any], deterministic: bool = True, memory: Floats | None = None) -> list[Any]:
        values = self._values_of(obs)
        choices = values.argmax(axis=1)
        if not deterministic:
            random = self._random.integers(0, values.shape[1], len(values))
            choices = np.where(self._random.random(len(values)) < self._epsilon, random, choices)
        return self._actions.for_envs(choices[:, None])

    def judge(self, obs: NDArray[Any], memory: Floats | None = None) -> PolicyOutput:
        values = self._values_of(obs)
        return PolicyOutput(values=values.max(axis=1), action_values=values)

    def _values_of(self, obs: NDArray[Any]) -> Floats:
        """Values of the actions. Each number of rows would be compiled anew, so fewer than before are filled
        up with zeros."""
        rows = len(obs)
        flat: Floats = np.asarray(obs, dtype=np.float32).reshape(rows, -1)
        if self.normaliser:
            flat = self.normaliser(flat)
        self._rows = max(self._rows, rows)
        if rows < self._rows:
            flat = np.concatenate([flat, np.zeros((self._rows - rows, flat.shape[1]), np.float32)])
        found: Floats = np.asarray(self._values(flat))[:rows]
        return found
