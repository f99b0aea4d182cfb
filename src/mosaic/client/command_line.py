"""A run's config as the command that starts the same run again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mosaic.client.configs import again_config
from mosaic.contract.capabilities import NO_ENVIRONMENT
from mosaic.contract.outside import parse_json
from mosaic.tracking import TITLES

_EVAL_VALUES = {
    "eval_episodes": "--episodes",
    "eval_batch_size": "--batch-size",
    "gamma": "--gamma",
    "num_envs": "--num-envs",
    "max_episode_steps": "--max-episode-steps",
    "max_seconds": "--max-seconds",
}
_EVAL_SWITCHES = {"eval_repeat": "--repeat", "eval_capture_video": "--video"}
_EVAL_OTHERS = frozenset({"mode", "policy_path", "deterministic", "env_kwargs"})


class NotTold(Exception):
    """A part of the config that no option says."""


def command_for(
    config: Mapping[str, Any], run_id: str = "", program: Sequence[str] = ("mosaic",), var: Path | None = None
) -> str:
    """The command line for a run config, quoted for a shell; `run_id` is that of the run that has it.

    A config with something that no option says is repeated by its run's id.
    """
    config = again_config(config, run_id) if run_id else config
    place = [] if var is None else ["--var", str(var)]
    try:
        words = _words(config)
    except NotTold:
        if not run_id:
            raise
        return shlex.join([*program, "rerun", run_id, *place])
    command = shlex.join([*program, *words, *place])
    folder = _folder_needed(config)
    return f"cd {shlex.quote(folder)} && {command}" if folder else command


def _words(config: Mapping[str, Any]) -> list[str]:
    request = config["metadata"]["worker"]
    asked = request.get("config") or {}
    if request.get("module") or asked.get("worker_id") or asked.get("seed") is None:
        raise NotTold
    artifacts = config.get("artifacts") or {}
    if not (artifacts.get("tensorboard") or {}).get("enabled", True):
        raise NotTold
    extras = {name: value for name, value in (asked.get("extras") or {}).items() if value is not None}
    if extras.get("mode") == "policy_eval":
        return ["eval", *_evaluation(config, asked, extras)]
    return ["train", *_training(config, asked, extras)]


def _training(config: Mapping[str, Any], asked: Mapping[str, Any], extras: dict[str, Any]) -> Iterator[str]:
    yield str(asked["algo"])
    if asked.get("env_id") not in (None, NO_ENVIRONMENT):
        yield str(asked["env_id"])
    if extras.get("mode") == "resume_training":
        yield from ("--resume", str(extras.pop("checkpoint_path")))
        extras.pop("mode")
    elif extras.get("mode", "train") != "train":
        raise NotTold
    if asked["total_timesteps"]:
        yield from ("--total-timesteps", str(asked["total_timesteps"]))
    yield from ("--seed", str(asked["seed"]))
    for name, value in (extras.pop("algo_params", None) or {}).items():
        yield from ("--set", _setting(name, value, _parameter(value)))
    if extras.get("env_kwargs"):
        yield from ("--env-kwargs", json.dumps(extras.pop("env_kwargs")))
    if extras.get("curriculum_schedule") is not None:
        stages = extras.pop("curriculum_schedule")
        yield from ("--curriculum", stages if isinstance(stages, str) else json.dumps(stages))
    tracked = _is_tracked(config)
    if tracked != bool(extras.get("track_wandb")):
        raise NotTold
    for name in TITLES:
        if extras.get(f"track_{name}") is True:
            extras.pop(f"track_{name}")
            yield from ("--track", name)
    for name, value in extras.items():
        yield from ("--extra", _setting(name, value, _extra(value)))
    yield from _naming(config)
    yield from _resources(config)


def _evaluation(config: Mapping[str, Any], asked: Mapping[str, Any], extras: dict[str, Any]) -> Iterator[str]:
    known = {*_EVAL_VALUES, *_EVAL_SWITCHES, *_EVAL_OTHERS}
    if any(name not in known for name in extras) or _is_tracked(config) or list(_resources(config)):
        raise NotTold
    yield str(extras["policy_path"])
    yield from ("--env", str(asked["env_id"]), "--seed", str(asked["seed"]))
    for name, option in _EVAL_VALUES.items():
        if name in extras:
            yield from (option, str(extras[name]))
    for name, option in _EVAL_SWITCHES.items():
        if extras.get(name):
            yield option
    if extras.get("deterministic") is False:
        yield "--stochastic"
    if "env_kwargs" in extras:
        yield from ("--env-kwargs", json.dumps(extras["env_kwargs"]))
    yield from _naming(config)


def _naming(config: Mapping[str, Any]) -> Iterator[str]:
    yield from _option("--name", str(config["run_name"]))
    for tag in config.get("tags") or []:
        yield from _option("--tag", str(tag))
    for name in config.get("plain") or []:
        yield from _option("--plain", str(name))


def _resources(config: Mapping[str, Any]) -> Iterator[str]:
    for name, value in (config.get("environment") or {}).items():
        yield from _option("--env", f"{name}={value}")
    resources, schedule = config.get("resources") or {}, config.get("schedule") or {}
    gpus = resources.get("gpus") or {}
    if resources.get("cpus", 1) != 1:
        yield from ("--cpus", str(resources["cpus"]))
    if resources.get("memory_mb"):
        yield from ("--memory-mb", str(resources["memory_mb"]))
    if gpus.get("requested"):
        yield from ("--gpus", str(gpus["requested"]))
        if gpus.get("mandatory"):
            yield "--gpus-mandatory"
    if schedule.get("max_wallclock_minutes"):
        yield from ("--max-minutes", f"{schedule['max_wallclock_minutes']:.15g}")
    if schedule.get("max_restarts"):
        yield from ("--max-restarts", str(schedule["max_restarts"]))
    if schedule.get("priority"):
        yield f"--priority={schedule['priority']}"
    python = config["metadata"]["worker"].get("python")
    if python:
        yield from _option("--python", str(python))


def _option(name: str, value: str) -> tuple[str, ...]:
    """An option with its value; one that begins like an option has to hang on."""
    return (f"{name}={value}",) if value.startswith("-") else (name, value)


def _setting(name: str, value: Any, text: str) -> str:
    # These are read with dashes as underscores and without blanks around them.
    if "-" in name or "=" in name or name != name.strip() or text != text.strip():
        raise NotTold
    return f"{name}={text}"


def _parameter(value: Any) -> str:
    if isinstance(value, str):
        if value in ("true", "false", "null"):
            raise NotTold
        return value
    if isinstance(value, list | Mapping):
        raise NotTold
    return json.dumps(value)


def _extra(value: Any) -> str:
    """JSON, or a text that would not be read as JSON."""
    if not isinstance(value, str):
        return json.dumps(value)
    try:
        parse_json(value)
    except ValueError:
        return value
    return json.dumps(value)


def _is_tracked(config: Mapping[str, Any]) -> bool:
    return bool(((config.get("artifacts") or {}).get("wandb") or {}).get("enabled"))


def _folder_needed(config: Mapping[str, Any]) -> str:
    """The folder in which the user's own environment or module is found; empty when there is none."""
    asked = config["metadata"]["worker"].get("config") or {}
    algo, env_id = str(asked.get("algo", "")), str(asked.get("env_id", ""))
    if ":" not in env_id and ("." not in algo or algo.startswith("/")):
        return ""
    search = str((config["metadata"].get("ui") or {}).get("python_path", ""))
    return search.partition(":")[0]
