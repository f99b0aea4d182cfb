"""The rules of resuming and playing: what a run takes from its origin, what may differ, what is said of it.

A file may name modules and algorithms: importing one runs its code, so somebody has to have asked for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleanrl_worker.config.checkpoint_files import Origin, find_origin, locate
from cleanrl_worker.config.modes import RESUME
from cleanrl_worker.config.policy_files import find_policy
from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.curriculum.schedule import parse_schedule
from cleanrl_worker.schemas.check import check_params
from cleanrl_worker.schemas.environments import EnvironmentEntry, find_environment
from cleanrl_worker.schemas.model import load_schema
from cleanrl_worker.schemas.spaces import describe_briefly, grid_of_dict
from mosaic.contract.errors import UntrustedModuleError, UserError, closest
from mosaic.contract.outside import parse_json, read_json
from mosaic.contract.paths import VarPaths, named_path, resolve_var
from mosaic.contract.secrets import references_in

if TYPE_CHECKING:
    from cleanrl_worker.config.worker_config import CleanRLWorkerConfig

TRUSTED = "trust_modules"
"""The extra that lists what the user has said yes to."""
_NAMES_IN_KWARGS = ("env_id", "env", "id", "entry_point")


def module_of(env_id: object) -> str:
    """The module in `module:EnvId`, which is imported to make the environment; empty for none."""
    return env_id.rpartition(":")[0] if isinstance(env_id, str) else ""


def require_trust(
    path: Path, named: Iterable[object], kwargs: object = None, trusted: Iterable[str] = ()
) -> None:
    """Refuse to import what only a file names: `named` are environments, `kwargs` what they are made with.

    What the user submitted with the run that the file is of, by our own record of it, may be imported.
    """
    inner = [kwargs.get(name) for name in _NAMES_IN_KWARGS] if isinstance(kwargs, Mapping) else []
    modules = dict.fromkeys(filter(None, map(module_of, (*named, *inner))))
    foreign = [module for module in modules if module not in set(trusted)]
    if foreign and (foreign := [module for module in foreign if module not in set(_submitted(path))]):
        raise UntrustedModuleError(
            f"{path} names the module '{foreign[0]}', whose code would be run: name the environment "
            f"yourself, or add --trust {foreign[0]} ('{TRUSTED}' in a config) if you know it.",
            foreign[0],
        )


def require_trusted_algorithm(origin: Origin, trusted: Iterable[str] = ()) -> None:
    """Refuse to import the file of an algorithm that only a checkpoint or a policy names."""
    if origin.file is None or origin.algo in set(trusted) or origin.file.path in set(_submitted(origin.path)):
        return
    raise UntrustedModuleError(
        f"{origin.path} names the algorithm {origin.algo}, whose code would be run: name the algorithm "
        f"yourself, or add --trust {origin.algo} ('{TRUSTED}' in a config) if you know it.",
        str(origin.algo),
    )


def trusted_in(extras: Mapping[str, Any]) -> list[str]:
    """The modules that a config allows a file to name."""
    given = extras.get(TRUSTED) or []
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise UserError(f"'extras.{TRUSTED}' is {given!r:.80}, but it must be a list of modules.")
    return given


def _submitted(path: Path) -> Iterator[str]:
    """The modules that the run to which a file belongs was submitted with."""
    paths = VarPaths(resolve_var())
    try:
        run_id = path.resolve().relative_to(paths.runs.resolve()).parts[0]
        config = read_json(paths.run_config(run_id))["metadata"]["worker"]["config"]
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return
    extras = config.get("extras") or {}
    yield str(config.get("algo"))
    yield module_of(config.get("env_id"))
    yield from map(module_of, environments_in(extras.get("curriculum_schedule")))
    yield from map(module_of, (extras.get("env_kwargs") or {}).values())
    yield from extras.get(TRUSTED) or []


def environments_in(curriculum: Any) -> list[object]:
    """The environments of a curriculum in whatever form it is written."""
    schedule = parse_schedule(curriculum)
    return [] if schedule is None else [stage.env_id for stage in schedule.stages]


FREE = frozenset(
    [
        *("total_timesteps", "resume_from", "exp_name", "save_model", "checkpoint_every", "capture_video"),
        *("track", "wandb_project_name", "wandb_entity", "cuda", "kernels", "torch_deterministic"),
        *("resume_changes", "stop_at"),
    ]
)
"""Arguments that leave the training itself alone: a resumed run may have other values of them."""

TUNABLE = frozenset(
    [
        *("learning_rate", "policy_lr", "q_lr", "max_grad_norm", "gamma", "gae_lambda", "ent_coef"),
        *("vf_coef", "clip_coef", "clip_vloss", "norm_adv", "target_kl", "update_epochs", "rpo_alpha"),
        *("int_coef", "tau", "target_network_frequency", "policy_frequency", "exploration_noise"),
        *("policy_noise", "noise_clip", "start_e", "end_e", "exploration_fraction"),
    ]
)
"""Parameters that only the next updates read: nothing in a checkpoint is made for them, so that a resumed run
may have other values where it names them in `resume_changes`."""

_ANNEALED = {"anneal_lr": "the learning rate", "exploration_fraction": "the share of random actions"}
_NOT_IN_MODEL = {"sac_continuous_action": ", Q networks, alpha"}


def fill_in(fields: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A config's fields with what its checkpoint or policy knows in place of what is not given."""
    extras = {**fields["extras"]}
    resumes = extras["mode"] == RESUME
    key, what = ("policy_path", "a model, a checkpoint")
    if resumes:
        key, what = ("checkpoint_path", "a checkpoint, a model")
    # A model to go on from may also be called what a policy to play is called.
    other = extras.pop("policy_path", None) if resumes else None
    named = extras.get(key) or other
    if not isinstance(named, str) or not named:
        raise UserError(f"'extras.{key}' is missing: mode {extras['mode']} needs {what} or a run.")
    extras[key] = named
    filled = {**fields, "extras": extras}
    # Only a file can be played: of a folder the newest policy is looked for.
    found = named_path(named, folder) == Path(named) and (resumes or not Path(named).is_dir())
    if found and all(fields.get(name) is not None for name in ("algo", "env_id", "total_timesteps")):
        return filled
    extras[key] = str(locate(named, folder)) if resumes else find_policy(named, folder).path
    origin, trusted = find_origin(Path(extras[key])), trusted_in(extras)
    args = origin.args
    known = {"algo": origin.algo, **{name: args.get(name) for name in ("env_id", "total_timesteps", "seed")}}
    if not resumes:
        # Nothing is trained: the budget is that of the training which it comes from.
        known["total_timesteps"] = args.get("total_timesteps", 1)
    if fields.get("algo") is None:
        require_trusted_algorithm(origin, trusted)
        if origin.algo is None:
            raise UserError(f"{origin.path} does not name its algorithm: give algorithm and environment.")
    if fields.get("env_id") is None:
        require_trust(origin.path, [known["env_id"]], trusted=trusted)
    kwargs = as_object(args.get("env_kwargs"))
    if kwargs and fields.get("env_id") in (None, known["env_id"]) and "env_kwargs" not in extras:
        if not resumes:
            require_trust(origin.path, [], kwargs, trusted)
        # Of a resumed run, who asks for it has to give these secrets again; all else it takes over later.
        if not resumes or any(references_in(kwargs)):
            extras["env_kwargs"] = kwargs
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
    given |= {name: value for name, value in config.named_values().items() if value is not None}
    if "env_kwargs" in config.extras:
        given["env_kwargs"] = config.extras["env_kwargs"] or {}
    if "curriculum_schedule" in config.extras:
        given["curriculum"] = config.extras["curriculum_schedule"]
    refuse_changes(origin, given)
    check_budget(origin, config.total_timesteps)
    together = int(origin.args.get("num_envs", 1))
    if config.total_timesteps // together <= origin.step // together:
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
    wanted = {one.strip() for one in str(given.get("resume_changes") or "").split(",")} - {""}
    for name in sorted(wanted - TUNABLE):
        raise UserError(
            f"'{name}' cannot change when a run is resumed{closest(name, TUNABLE) or '.'} "
            f"These can: {', '.join(sorted(TUNABLE))}."
        )
    for name, value in given.items():
        was = origin.args.get(name)
        if name == "env_kwargs":
            value, was = as_object(value), as_object(was)
        elif name == "curriculum":
            value, was = _as_stages(value), _as_stages(was)
        free = name in FREE | wanted or name.startswith("eval_")
        if not free and name in origin.args and value != was:
            other = f"or add resume_changes={name}" if name in TUNABLE else "or begin a new run"
            raise UserError(
                f"{name} is {value!r}, but {was!r} in {origin.path}: a resumed run keeps it, "
                f"so leave it out {other}."
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
        told += f" {origin.file.path} has changed since the training: the current version is used."
    elif origin.file is not None and origin.algo != origin.file.path:
        told += f" {origin.file.path} is gone: the run's copy is used."
    if schema is not None and not schema.exact and origin.step is not None:
        told += f" {schema.name} does not resume exactly."
    return told


def explain_values(origin: Origin, algo: str, args: Mapping[str, Any], total: int) -> str:
    """The same, for a run with these arguments."""
    if origin.step is None:
        found = "are taken from beside it" if origin.normaliser else "too"
        return (
            f"Starts with the weights of {origin.path}; counters, optimizer{_NOT_IN_MODEL.get(algo, '')}, "
            "schedules, replay buffer and random states start from scratch, normaliser statistics "
            f"{found}."
        )
    text = f"Continues from step {origin.step:,} of {origin.path}"
    before = int(origin.args["total_timesteps"])
    if total == before:
        return f"{text} and finishes its {total:,} steps."
    annealed = [what for name, what in _ANNEALED.items() if args.get(name)]
    said = f"{' and '.join(annealed)} {'are' if len(annealed) > 1 else 'is'} recomputed over the new budget"
    return f"{text}, to {total:,} steps instead of {before:,}; {said if annealed else 'nothing is annealed'}."


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


def check_policy(config: CleanRLWorkerConfig, origin: Origin, entry: EnvironmentEntry | None) -> None:
    """Raise UserError when an override does not fit the policy that is to be played."""
    schema = load_schema(config.algo)
    if schema is None:
        raise unplayable(config.algo)
    if origin.name not in (None, schema.name):
        raise UserError(f"{origin.path} is a policy of {origin.name}, not of {schema.name}: leave algo out.")
    if config.extras.get("env_kwargs") is None and origin.args.get("env_id") == config.env_id:
        kwargs = as_object(origin.args.get("env_kwargs"))
        require_trust(origin.path, [], kwargs, trusted_in(config.extras))
    trained = find_environment(str(origin.args.get("env_id")))
    if entry is None or trained is None or origin.args.get("env_kwargs") not in (None, "{}"):
        return
    for role in ("observation", "action"):
        spaces = (getattr(one, role) for one in (trained, entry))
        # Of a grid world a policy gets the picture.
        was, now = (grid_of_dict(space) or space for space in spaces)
        if _as_seen(was) != _as_seen(now):
            known, here = describe_briefly(was), describe_briefly(now)
            numbers = f" ({here} instead of {known})" if here != known else ""
            raise UserError(
                f"{origin.path} was trained on {trained.env_id}, and {config.env_id} has other {role}s"
                f"{numbers}: leave the environment out, or name one with the same spaces."
            )


def unplayable(algo: str) -> UserError:
    """What is said of an algorithm that is not known."""
    hint = closest(algo, DEFAULT_ALGO_REGISTRY) or f"; known are {', '.join(DEFAULT_ALGO_REGISTRY)}."
    return UserError(f"There is no algorithm '{algo}' whose models can be played{hint}")


def _as_seen(space: Mapping[str, Any]) -> dict[str, Any]:
    """What of a space decides whether a network fits it: not bounds, nor how exact the numbers are."""
    return {name: value for name, value in space.items() if name not in ("low", "high", "dtype", "start")}
