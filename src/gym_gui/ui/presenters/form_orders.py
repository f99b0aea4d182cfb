"""What forms ask for: frozen, so that another thread can build and check the configs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gym_gui.models.run_settings import RunSettings
from gym_gui.ui.presenters.form import Config
from mosaic.client import eval_config, resume_config, train_config


@dataclass(frozen=True)
class TrainOrder:
    """Runs that differ in their seed only."""

    algo: str
    env_id: str | None
    total_timesteps: int | None
    seeds: tuple[int, ...]
    params: Mapping[str, Any]
    extras: Mapping[str, Any]
    settings: RunSettings
    worker_type: str | None = None
    folder: Path | None = None

    def configs(self) -> list[Config]:
        config = train_config(
            self.algo,
            self.env_id,
            total_timesteps=self.total_timesteps,
            seed=self.seeds[0],
            params=self.params,
            extras=self.extras,
            tags=self.settings.tags,
            run_name=self.settings.run_name,
            python=self.settings.python,
            worker_type=self.worker_type,
            folder=self.folder,
            secrets=self.settings.secrets,
            plain=self.settings.plain,
        )
        return for_seeds(self.settings.finish(config), self.seeds)


def for_seeds(config: Config, seeds: Sequence[int]) -> list[Config]:
    """The same config once for each seed."""
    found = []
    for seed in seeds:
        one = deepcopy(config)
        one["metadata"]["worker"]["config"]["seed"] = seed
        found.append(one)
    return found


@dataclass(frozen=True)
class ResumeOrder:
    """A new run that goes on from a checkpoint or a model."""

    checkpoint: str
    settings: RunSettings
    params: Mapping[str, Any]
    total_timesteps: int | None = None
    extend: int | None = None
    algo: str | None = None
    env_id: str | None = None
    worker_type: str | None = None
    folder: Path | None = None

    def configs(self) -> list[Config]:
        config = resume_config(
            self.checkpoint,
            total_timesteps=self.total_timesteps,
            extend=self.extend,
            algo=self.algo,
            env_id=self.env_id,
            params=self.params,
            extras=self.settings.extras,
            tags=self.settings.tags,
            run_name=self.settings.run_name,
            python=self.settings.python,
            worker_type=self.worker_type,
            folder=self.folder,
            secrets=self.settings.secrets,
            plain=self.settings.plain,
        )
        return [self.settings.finish(config)]


@dataclass(frozen=True)
class EvalOrder:
    """An evaluation of a policy."""

    policy: str
    settings: RunSettings
    episodes: int | None = None
    batch_size: int | None = None
    repeat: bool = False
    deterministic: bool = True
    gamma: float | None = None
    seed: int | None = None
    env_id: str | None = None
    algo: str | None = None
    capture_video: bool = False
    num_envs: int | None = None
    max_episode_steps: int | None = None
    max_seconds: float | None = None
    worker_type: str | None = None
    folder: Path | None = None
    var: Path | None = None

    def configs(self) -> list[Config]:
        config = eval_config(
            self.policy,
            episodes=self.episodes,
            batch_size=self.batch_size,
            repeat=self.repeat,
            deterministic=self.deterministic,
            gamma=self.gamma,
            seed=self.seed,
            env_id=self.env_id,
            algo=self.algo,
            capture_video=self.capture_video,
            num_envs=self.num_envs,
            max_episode_steps=self.max_episode_steps,
            max_seconds=self.max_seconds,
            extras=self.settings.extras,
            tags=self.settings.tags,
            run_name=self.settings.run_name,
            worker_type=self.worker_type,
            folder=self.folder,
            secrets=self.settings.secrets,
            plain=self.settings.plain,
            var=self.var,
        )
        return [self.settings.finish(config)]
