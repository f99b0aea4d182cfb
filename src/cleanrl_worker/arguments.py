"""The command line of the training process, made from a config."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.modes import MODE_SETTINGS
from cleanrl_worker.scripts import Script

_LAUNCHER = Path(__file__).with_name("launcher.py")


def training_command(python: str | None, script: Script, arguments: Sequence[str]) -> list[str]:
    """The command that trains: interpreter, launcher, and what the launcher is told."""
    if script.kind == "shell":
        how = [f"--exec={json.dumps(script.head.interpreter)}"]
    else:
        how = ["--preload"] if script.has_main else []
    return [python or sys.executable, str(_LAUNCHER), *how, script.target, *arguments]


def script_arguments(config: CleanRLWorkerConfig, script: Script) -> list[str]:
    """What the script is told on its command line."""
    if script.kind == "mode":
        return _playing_arguments(config)
    if script.kind == "shell":
        return _shell_arguments(config)
    return _training_arguments(config, script.ours)


def _playing_arguments(config: CleanRLWorkerConfig) -> list[str]:
    """The flags of a module that plays a saved policy; they are called like the extras."""
    arguments = [f"--policy-path={config.extras['policy_path']}"]
    arguments += [f"--algo={config.algo}", f"--env-id={config.env_id}"]
    if config.effective_seed is not None:
        arguments.append(f"--seed={config.effective_seed}")
    if config.extras.get("env_kwargs") is not None:
        # None at all is an answer too: the policy may have been trained with some.
        arguments.append(f"--env-kwargs={json.dumps(config.extras['env_kwargs'])}")
    for setting in MODE_SETTINGS[config.mode]:
        arguments += _parameter(setting.name, config.extras.get(setting.name), ours=True)
    return arguments


def _shell_arguments(config: CleanRLWorkerConfig) -> list[str]:
    """Parameters in the form that our algorithms take, so that a script can hand them on with "$@"."""
    params = {**(config.extras.get("algo_params") or {}), **config.flags()}
    return [word for key, value in params.items() for word in _parameter(key, value, ours=True)]


def _training_arguments(config: CleanRLWorkerConfig, ours: bool) -> list[str]:
    """The flags that train; `ours` are tyro scripts with a schema."""
    arguments = [f"--env-id={config.env_id}", f"--total-timesteps={config.total_timesteps}"]
    if config.effective_seed is not None:
        arguments.append(f"--seed={config.effective_seed}")
    arguments += _platform_flags(config.extras, ours)
    schedule = config.schedule()
    if schedule is not None:
        arguments.append(f"--curriculum={schedule.as_text()}")
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
    return flags + _device_flags(extras, ours) + _environment_flags(extras)


def _device_flags(extras: Mapping[str, Any], ours: bool) -> list[str]:
    cuda = extras.get("cuda", extras.get("use_cuda"))
    return [] if cuda is None else _parameter("cuda", bool(cuda), ours)


def _environment_flags(extras: Mapping[str, Any]) -> list[str]:
    kwargs = extras.get("env_kwargs")
    return [f"--env-kwargs={json.dumps(kwargs)}"] if kwargs else []


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
