"""The dry run: all that can be told of a run without starting it, and where each parameter comes from."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cleanrl_worker.config.checkpoint_files import Origin
from cleanrl_worker.config.footprint import device, estimated_memory
from cleanrl_worker.config.live import LiveSettings
from cleanrl_worker.config.modes import MODE_SETTINGS, RESUME
from cleanrl_worker.config.shell_scripts import names_environment
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig
from cleanrl_worker.schemas import ParamSchema, load_schema
from cleanrl_worker.supervisor.arguments import RuntimeSummary, make_plan
from cleanrl_worker.supervisor.inspection import Inspection, inspect
from mosaic.contract.extras import is_installed

_WITH_OPENGL = ("mujoco", "dm_control")


def describe(
    config: Mapping[str, Any], python: str | None, folder: Path, typed: Collection[str] = ()
) -> dict[str, Any]:
    """What would run, as JSON holds it; a UserError when the config is wrong. `typed` are the names of
    parameters that were said on a command line, all others come from a config."""
    found = inspect(config, python, folder)
    resumed = found.origin if found.config.mode == RESUME else None
    plan = make_plan(found.config, found.script, resumed, python)
    values = list_parameters(plan, found.config, typed)
    schedule = found.config.schedule()
    by_name = {one.name: one.value for one in values}
    return {
        **plan.as_json(),
        "kind": found.script.kind,
        "environment": _environment(found),
        "parameters": [one.as_json() for one in values],
        "device": device(by_name, found.script.ours) if found.script.has_main else None,
        "estimated_memory_mb": estimated_memory(by_name, found.entry) if found.script.has_main else None,
        "curriculum": schedule.as_json() if schedule is not None else None,
        "policy": _policy(found.origin) if found.origin is not None and resumed is None else None,
        "script": found.script.head.as_json() if found.script.kind == "shell" else None,
        "pictures": _pictures(found, python),
        "warning": found.warning,
        "missing_extras": [
            {"name": name, "needed_by": what, "install": f"mosaic extras install {name}"}
            for name, what in found.missing
        ],
    }


def _environment(found: Inspection) -> dict[str, Any]:
    entry = found.entry
    if entry is None:
        return {"env_id": found.config.env_id, "known": False}
    return {
        "env_id": entry.env_id,
        "known": True,
        "family": entry.family,
        "extra": entry.extra,
        "observation": dict(entry.observation),
        "action": dict(entry.action),
        "max_episode_steps": entry.max_episode_steps,
    }


def _pictures(found: Inspection, python: str | None) -> dict[str, Any]:
    """Whether live pictures will come (None where that is not known), and why not with what to do."""
    entry = found.entry
    if LiveSettings.from_extras(found.config.extras).mode == "off":
        return _no_pictures("they are off for this run")
    if entry is None or python is not None:
        who = "the script" if entry is None else python
        return {"come": None, "reason": f"that depends on what {who} can draw", "install": None}
    if not entry.draws:
        return _no_pictures(f"{entry.env_id} has no render mode 'rgb_array'")
    name = entry.drawn_by
    if name is not None and not _can_draw(name):
        install = f"mosaic extras install {name}"
        return _no_pictures(f"drawing {entry.env_id} needs the optional set '{name}'", install)
    if name in _WITH_OPENGL and not _has_opengl():
        return _no_pictures(
            f"{entry.env_id} is drawn with libEGL.so.1 or on a screen", "apt-get install libegl1"
        )
    return {"come": True, "reason": "", "install": None}


def _no_pictures(reason: str, install: str | None = None) -> dict[str, Any]:
    return {"come": False, "reason": reason, "install": install}


def _can_draw(name: str) -> bool:
    # Of two packages with the same module the set asks for one, and either draws.
    return find_spec("pygame") is not None if name == "classic" else is_installed(name)


def _has_opengl() -> bool:
    """Whether MuJoCo finds something to draw with: a screen, or the library that needs none."""
    if any(os.environ.get(name) for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY")):
        return True
    try:
        ctypes.CDLL("libEGL.so.1")
    except OSError:
        return False
    return True


def _policy(origin: Origin) -> dict[str, Any]:
    return {
        "path": str(origin.path),
        "algo": origin.algo,
        "env_id": origin.args.get("env_id"),
        "step": origin.step,
    }


DEFAULT, CONFIG, CLI, CHECKPOINT = "default", "config", "cli", "checkpoint"


@dataclass(frozen=True)
class ParameterValue:
    """One parameter."""

    name: str
    value: Any
    source: str
    """`default`, `config`, `cli`, or `checkpoint` when a resumed run has it from there."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def list_parameters(
    plan: RuntimeSummary, asked: CleanRLWorkerConfig, typed: Collection[str]
) -> list[ParameterValue]:
    """All parameters of what would run. `asked` is the config as it was given, `typed` the names that were
    said on a command line."""
    used, given = _values(plan.config), _values(asked)
    found = []
    for schema in _schemas(plan):
        if schema.name in given:
            source = CLI if schema.name in typed else CONFIG
        else:
            source = CHECKPOINT if schema.name in used else DEFAULT
        found.append(ParameterValue(schema.name, used.get(schema.name, schema.default), source))
    known = {one.name for one in found}
    if plan.script.kind == "shell" and not names_environment(plan.script.head, asked.env_id):
        known.add("env_id")
    others = [name for name in given if name not in known]
    return found + [ParameterValue(name, given[name], CLI if name in typed else CONFIG) for name in others]


def _schemas(plan: RuntimeSummary) -> tuple[ParamSchema, ...]:
    if plan.script.kind == "mode":
        return MODE_SETTINGS[plan.config.mode]
    schema = load_schema(plan.config.algo) if plan.script.ours else None
    # The plan has a checkpoint of its own place: it stands beside the parameters.
    return tuple(one for one in schema.parameters if one.name != "resume_from") if schema else ()


def _values(config: CleanRLWorkerConfig) -> dict[str, Any]:
    """What a config says, by the names of parameters."""
    extras = config.extras
    said = {
        "env_id": config.env_id,
        "total_timesteps": config.total_timesteps,
        "seed": config.effective_seed,
        "cuda": extras.get("cuda", extras.get("use_cuda")),
        "track": extras.get("track_wandb"),
        "wandb_project_name": extras.get("wandb_project_name") or extras.get("wandb_project"),
        "wandb_entity": extras.get("wandb_entity"),
        "env_kwargs": extras.get("env_kwargs"),
        "curriculum": extras.get("curriculum_schedule"),
    }
    settings = {
        one.name: extras[one.name] for one in MODE_SETTINGS.get(config.mode, ()) if one.name in extras
    }
    params = {name.replace("-", "_"): value for name, value in (extras.get("algo_params") or {}).items()}
    plain = {name: value for name, value in said.items() if value is not None}
    return {**plain, **config.flags(), **settings, **params}
