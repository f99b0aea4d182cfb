"""Playing a saved policy, batch after batch, with all that is known of it in files after each."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cleanrl_worker.evaluation.episodes import EPISODE_CAP, FIRST_SEED, Limits
from cleanrl_worker.evaluation.models import SavedModel
from cleanrl_worker.evaluation.record import EvalRecord
from cleanrl_worker.kit.envs import EpisodeEnvs
from cleanrl_worker.kit.video import is_recorded, warn
from cleanrl_worker.portable import probe
from cleanrl_worker.portable.fastlane.drawing import choose_drawing
from mosaic.analytics.eval_summary import EvalSummary
from mosaic.analytics.film import Film, require_av
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import UserError

BATCH = 50
MOST_ENVS = 32
"""A network takes hardly longer for so many observations than for one; beyond, little is won."""


@dataclass(frozen=True)
class EvalSettings:
    """How a policy is evaluated."""

    episodes: int = BATCH
    batch_size: int = BATCH
    repeat: bool = False
    """Play batches until somebody stops that."""
    deterministic: bool = True
    gamma: float = 0.99
    seed: int = 1
    """Episode n starts from `FIRST_SEED` + seed + n, as in evaluations while training."""
    num_envs: int | None = None
    max_episode_steps: int | None = None
    max_seconds: float | None = None
    video_folder: Path | None = None

    @property
    def first_seed(self) -> int:
        """That of the first episode."""
        return FIRST_SEED + self.seed

    def environments(self) -> int:
        """How many are played together: as many as is asked for, else so that all are busy to the end."""
        if self.num_envs is not None:
            return min(self.num_envs, self.batch_size)
        rounds = math.ceil(self.batch_size / MOST_ENVS)
        return math.ceil(self.batch_size / rounds)


def run_batched_evaluation(
    model: SavedModel,
    settings: EvalSettings,
    folder: Path,
    check_stop: Callable[[], None] = lambda: None,
    report: Callable[[EvalSummary], None] = lambda summary: None,
) -> EvalSummary:
    """Play all batches and leave the results in `folder`; `check_stop` may raise at any step.

    `report` is told of each batch once its files are written.
    """
    until = math.inf if settings.max_seconds is None else time.monotonic() + settings.max_seconds
    limits = Limits(settings.max_episode_steps, until, settings.gamma)
    target = None if settings.repeat else settings.episodes
    with contextlib.ExitStack() as stack:
        envs, films = stack.enter_context(_environments(model, settings))
        policy = model.load_policy(envs)
        for note in policy.notes:
            warn(note)
        told = {**describe(model, settings), "notes": list(policy.notes)}
        record = stack.enter_context(EvalRecord(folder, told, target))
        summary = record.summary
        while summary is None or _goes_on(record, settings, until):
            done = len(record.episodes)
            size = settings.batch_size if target is None else min(settings.batch_size, target - done)
            if films is not None:
                films.first_number = done
            start = time.monotonic()
            found = model.entry.evaluate(
                policy,
                envs,
                size,
                settings.first_seed + done,
                settings.deterministic,
                check_stop,
                limits,
                films,
            )
            summary = record.add(found.episodes, time.monotonic() - start)
            report(summary)
    _say_what_was_cut(summary, settings)
    return summary


def describe(model: SavedModel, settings: EvalSettings) -> dict[str, Any]:
    """What is played and how, for the summary: two evaluations with the same of these can be compared."""
    return {
        "path": model.name,
        "algo": model.entry.algo,
        "env_id": model.args.env_id,
        "env_kwargs": probe.parse_kwargs(model.args.env_kwargs),
        "step": model.step,
        "deterministic": settings.deterministic,
        "gamma": settings.gamma,
        "first_seed": settings.first_seed,
        "num_envs": settings.environments(),
        "max_episode_steps": settings.max_episode_steps,
    }


def _goes_on(record: EvalRecord, settings: EvalSettings, until: float) -> bool:
    if time.monotonic() >= until:
        return False
    return settings.repeat or len(record.episodes) < settings.episodes


def _say_what_was_cut(summary: EvalSummary, settings: EvalSettings) -> None:
    cut = summary.overall.cut_off
    if cut:
        steps = settings.max_episode_steps or EPISODE_CAP
        why = f"after {steps:,} steps"
        if settings.max_seconds is not None:
            why += f" or when {settings.max_seconds:g} s were over"
        warn(f"{cut:,} of {summary.overall.episodes:,} episodes were cut off {why}.")


@contextlib.contextmanager
def _environments(
    model: SavedModel, settings: EvalSettings
) -> Iterator[tuple[EpisodeEnvs, EpisodeFilms | None]]:
    """The environments, and what films them if that is wanted and can be."""
    rate = None if settings.video_folder is None else _prepare_pictures(model)
    if settings.video_folder is None or rate is None:
        with model.make_envs(settings.environments()) as envs:
            yield envs, None
        return
    kwargs = {**probe.parse_kwargs(model.args.env_kwargs), "render_mode": "rgb_array"}
    args = dataclasses.replace(model.args, env_kwargs=json.dumps(kwargs))
    with dataclasses.replace(model, args=args).make_envs(settings.environments()) as envs:
        yield envs, EpisodeFilms(settings.video_folder, envs, rate)


def _prepare_pictures(model: SavedModel) -> float | None:
    """How many pictures a second of play has; None, with a word, when the environment draws none."""
    require_av("eval_capture_video")
    choose_drawing()
    try:
        env = probe.make_environment(model.args.env_id, probe.parse_kwargs(model.args.env_kwargs))
    except probe.ProbeError as error:
        raise UserError(str(error)) from error
    try:
        if "rgb_array" in env.metadata.get("render_modes", ()):
            return float(env.metadata.get("render_fps") or 30.0)
    finally:
        env.close()
    warn(f"Videos are off: {model.args.env_id} cannot draw pictures (it has no render mode 'rgb_array').")
    return None


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
