"""What a run will execute, made from a config: the command line, the variables, and what it goes on from."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleanrl_worker.config.modes import MODE_SETTINGS, RESUME
from cleanrl_worker.config.scripts import OWN_BUDGET, Script, ScriptFlags
from cleanrl_worker.config.shell_scripts import FOLDER_VARIABLE, names_environment
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig
from mosaic.contract.atomic import write_atomic, write_json
from mosaic.contract.connection import RUN_VARIABLE
from mosaic.contract.paths import RunPaths
from mosaic.contract.phases import RUN_DIR_VARIABLE
from mosaic.worker.environment import PYTHON_VARIABLE, surroundings, user_folder

if TYPE_CHECKING:
    from cleanrl_worker.config.checkpoint_files import Origin


@dataclass(frozen=True)
class RuntimeSummary:
    """What would run."""

    config: CleanRLWorkerConfig
    script: Script
    arguments: list[str]
    command: list[str]
    origin: Origin | None
    values: dict[str, Any] | None = None
    """The arguments of an algorithm, which gets them as a file."""

    def resumed_from(self) -> dict[str, Any] | None:
        """What the run goes on from; None when it begins."""
        if self.origin is None:
            return None
        # Only here, because most runs begin at their beginning.
        from cleanrl_worker.config.resuming import explain

        said = explain(self.origin, self.config)
        return {"checkpoint": str(self.origin.path), "step": self.origin.step, "explanation": said}


def make_plan(
    config: CleanRLWorkerConfig,
    script: Script,
    origin: Origin | None,
    python: str | None,
    taken: Path | None = None,
) -> RuntimeSummary:
    """The plan of a run; `taken` is where its origin lies in the run's own folder."""
    if origin is not None and config.mode == RESUME:
        from cleanrl_worker.config.resuming import with_origin

        config = with_origin(config, origin)
    arguments = script_arguments(config, script)
    values = algorithm_values(config) if script.ours else None
    if values is not None:
        # A process beside the training does that.
        values.pop("track", None)
    if origin is not None:
        place = str(taken or origin.path)
        arguments.append(f"--resume-from={place}")
        values = {**(values or {}), "resume_from": place}
    command = training_command(python, script, arguments)
    return RuntimeSummary(config, script, arguments, command, origin, values)


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
    if script.kind == "foreign":
        return _foreign_arguments(config, script)
    if script.ours:
        values = algorithm_values(config)
    elif script.kind == "mode":
        values = _playing_values(config)
    else:
        # In the form that our algorithms take, so that a shell script can hand them on with "$@".
        values = {**(config.extras.get("algo_params") or {}), **config.flags()}
    return [word for name, value in values.items() for word in _parameter(name, value)]


def algorithm_values(config: CleanRLWorkerConfig) -> dict[str, Any]:
    """The arguments of an algorithm, by their names; those that keep their default are left out."""
    values = {**config.named_values(), **platform_flags(config.extras)}
    schedule = config.schedule()
    if schedule is not None:
        values["curriculum"] = json.dumps(schedule.as_json())
    values |= {**(config.extras.get("algo_params") or {}), **config.flags()}
    return {name.replace("-", "_"): _plain(value) for name, value in values.items() if value is not None}


def _playing_values(config: CleanRLWorkerConfig) -> dict[str, Any]:
    """The arguments of a module that plays a saved policy; they are called like the extras."""
    return {
        "policy_path": config.extras["policy_path"],
        "algo": config.algo,
        "env_id": config.env_id,
        "seed": config.effective_seed,
        # An empty object is an answer too: the policy may have been trained with some.
        "env_kwargs": config.extras.get("env_kwargs"),
        **{setting.name: config.extras.get(setting.name) for setting in MODE_SETTINGS[config.mode]},
    }


def _foreign_arguments(config: CleanRLWorkerConfig, script: Script) -> list[str]:
    """The flags of somebody's script, in the form that it takes them."""
    say = script.flags.words
    said = {**foreign_fields(config, script.flags), **platform_flags(config.extras, script)}
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
    named = config.named_values()
    if config.total_timesteps in (OWN_BUDGET, flags.default("total_timesteps")):
        del named["total_timesteps"]
    if flags.complete and flags.find("seed") is None and config.effective_seed == DEFAULT_SEED:
        # Nobody has asked for this one.
        del named["seed"]
    return named


def tracks_itself(script: Script) -> bool:
    """Whether somebody's script has CleanRL's flag `--track`: it is told to, and does the rest by itself."""
    if script.kind != "foreign":
        return False
    # CleanRL's own scripts all have it, also where their source is in another interpreter.
    return script.flags.find("track") is not None or script.target.startswith("cleanrl.")


