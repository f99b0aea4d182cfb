"""Videos of the first environment's episodes while it trains."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from cleanrl_worker.kit.episode_tape import EpisodeTape
from mosaic.analytics.film import Film
from mosaic.contract.atomic import write_atomic

EVERY = 1000
"""From this episode on, each whose number is a multiple of it is recorded."""


def is_recorded(episode: int) -> bool:
    """Whether an episode is on the schedule: the cubes 0, 1, 8, 27, … up to 1000, then every 1000th."""
    if episode >= EVERY:
        return episode % EVERY == 0
    root: int = round(episode ** (1 / 3))
    return root * root * root == episode


class RecordedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Leaves `videos/episode-<n>-step-<global step>.mp4` of some episodes, and changes nothing else.

    An episode that is played again after a checkpoint is recorded again, so that its video is whole.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], tape: EpisodeTape, num_envs: int) -> None:
        super().__init__(env)
        self._tape = tape
        self._num_envs = num_envs
        self._episode = -1
        self._film: Film | None = None
        self._works = True

    def reset(self, **kwargs: Any) -> Any:
        """Keep the film of the episode that has ended, and begin the next one where it is due.

        Only a new game is a new episode: one that goes on after a lost life stays in its film.
        """
        if self._tape.number == self._episode:
            result = self.env.reset(**kwargs)
            if self._film is not None:
                self._shoot()
            return result
        if self._film is not None:
            self._keep(self._film)
        result = self.env.reset(**kwargs)
        self._episode = self._tape.number
        self._film = None
        if self._works and is_recorded(self._episode):
            self._film = Film(float(self.env.metadata.get("render_fps") or 30.0))
            self._shoot()
        return result

    def drop(self) -> None:
        """Forget the present episode: another one is taken up in its place."""
        self._film, self._episode = None, -1

    def step(self, action: Any) -> Any:
        result = self.env.step(action)
        if self._film is not None:
            self._shoot()
        return result

    def _shoot(self) -> None:
        assert self._film is not None
        try:
            frame: Any = self.env.render()
            self._film.add(np.asarray(frame))
        except Exception as error:
            self._give_up(f"its picture cannot be drawn ({type(error).__name__}: {error})")

    def _keep(self, film: Film) -> None:
        step = self._tape.steps_before * self._num_envs
        path = Path("videos") / f"episode-{self._episode}-step-{step}.mp4"
        try:
            data = film.finish()
            path.parent.mkdir(exist_ok=True)
            write_atomic(path, data)
        except OSError as error:
            self._give_up(f"{path} cannot be written ({error.strerror})")

    def _give_up(self, why: str) -> None:
        """Videos are a help, not the run's purpose: it goes on without them."""
        self._works, self._film = False, None
        warn(f"Videos are off: {' '.join(why.split())}.")


def warn(text: str) -> None:
    """One line to whoever reads the run's log."""
    print(text, file=sys.stderr, flush=True)
