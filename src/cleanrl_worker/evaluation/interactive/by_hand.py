"""A person plays: no policy, a map of keys for the caller, and episodes that can be recorded."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from cleanrl_worker.evaluation.interactive.keys import controls_of, frame_rate, step_limit
from cleanrl_worker.evaluation.interactive.messages import Refusal, Request
from cleanrl_worker.evaluation.interactive.pool_game import PoolGame
from cleanrl_worker.evaluation.interactive.recording import EpisodeRecording
from cleanrl_worker.evaluation.interactive.session import (
    EnvSession,
    Message,
    action_meanings,
    as_frame,
    look,
    make_drawable,
    plain,
)
from cleanrl_worker.portable import probe
from cleanrl_worker.schemas.environments import PROCGEN, find_environment, load_environments
from mosaic.contract.errors import StorageError, UserError, closest
from mosaic.contract.extras import require_extra

_MOST_NUMBERS = 256
"""So many numbers of one part of an observation are told."""


class HandSession(EnvSession):
    """A step without an action takes the one that does nothing, or the first."""

    by = "idle"
    begin_anew = "begin a new episode"

    def __init__(
        self,
        env_id: str,
        env_kwargs: str | None = None,
        seed: int | None = None,
        frames: bool = False,
        max_episode_steps: int | None = None,
        record: str | None = None,
    ) -> None:
        self._env_id = env_id
        self._kwargs = env_kwargs or "{}"
        env = _make(env_id, self._kwargs)
        try:
            self._controls = controls_of(env, env_id, action_meanings(env))
            self._folder = None if record is None else _usable_folder(record)
        except BaseException:
            env.close()
            raise
        super().__init__(env, seed, frames, max_episode_steps)
        self._fps = frame_rate(env)
        self._recording: EpisodeRecording | None = None
        idle = self._controls["idle"]
        dtype = env.action_space.dtype
        self._idle = idle if isinstance(idle, int) else np.array(idle, dtype)

    def _about(self) -> Message:
        shortest = min(filter(None, (step_limit(self._env), self._limit)))
        return {
            "algo": None,
            "env_id": self._env_id,
            "policy": None,
            "trained_steps": None,
            "deterministic": None,
            "notes": [],
            "max_episode_steps": None if shortest == float("inf") else shortest,
            "fps": self._fps,
            "controls": self._controls,
            "recording": self._told_folder(),
        }

    def _told_folder(self) -> str | None:
        return None if self._folder is None else str(self._folder)

    def reset(self, request: Request) -> Message:
        left = self.finish()
        return super().reset(request) | left

    def step(self, request: Request) -> list[Message]:
        step, *end = super().step(request)
        if end:
            end[0] |= self.finish()
        return [step, *end]

    def record(self, request: Request) -> Message:
        """Record from the next episode on; null ends that, and keeps what was played of this one."""
        try:
            self._folder = None if request.folder is None else _usable_folder(request.folder)
        except StorageError as error:
            raise Refusal(str(error)) from error
        left = self.finish() if self._folder is None else {}
        return {"type": "recording", "folder": self._told_folder(), **left}

    def _begin(self, seed: int) -> None:
        if self._folder is not None:
            about = {
                "env_id": self._env_id,
                "env_kwargs": self._kwargs,
                "gymnasium": gymnasium.__version__,
                "max_episode_steps": -1 if self._limit == float("inf") else int(self._limit),
            }
            self._recording = EpisodeRecording(self._folder, about, seed, self._fps)

    def _told(self, obs: Any) -> Any:
        # A person looks at the picture, and numbers by the thousand would take longer than the step.
        if isinstance(obs, dict):
            return {str(key): self._told(part) for key, part in obs.items()}
        return None if np.size(obs) > _MOST_NUMBERS else plain(obs)

    def _see(self, obs: Any, info: Any) -> None:
        if self._recording is not None:
            self._recording.observe(obs)

    def _own_action(self) -> Any:
        return self._idle

    def _take(self, action: Any) -> tuple[Any, float, bool, bool, Any]:
        taken = super()._take(action)
        if self._recording is not None:
            _, reward, terminated, truncated, _ = taken
            cut_off = truncated or self._length + 1 >= self._limit
            self._recording.act(action, reward, terminated, cut_off)
        return taken

    def _frame(self, request: Request) -> Message:
        wanted = self._frames if request.frame is None else request.frame
        if not wanted and self._recording is None:
            return {}
        picture, problem = look(self._env)
        if self._recording is not None and picture is not None:
            self._recording.shoot(picture)
        return as_frame(picture, problem) if wanted else {}

    def finish(self) -> Message:
        """Keep the episode that is recorded, if one is; a signal waits until that is done."""
        recording, self._recording = self._recording, None
        if recording is None:
            return {}
        with _signals_wait():
            told = recording.save()
        return {"recorded": told} if told else {}

    def close(self) -> None:
        self.finish()
        super().close()


def _make(env_id: str, env_kwargs: str) -> Any:
    """The environment; UserError says what it lacks."""
    known = find_environment(env_id)
    if known is not None and known.extra:
        require_extra(known.extra, env_id)
    try:
        kwargs = probe.parse_kwargs(env_kwargs)
        if known is not None and known.family == PROCGEN:
            return PoolGame(env_id, kwargs)
        return make_drawable(env_id, kwargs)
    except probe.ProbeError as error:
        named = known is not None or ":" in env_id or env_id in gymnasium.registry
        near = "" if named else closest(env_id, [*gymnasium.registry, *load_environments()])
        raise UserError(f"There is no environment '{env_id}'{near}" if near else str(error)) from error


def _usable_folder(name: str) -> Path:
    """The folder, made if it is not there; StorageError when nothing can be written in it."""
    folder = Path(os.path.expanduser(name)).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise StorageError(
            f"Nothing can be recorded in {folder}: {error.strerror}; name another folder."
        ) from error
    return folder


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """SIGTERM and SIGINT count only when this is over."""
    both = {signal.SIGTERM, signal.SIGINT}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, both)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
