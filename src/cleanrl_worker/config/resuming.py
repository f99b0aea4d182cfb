"""The rules of resuming: what a run takes from its origin, what may differ, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleanrl_worker.config.checkpoint_files import Origin, find_origin, locate
from cleanrl_worker.config.modes import RESUME
from cleanrl_worker.config.trust import (
    environments_in,
    module_of,
    require_trust,
    require_trusted_algorithm,
    trusted_in,
)
from cleanrl_worker.curriculum.schedule import parse_schedule
from cleanrl_worker.schemas import check_params, load_schema
from mosaic.contract.errors import UserError
from mosaic.contract.outside import parse_json
from mosaic.contract.paths import named_path
from mosaic.contract.secrets import references_in

if TYPE_CHECKING:
    from cleanrl_worker.config.worker_config import CleanRLWorkerConfig

FREE = frozenset(
    [
        *("total_timesteps", "resume_from", "exp_name", "save_model", "checkpoint_every", "capture_video"),
        *("track", "wandb_project_name", "wandb_entity", "cuda", "kernels", "torch_deterministic"),
    ]
)
"""Arguments that leave the training itself alone: a resumed run may have other values of them."""

_ANNEALED = {"anneal_lr": "the learning rate", "exploration_fraction": "the share of random actions"}
_NOT_IN_MODEL = {"sac_continuous_action": ", Q networks, alpha"}


def is_free(name: str) -> bool:
    """Whether a resumed run may have another value of this argument than its checkpoint."""
    return name in FREE or name.startswith("eval_")


def fill_in(fields: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A config's fields with what its checkpoint knows in place of what is not given."""
    extras = {**fields["extras"]}
    # A model to go on from may also be called what a policy to play is called.
    named = extras.pop("policy_path", None)
    named = extras.get("checkpoint_path") or named
    if not isinstance(named, str) or not named:
        raise UserError(
            f"'extras.checkpoint_path' is missing: mode {RESUME} needs a checkpoint, a model or a run."
        )
    extras["checkpoint_path"] = named
    filled = {**fields, "extras": extras}
    needed = ("algo", "env_id", "total_timesteps")
    if named_path(named, folder) == Path(named) and all(fields.get(name) is not None for name in needed):
        return filled
    extras["checkpoint_path"] = str(locate(named, folder))
    origin = find_origin(Path(extras["checkpoint_path"]))
    known = {"algo": origin.algo, **{name: origin.args.get(name) for name in (*needed[1:], "seed")}}
    if fields.get("algo") is None:
        require_trusted_algorithm(origin, trusted_in(extras))
        if origin.algo is None:
            raise UserError(
                f"{origin.path} does not say which algorithm it is of: name algorithm and environment."
            )
    if fields.get("env_id") is None:
        require_trust(origin.path, [known["env_id"]], trusted=trusted_in(extras))
    kwargs = as_object(origin.args.get("env_kwargs"))
    if any(references_in(kwargs)) and fields.get("env_id") in (None, known["env_id"]):
        # Who asks for the run has to give these secrets again.
        extras.setdefault("env_kwargs", kwargs)
    return filled | {name: value for name, value in known.items() if fields.get(name) is None}


def check_resume(config: CleanRLWorkerConfig, origin: Origin) -> None:
    """Raise UserError when this config cannot go on from this origin."""
    schema = load_schema(config.algo)
    if schema is None:
        raise UserError(
            f"'{config.algo}' cannot be resumed: only algorithms on the training kit write full checkpoints."
        )
    if origin.name not in (None, schema.name):
        raise UserError(f"{origin.path} is of {origin.name}, not of {schema.name}.")
    given = check_params(config.algo, _given_params(config))
    _require_trust(config, origin)
    if origin.step is None:
        return
    given["env_id"] = config.env_id
    if config.effective_seed is not None:
        given["seed"] = config.effective_seed
    if "env_kwargs" in config.extras:
        given["env_kwargs"] = config.extras["env_kwargs"] or {}
    if "curriculum_schedule" in config.extras:
        given["curriculum"] = config.extras["curriculum_schedule"]
    refuse_changes(origin, given)
    check_budget(origin, config.total_timesteps)
    if _left(origin, config.total_timesteps) <= 0:
        raise UserError(
            f"{origin.path} has trained all of its {config.total_timesteps:,} steps: to extend it, "
            "give a larger total_timesteps (`mosaic train --resume … --extend N`)."
        )


