"""The dry run: everything about a run that can be told without starting it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from cleanrl_worker.checkpoint_files import Origin
from cleanrl_worker.footprint import device, estimated_memory
from cleanrl_worker.inspection import Inspection, inspect
from cleanrl_worker.modes import RESUME
from cleanrl_worker.parameters import list_parameters
from cleanrl_worker.plan import make_plan


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


def _policy(origin: Origin) -> dict[str, Any]:
    return {
        "path": str(origin.path),
        "algo": origin.algo,
        "env_id": origin.args.get("env_id"),
        "step": origin.step,
    }