def platform_flags(extras: Mapping[str, Any], script: Script | None = None) -> dict[str, Any]:
    """What the platform knows by its own name, by the names that CleanRL's scripts share.

    `script` is somebody's, and is told what it can be told.
    """
    said: dict[str, Any] = {}
    if extras.get("track_wandb") and (script is None or tracks_itself(script)):
        # A flag, which every script has a default for, would overrule W&B's own variables.
        project = extras.get("wandb_project_name") or extras.get("wandb_project")
        project = project or os.environ.get("WANDB_PROJECT")
        entity = extras.get("wandb_entity") or os.environ.get("WANDB_ENTITY")
        said = {"track": True, "wandb_project_name": project, "wandb_entity": entity}
        if script is not None and script.flags.complete:
            # The others reach it as W&B's own variables.
            said = {name: value for name, value in said.items() if script.flags.find(name) is not None}
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


def training_environment(config: CleanRLWorkerConfig, run_dir: Path) -> dict[str, str]:
    """What the training process sees: the user's surroundings and what names the run; no secret of ours."""
    own = {
        "CLEANRL_RUN_ID": config.run_id,
        "CLEANRL_RUN_DIR": str(run_dir),
        "WANDB_RUN_ID": config.run_id,
        "PYTHONUNBUFFERED": "1",
        # What draws with SDL, live pictures of classic control too, would else take SIGTERM for itself.
        "SDL_NO_SIGNAL_HANDLERS": "1",
    }
    return surroundings() | own | _wandb(config.extras)


def _wandb(extras: Mapping[str, Any]) -> dict[str, str]:
    """W&B's own variables, so that any script which uses it finds its project and its proxy."""
    if not any(name.startswith("wandb_") for name in extras):
        return {}
    from mosaic.tracking.settings import proxies, settings_of

    own = settings_of("wandb", extras, os.environ)
    named = {
        "WANDB_PROJECT": own.get("project_name") or own.get("project"),
        "WANDB_NAME": own.get("run_name"),
        "WANDB_RUN_GROUP": own.get("group"),
        "WANDB_TAGS": ",".join(own.get("tags", ())),
        **{
            f"WANDB_{name.upper()}": own.get(name)
            for name in ("entity", "email", "notes", "mode", "base_url")
        },
        **{
            f"{scheme.upper()}_PROXY": proxy
            for scheme, proxy in proxies(extras, os.environ, user_folder()).items()
        },
    }
    return {name: str(value) for name, value in named.items() if value}


_CONFIG_NAME = "worker_config.json"
# With our own search path: the script's may lead another interpreter to parts of us only.
_MOSAIC = """#!/bin/sh
PYTHONPATH="$MOSAIC_OWN_PYTHONPATH" exec "$MOSAIC_OWN_PYTHON" -P -m mosaic "$@"
"""


def shell_environment(
    environment: Mapping[str, str], config: CleanRLWorkerConfig, script: Script, paths: RunPaths
) -> dict[str, str]:
    """The training process's environment with what a shell script needs; makes the files that it names."""
    run_dir, tools = paths.run_dir, paths.run_dir / "bin"
    tools.mkdir(parents=True, exist_ok=True)
    paths.checkpoints.mkdir(exist_ok=True)
    write_json(run_dir / _CONFIG_NAME, config.as_json())
    write_atomic(tools / "mosaic", _MOSAIC.encode(), mode=0o755)
    python = os.environ.get(PYTHON_VARIABLE) or sys.executable
    search = [str(tools), str(Path(python).parent), environment.get("PATH", os.defpath)]
    own = {
        "MOSAIC_CONFIG_FILE": str(run_dir / _CONFIG_NAME),
        RUN_VARIABLE: config.run_id,
        RUN_DIR_VARIABLE: str(run_dir),
        "MOSAIC_CHECKPOINT_DIR": str(paths.checkpoints),
        FOLDER_VARIABLE: str(Path(script.target).parent),
        "MOSAIC_TOTAL_TIMESTEPS": str(config.total_timesteps),
        "MOSAIC_OWN_PYTHON": sys.executable,
        "MOSAIC_OWN_PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "PATH": os.pathsep.join(search),
    }
    if config.effective_seed is not None:
        own["MOSAIC_SEED"] = str(config.effective_seed)
    if names_environment(script.head, config.env_id):
        own["MOSAIC_ENV_ID"] = config.env_id
    return {**environment, **own}
