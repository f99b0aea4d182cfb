"""The parameters of a run with where each value comes from."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from cleanrl_worker.config.modes import MODE_SETTINGS
from cleanrl_worker.config.shell_scripts import names_environment
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig
from cleanrl_worker.schemas import load_schema
from cleanrl_worker.supervisor.plan import RuntimeSummary
from mosaic.contract.capabilities import ParamSchema

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
