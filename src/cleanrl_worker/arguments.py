"""The command line of the training process, made from a config."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.scripts import Script

_LAUNCHER = Path(__file__).with_name("launcher.py")


def training_command(python: str | None, script: Script, arguments: Sequence[str]) -> list[str]:
    """The command that trains: interpreter, launcher, and what the launcher is told."""
    preload = ["--preload"] if script.ours else []
    return [python or sys.executable, str(_LAUNCHER), *preload, script.target, *arguments]


def script_arguments(config: CleanRLWorkerConfig, ours: bool) -> list[str]:
    """The flags for the script; `ours` are tyro scripts with a schema."""
    arguments = [f"--env-id={config.env_id}", f"--total-timesteps={config.total_timesteps}"]
    if config.effective_seed is not None:
        arguments.append(f"--seed={config.effective_seed}")
    arguments += _platform_flags(config.extras, ours)
    for key, value in (config.extras.get("algo_params") or {}).items():
        arguments += _parameter(key, value, ours)
    for key, value in config.flags().items():
        values = value if isinstance(value, list | tuple) else [value]
        arguments += [f"{_flag(key)}={_plain(item)}" for item in values]
    return arguments


def _platform_flags(extras: Mapping[str, Any], ours: bool) -> list[str]:
    """What the platform knows by its own name, said in the words that CleanRL's scripts share."""
    flags = []
    if extras.get("track_wandb"):
        flags.append("--track")
        project = extras.get("wandb_project_name") or extras.get("wandb_project")
        named = {"wandb-project-name": project, "wandb-entity": extras.get("wandb_entity")}
        flags += [f"--{name}={value}" for name, value in named.items() if value]
    cuda = extras.get("cuda", extras.get("use_cuda"))
    if cuda is not None:
        flags += _parameter("cuda", bool(cuda), ours)
    if extras.get("env_kwargs"):
        flags.append(f"--env-kwargs={json.dumps(extras['env_kwargs'])}")
    return flags


def _parameter(key: str, value: Any, ours: bool) -> list[str]:
    if value is None:
        return []
    if value is True:
        return [_flag(key)]
    if value is False:
        return [f"--no-{_flag(key)[2:]}"] if ours else [f"{_flag(key)}=False"]
    return [f"{_flag(key)}={_plain(value)}"]


def _flag(key: str) -> str:
    return "--" + key.replace("_", "-")


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, dict | list) else str(value)
