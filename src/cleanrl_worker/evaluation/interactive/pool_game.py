"""A game that only EnvPool has, as one environment of Gymnasium's: those of Procgen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from cleanrl_worker.kit.pools import EnvPoolTask

_FPS = 15
_KEYS = (
    *(("left", "down"), ("left",), ("left", "up"), ("down",), (), ("up",)),
    *(("right", "down"), ("right",), ("right", "up"), ("d",), ("a",), ("w",), ("s",), ("q",), ("e",)),
)
"""Of each action those of Procgen's own player."""


class PoolGame(gymnasium.Env[Any, Any]):
    """EnvPool takes a seed only when it makes an environment, so each episode is in one of its own."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": _FPS}  # noqa: RUF012
    render_mode = "rgb_array"

    def __init__(self, env_id: str, kwargs: Mapping[str, Any]) -> None:
        """Raises ProbeError when EnvPool cannot make it so."""
        self._task = EnvPoolTask(env_id, kwargs, None)
        self.observation_space, self.action_space = self._task.observation_space, self._task.action_space
        self._pool: Any = None
        self._seen: Any = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.close()
        self._pool = self._task.make([int(seed or 0)])
        obs, _ = self._pool.reset()
        self._seen = obs[0].copy()
        return self._seen, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, _ = self._pool.step(self._task.as_batch([action]))
        self._seen = obs[0].copy()
        return self._seen, float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}

    def render(self) -> Any:
        """What is seen, with its colours last."""
        return np.ascontiguousarray(np.moveaxis(self._seen, 0, -1))

    def get_action_meanings(self) -> list[str]:
        """The keys of an action are its words."""
        return [" ".join(keys) or "nothing" for keys in _KEYS]

    def get_keys_to_action(self) -> dict[tuple[str, ...], int]:
        """As gymnasium's `play` takes them."""
        return {keys: action for action, keys in enumerate(_KEYS)}

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None
