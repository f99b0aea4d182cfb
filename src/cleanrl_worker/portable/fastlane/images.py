"""Live pictures of environments that no `gymnasium.make` made: their image observations are shown."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from cleanrl_worker.portable.fastlane.lane import is_unwatched, open_lane, warn
from cleanrl_worker.portable.fastlane.tap import open_tap
from cleanrl_worker.portable.fastlane.wrapper import TapRow

_DOORS = ("make", "make_gym", "make_gymnasium")
_LEAST_SIDE = 8


def install(envpool: Any) -> None:
    """Let the environments that EnvPool makes be watched, if this run shows anything."""
    segment = open_lane()
    if segment is None or segment.mode == "off":
        return
    for module in (envpool, envpool.registration):
        for door in _DOORS:
            make = getattr(module, door, None)
            if make is not None:
                setattr(module, door, _watched(make))


def _watched(make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def make_watched(task_id: Any, *args: Any, **kwargs: Any) -> Any:
        env = make(task_id, *args, **kwargs)
        try:
            if not is_unwatched():
                _watch(env, str(task_id))
        except Exception as error:
            warn(f"no picture of {task_id}: {type(error).__name__}: {error}")
        return env

    return make_watched


def _watch(env: Any, name: str) -> None:
    """Look at what an EnvPool gives back. It stays the object that it is: scripts ask it for its type."""
    row = ImageRow(int(env.config["num_envs"]), name)
    receive = env.recv

    @functools.wraps(receive)
    def receive_and_show(*args: Any, **kwargs: Any) -> Any:
        result = receive(*args, **kwargs)
        try:
            # Old ones have one word for the end of an episode, newer ones two; a reset has no reward.
            if isinstance(result, tuple) and len(result) in (4, 5):
                images, rewards, *ends, info = result
                row.after_step(images, rewards, np.logical_or.reduce(ends), info.get("env_id"))
            elif not isinstance(result, tuple):
                row.refuse("EnvPool's dm interface is not watched")
        except Exception as error:
            row.refuse(f"its steps cannot be read: {error}")
        return result

    env.recv = receive_and_show
    if hasattr(env, "xla"):
        compiled = env.xla

        @functools.wraps(compiled)
        def xla(*args: Any, **kwargs: Any) -> Any:
            row.refuse("its steps are compiled by XLA, which shows nothing of them")
            return compiled(*args, **kwargs)

        env.xla = xla


class ImageRow:
    """A vector of environments (EnvPool, Atari's own, …) whose observations are pictures."""

    def __init__(self, num_envs: int, name: str) -> None:
        segment = open_lane()
        self._count = 0 if segment is None else min(num_envs, segment.shown.stop)
        self._newest: list[Any] = [None] * self._count
        taps = [open_tap(functools.partial(self._picture, index), name) for index in range(self._count)]
        self._taps = [tap for tap in taps if tap is not None]
        self._row = TapRow(taps, self._taps[0].steps) if self._taps else None
        self._rewards, self._returns = np.zeros(num_envs), np.zeros(num_envs)
        self._all = np.arange(num_envs)

    def _picture(self, index: int) -> Any:
        return picture_of(self._newest[index])

    def after_step(self, images: Any, rewards: Any, dones: Any, ids: Any = None) -> None:
        """Environments `ids`, or all, have taken one step; `dones` are those whose episode ended with it."""
        if self._row is None:
            return
        if not is_picture(images):
            self.refuse("EnvPool does not draw, and its observations are not pictures")
            return
        ids = self._all if ids is None else ids
        if self._newest[0] is None:
            # Those of whom nothing has come yet are black.
            self._newest = [np.zeros_like(images[0])] * self._count
        for place in np.flatnonzero(ids < self._count):
            self._newest[ids[place]] = images[place]
        self._rewards[ids] = rewards
        self._returns[ids] += rewards
        ended = ids[np.asarray(dones, bool)]
        for index in ended[ended < self._count]:
            self._row.episode_ended(int(index), float(self._returns[index]))
        self._row.after_step(self._rewards.tolist(), self._returns.tolist(), len(ids))
        self._returns[ended] = 0.0

    def refuse(self, reason: str) -> None:
        """Show nothing any more, and say why."""
        for tap in self._taps:
            tap.refuse(reason)
        self._row = None


def is_picture(observations: Any) -> bool:
    """Whether a batch of observations is one of pictures: bytes, in two dimensions or three."""
    shape = getattr(observations, "shape", ())
    if getattr(observations, "dtype", None) != np.uint8 or len(shape) not in (3, 4):
        return False
    return bool(sorted(shape[1:])[-2] >= _LEAST_SIDE)


def picture_of(observation: Any) -> Any:
    """The newest picture in an observation, with its channels last or first, or a stack of grey ones."""
    array = np.asarray(observation)
    if array.ndim == 3 and array.shape[2] not in (1, 3, 4):
        # Channels come first. Three are colours, also the last three of more; another number is a stack of
        # grey ones, the newest last.
        array = array[-1] if array.shape[0] % 3 else array[-3:].transpose(1, 2, 0)
    elif array.ndim == 3 and array.shape[2] == 4 and array.shape[0] != 4:
        array = array[:, :, -1]
    return array
