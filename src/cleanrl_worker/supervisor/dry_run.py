"""The dry run: everything about a run that can be told without starting it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cleanrl_worker.config.checkpoint_files import Origin
from cleanrl_worker.config.footprint import device, estimated_memory
from cleanrl_worker.config.live import LiveSettings
from cleanrl_worker.config.modes import RESUME
from cleanrl_worker.supervisor.inspection import Inspection, inspect
from cleanrl_worker.supervisor.parameters import list_parameters
from cleanrl_worker.supervisor.plan import make_plan
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
