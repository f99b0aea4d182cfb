"""The rules of playing a saved policy: what a run takes from it, and what may differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleanrl_worker.config.checkpoint_files import Origin, find_origin
from cleanrl_worker.config.policy_files import find_policy
from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.config.resuming import as_object
from cleanrl_worker.config.trust import require_trust, require_trusted_algorithm, trusted_in
from cleanrl_worker.schemas import load_schema
from cleanrl_worker.schemas.environments import EnvironmentEntry, find_environment
from cleanrl_worker.schemas.spaces import describe_briefly, grid_of_dict
from mosaic.contract.errors import UserError, closest
from mosaic.contract.paths import named_path

if TYPE_CHECKING:
    from cleanrl_worker.config.worker_config import CleanRLWorkerConfig

_FILLED_IN = ("algo", "env_id", "total_timesteps")


def fill_in_policy(fields: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A config's fields with what its policy knows in place of what is not given."""
    extras = {**fields["extras"]}
    named = extras.get("policy_path")
    if not isinstance(named, str) or not named:
        raise UserError(
            f"'extras.policy_path' is missing: mode {extras['mode']} needs a model, a checkpoint or a run."
        )
    filled = {**fields, "extras": extras}
    is_file = Path(named).is_absolute() and not named_path(named).is_dir()
    if is_file and all(fields.get(name) is not None for name in _FILLED_IN):
        return filled
    extras["policy_path"] = find_policy(named, folder).path
    origin = find_origin(Path(extras["policy_path"]))
    if origin.algo is None and fields.get("algo") is None:
        raise UserError(
            f"{origin.path} does not say which algorithm it is of: name algorithm and environment."
        )
    args = origin.args
    known = {
        "algo": origin.algo,
        "env_id": args.get("env_id"),
        # Nothing is trained: the budget is that of the training which it comes from.
        "total_timesteps": args.get("total_timesteps", 1),
        "seed": args.get("seed"),
    }
    if fields.get("algo") is None:
        require_trusted_algorithm(origin, trusted_in(extras))
    if fields.get("env_id") is None:
        require_trust(origin.path, [args.get("env_id")], trusted=trusted_in(extras))
    kwargs = as_object(args.get("env_kwargs"))
    if kwargs and fields.get("env_id") in (None, args.get("env_id")) and "env_kwargs" not in extras:
        require_trust(origin.path, [], kwargs, trusted_in(extras))
        extras["env_kwargs"] = kwargs
    return filled | {name: value for name, value in known.items() if fields.get(name) is None}


def check_policy(config: CleanRLWorkerConfig, origin: Origin, entry: EnvironmentEntry | None) -> None:
    """Raise UserError when an override does not fit the policy that is to be played."""
    schema = load_schema(config.algo)
    if schema is None:
        hint = (
            closest(config.algo, DEFAULT_ALGO_REGISTRY) or f"; known are {', '.join(DEFAULT_ALGO_REGISTRY)}."
        )
        raise UserError(f"There is no algorithm '{config.algo}' whose models can be played{hint}")
    if origin.name not in (None, schema.name):
        raise UserError(f"{origin.path} is a policy of {origin.name}, not of {schema.name}: leave algo out.")
    if config.extras.get("env_kwargs") is None and origin.args.get("env_id") == config.env_id:
        kwargs = as_object(origin.args.get("env_kwargs"))
        require_trust(origin.path, [], kwargs, trusted_in(config.extras))
    trained = find_environment(str(origin.args.get("env_id")))
    if entry is None or trained is None or origin.args.get("env_kwargs") not in (None, "{}"):
        return
    for role in ("observation", "action"):
        was, now = (_shown(getattr(one, role)) for one in (trained, entry))
        if _as_seen(was) != _as_seen(now):
            known, here = describe_briefly(was), describe_briefly(now)
            numbers = f" ({here} instead of {known})" if here != known else ""
            raise UserError(
                f"{origin.path} was trained on {trained.env_id}, and {config.env_id} has other {role}s"
                f"{numbers}: leave the environment out, or name one with the same spaces."
            )


def _shown(space: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a space that a policy gets."""
    return grid_of_dict(space) or space


def _as_seen(space: Mapping[str, Any]) -> dict[str, Any]:
    """What of a space decides whether a network fits it: not bounds, nor how exact the numbers are."""
    return {name: value for name, value in space.items() if name not in ("low", "high", "dtype", "start")}