def _require_trust(config: CleanRLWorkerConfig, origin: Origin) -> None:
    """Refuse modules that only the origin names, among what `with_origin` takes from it."""
    args, extras = origin.args, config.extras
    same = config.env_id == args.get("env_id") and "env_kwargs" not in extras
    goes_on = origin.step is not None and "curriculum_schedule" not in extras
    stages = environments_in(args.get("curriculum")) if goes_on else []
    kwargs = as_object(args.get("env_kwargs")) if same else None
    require_trust(origin.path, stages, kwargs, [*trusted_in(extras), module_of(config.env_id)])


def refuse_changes(origin: Origin, given: Mapping[str, Any]) -> None:
    """Raise UserError when an argument differs that would make it another training."""
    for name, value in given.items():
        was = origin.args.get(name)
        if name == "env_kwargs":
            value, was = as_object(value), as_object(was)
        elif name == "curriculum":
            value, was = _as_stages(value), _as_stages(was)
        if not is_free(name) and name in origin.args and value != was:
            raise UserError(
                f"{name} is {value!r}, but {was!r} in {origin.path}: a resumed run keeps it, "
                "so leave it out or begin a new run."
            )


def check_budget(origin: Origin, total: int) -> None:
    """Raise UserError when a checkpoint has been trained for longer than the whole run is to take."""
    if origin.step is not None and total < origin.step:
        raise UserError(
            f"total_timesteps is {total:,}, but {origin.path} is at step {origin.step:,} already."
        )


def with_origin(config: CleanRLWorkerConfig, origin: Origin) -> CleanRLWorkerConfig:
    """The config with all parameters of its origin, but for those that it gives itself."""
    schema = load_schema(config.algo)
    own = [parameter.name for parameter in schema.parameters if not parameter.runtime_only] if schema else []
    params = {name: origin.args[name] for name in own if name in origin.args}
    extras = {name: value for name, value in config.extras.items() if name not in config.flags()}
    extras["algo_params"] = params | check_params(config.algo, _given_params(config))
    kwargs = as_object(origin.args.get("env_kwargs"))
    if kwargs and config.env_id == origin.args.get("env_id"):
        extras.setdefault("env_kwargs", kwargs)
    stages = _as_stages(origin.args.get("curriculum"))
    # A model is what a curriculum has led to: who goes on with it does not begin with the first stage.
    if stages and origin.step is not None:
        extras.setdefault("curriculum_schedule", stages)
    return replace(config, extras=extras)


def explain(origin: Origin, config: CleanRLWorkerConfig) -> str:
    """One line about what a config restores and what it does not."""
    args = {**origin.args, **_given_params(config)}
    schema = load_schema(config.algo)
    told = explain_values(origin, config.algo, args, config.total_timesteps)
    if origin.file is not None and origin.file.changed:
        told += f" {origin.file.path} has changed since it was trained: what it says now is used."
    elif origin.file is not None and origin.algo != origin.file.path:
        told += f" {origin.file.path} is gone: the copy that the run has kept is used."
    if schema is not None and not schema.exact and origin.step is not None:
        told += f" {schema.name} does not go on to the byte."
    return told


def explain_values(origin: Origin, algo: str, args: Mapping[str, Any], total: int) -> str:
    """The same, for a run with these arguments."""
    if origin.step is None:
        found = "are taken from beside it" if origin.normaliser else "too"
        return (
            f"Begins with the weights of {origin.path}; counters, optimizer{_NOT_IN_MODEL.get(algo, '')}, "
            f"schedules, replay buffer and random states begin anew, normaliser statistics {found}."
        )
    text = f"Goes on from step {origin.step:,} of {origin.path}"
    before = int(origin.args["total_timesteps"])
    if total == before:
        return f"{text} and finishes its {total:,} steps."
    annealed = [what for name, what in _ANNEALED.items() if args.get(name)]
    said = f"{' and '.join(annealed)} {'are' if len(annealed) > 1 else 'is'} recomputed over the new budget"
    return f"{text}, to {total:,} steps instead of {before:,}; {said if annealed else 'nothing is annealed'}."


def _left(origin: Origin, total: int) -> int:
    """How many steps of all environments together are left."""
    together = int(origin.args.get("num_envs", 1))
    return total // together - (origin.step or 0) // together


def _given_params(config: CleanRLWorkerConfig) -> dict[str, Any]:
    """What the config says of the algorithm's parameters, in either of the two places."""
    return {**config.flags(), **(config.extras.get("algo_params") or {})}


def _as_stages(value: Any) -> list[dict[str, str]] | dict[str, Any]:
    """A curriculum as plain data, however it was written."""
    schedule = parse_schedule(value)
    return schedule.as_json() if schedule is not None else []


def as_object(value: Any) -> Any:
    """Keyword arguments of an environment, which are JSON text in a command line."""
    if value is not None and not isinstance(value, str):
        return value
    try:
        return parse_json(value or "{}")
    except ValueError:
        return value
