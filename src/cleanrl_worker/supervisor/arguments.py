"""What the training process is told, made from a config."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cleanrl_worker.config.modes import MODE_SETTINGS
from cleanrl_worker.config.script_flags import OWN_BUDGET, ScriptFlags
from cleanrl_worker.config.scripts import Script
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig

DEFAULT_SEED = 1
"""What a run has for which nobody named one."""
_PREVIEW = "cleanrl_worker.kit.preview"
_LOADER = "cleanrl_worker.kit.loading"
_LAUNCHER = Path(__file__).parents[1] / "portable" / "launcher.py"


def training_command(python: str | None, script: Script, arguments: Sequence[str]) -> list[str]:
    """The command that trains, as a person can give it too.

    Of an algorithm it is its module with its flags; of all others interpreter, launcher, and what the
    launcher is told.
    """
    if script.ours:
        own = script.target.startswith("cleanrl_worker.")
        what = [script.target] if own else [_LOADER, script.target]
        return [python or sys.executable, "-m", *what, *arguments]
    how = [f"--exec={json.dumps(script.head.interpreter)}"] if script.kind == "shell" else []
    how += ["--preload"] if script.has_main else []
    return [python or sys.executable, str(_LAUNCHER), *how, script.target, *arguments]


def launch_command(python: str | None, script: Script, arguments_file: Path) -> list[str]:
    """The command by which a supervisor trains an algorithm, whose arguments are in a file."""
    how = [f"--before={_PREVIEW}", f"--by={_LOADER}"]
    return [python or sys.executable, str(_LAUNCHER), *how, script.target, str(arguments_file)]


def script_arguments(config: CleanRLWorkerConfig, script: Script) -> list[str]:
    """What the script is told on its command line, or would be."""
    if script.ours:
        return [word for name, value in algorithm_values(config).items() for word in _parameter(name, value)]
    if script.kind == "mode":
        return _playing_arguments(config)
    if script.kind == "shell":
        return _shell_arguments(config)
    return _foreign_arguments(config, script)


def algorithm_values(config: CleanRLWorkerConfig) -> dict[str, Any]:
    """The arguments of an algorithm, by their names; those that keep their default are left out."""
    values: dict[str, Any] = {
        "env_id": config.env_id,
        "total_timesteps": config.total_timesteps,
        "seed": config.effective_seed,
        **platform_flags(config.extras),
    }
    schedule = config.schedule()
    if schedule is not None:
        values["curriculum"] = schedule.as_text()
    values |= {**(config.extras.get("algo_params") or {}), **config.flags()}
    return {name.replace("-", "_"): _plain(value) for name, value in values.items() if value is not None}


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
        arguments += _parameter(setting.name, config.extras.get(setting.name))
    return arguments


def _shell_arguments(config: CleanRLWorkerConfig) -> list[str]:
    """Parameters in the form that our algorithms take, so that a script can hand them on with "$@"."""
    params = {**(config.extras.get("algo_params") or {}), **config.flags()}
    return [word for key, value in params.items() for word in _parameter(key, value)]


def _foreign_arguments(config: CleanRLWorkerConfig, script: Script) -> list[str]:
    """The flags of somebody's script, in the form that it takes them."""
    say = script.flags.words
    said = {**foreign_fields(config, script.flags), **platform_flags(config.extras)}
    arguments = [word for name, value in said.items() for word in say(name, value)]
    for key, value in (config.extras.get("algo_params") or {}).items():
        arguments += say(key, _plain(value))
    for key, value in config.flags().items():
        known = script.flags.find(key) is not None
        for item in value if isinstance(value, list | tuple) else [value]:
            arguments += say(key, _plain(item) if known else _plain_text(item))
    return arguments


def foreign_fields(config: CleanRLWorkerConfig, flags: ScriptFlags) -> dict[str, Any]:
    """What every run says, as far as somebody's script is told it: its own budget it knows itself."""
    named = {
        "env_id": config.env_id,
        "total_timesteps": config.total_timesteps,
        "seed": config.effective_seed,
    }
    if config.total_timesteps in (OWN_BUDGET, flags.default("total_timesteps")):
        del named["total_timesteps"]
    if flags.complete and flags.find("seed") is None and config.effective_seed == DEFAULT_SEED:
        # Nobody has asked for this one.
        del named["seed"]
    return named


def platform_flags(extras: Mapping[str, Any]) -> dict[str, Any]:
    """What the platform knows by its own name, by the names that CleanRL's scripts share."""
    said: dict[str, Any] = {}
    if extras.get("track_wandb"):
        # A flag, which every script has a default for, would overrule W&B's own variables.
        project = extras.get("wandb_project_name") or extras.get("wandb_project")
        project = project or os.environ.get("WANDB_PROJECT")
        entity = extras.get("wandb_entity") or os.environ.get("WANDB_ENTITY")
        said = {"track": True, "wandb_project_name": project, "wandb_entity": entity}
    cuda = extras.get("cuda", extras.get("use_cuda"))
    said["cuda"] = None if cuda is None else bool(cuda)
    kwargs = extras.get("env_kwargs")
    said["env_kwargs"] = json.dumps(kwargs) if kwargs else None
    return {name: value for name, value in said.items() if value not in (None, "")}


def _parameter(key: str, value: Any) -> list[str]:
    """A flag of an algorithm of ours."""
    option = "--" + key.replace("_", "-")
    if value is None:
        return []
    if isinstance(value, bool):
        return [option if value else f"--no-{option[2:]}"]
    return [f"{option}={_plain(value)}"]


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def _plain_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(_plain(value))
