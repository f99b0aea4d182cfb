"""Videos of some of the episodes that a policy plays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cleanrl_worker.kit.envs import EpisodeEnvs
from cleanrl_worker.kit.video import is_recorded, warn
from mosaic.analytics.film import Film
from mosaic.contract.atomic import write_atomic


class EpisodeFilms:
    """Leaves `<folder>/episode-<n>-seed-<seed>.mp4` of episodes on the schedule of training's videos."""

    def __init__(self, folder: Path, envs: EpisodeEnvs, frames_per_second: float) -> None:
        self._folder = folder
        self._envs = envs
        self._rate = frames_per_second
        self._films: dict[int, tuple[Path, Film]] = {}
        self._works = True
        self.first_number = 0
        """How many episodes earlier batches had."""

    def begin(self, index: int, number: int, seed: int) -> None:
        number += self.first_number
        if self._works and is_recorded(number):
            path = self._folder / f"episode-{number}-seed-{seed}.mp4"
            self._films[index] = path, Film(self._rate)
            self.look(index)

    def look(self, index: int) -> None:
        if index not in self._films:
            return
        try:
            frame: Any = self._envs.render(index)
            self._films[index][1].add(np.asarray(frame))
        except Exception as error:
            # Drawing is the environment's own code, and may fail in any way.
            self._give_up(f"its picture cannot be drawn ({type(error).__name__}: {error})")

    def end(self, index: int) -> None:
        if index not in self._films:
            return
        path, film = self._films.pop(index)
        try:
            data = film.finish()
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomic(path, data)
        except OSError as error:
            self._give_up(f"{path} cannot be written ({error.strerror})")

    def _give_up(self, why: str) -> None:
        self._works = False
        self._films.clear()
        warn(f"Videos are off: {' '.join(why.split())}.")
