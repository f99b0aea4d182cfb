"""Live pictures of environments that no `gymnasium.make` made: their image observations are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cleanrl_worker.fastlane.row import TapRow
from cleanrl_worker.fastlane.tap import open_tap


class ImageRow:
    """A vector of environments (EnvPool, Atari's own, …) whose observations are pictures."""

    def __init__(self, num_envs: int, name: str) -> None:
        self._newest: dict[str, Any] = {}
        taps = [open_tap(_Image(self._newest, index), name) for index in range(num_envs)]
        claimed = [tap for tap in taps if tap is not None]
        self._row = TapRow(claimed) if len(claimed) == num_envs else None
        self._returns = np.zeros(num_envs)

    def after_step(self, images: Any, rewards: Sequence[float], dones: Sequence[bool]) -> None:
        """All environments have taken one step; `dones` are those whose episode ended with it."""
        if self._row is None:
            return
        self._newest["images"] = images
        self._returns += rewards
        for index in np.flatnonzero(dones):
            self._row.episode_ended(int(index), float(self._returns[index]))
        self._row.after_step(rewards, self._returns.tolist())
        self._returns[np.asarray(dones, bool)] = 0.0


class _Image:
    """What one environment's tap renders: its part of the newest observations."""

    def __init__(self, newest: dict[str, Any], index: int) -> None:
        self._newest = newest
        self._index = index

    def __call__(self) -> Any:
        return picture_of(self._newest["images"][self._index])


def picture_of(observation: Any) -> Any:
    """The newest picture in an observation, with its channels last or first, or a stack of grey ones."""
    array = np.asarray(observation)
    if array.ndim == 3 and array.shape[2] not in (1, 3, 4):
        # Channels come first. Three are colours; another number is a stack, the newest last.
        array = array.transpose(1, 2, 0) if array.shape[0] == 3 else array[-1]
    elif array.ndim == 3 and array.shape[2] == 4 and array.shape[0] != 4:
        array = array[:, :, -1]
    return array
