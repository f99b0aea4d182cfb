"""Environments that only count their steps, for tests of what happens around them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

LENGTHS = {"Short-v0": 3, "Middle-v0": 5, "Long-v0": 7}


class Walk(gymnasium.Env[Any, Any]):
    """Ends after so many steps, and shows how many those are, the present one, and a random number."""

    observation_space = spaces.Box(-100.0, 100.0, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, length: int, wide: bool = False) -> None:
        self._length = length
        if wide:
            self.action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._at = 0
        return self._look(), {}

    def step(self, action: Any) -> Any:
        self._at += 1
        return self._look(), float(action), self._at == self._length, False, {}

    def _look(self) -> Any:
        return np.array([self._length, self._at, self.np_random.random()], dtype=np.float32)


@contextmanager
def registered_walks() -> Iterator[None]:
    """`Short-v0`, `Middle-v0` and `Long-v0`, `Wide-v0` with other actions, `Capped-v0` with a time limit."""
    kwargs: dict[str, dict[str, Any]] = {name: {"length": length} for name, length in LENGTHS.items()}
    kwargs["Wide-v0"] = {"length": 3, "wide": True}
    for name, given in kwargs.items():
        gymnasium.register(name, Walk, kwargs=given)
    gymnasium.register("Capped-v0", Walk, kwargs={"length": 50}, max_episode_steps=4)
    try:
        yield
    finally:
        for name in (*kwargs, "Capped-v0"):
            del gymnasium.registry[name]
