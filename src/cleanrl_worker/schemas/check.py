"""Checking parameters before anything starts: each against its schema, and all of them against each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.schemas.environments import PROCGEN, find_environment
from cleanrl_worker.schemas.model import load_schema
from mosaic.contract.capabilities import ParamSchema
from mosaic.contract.errors import UserError, closest
from mosaic.contract.numbers import TRUTH, bounds_text, is_inside, parse_whole

Value = bool | int | float | str | None
KINDS = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "text"}
GREATEST_SEED = 2**31 - 1
"""Seeds of environments and evaluations are counted on from here, and some generators take no more bits."""
GREATEST_LEVEL = 2**31 - 1
"""Levels of Procgen are numbers below this."""
LIMITS = {"int": 10.0**15, "float": 1e30}
"""What no parameter is beyond, with whatever sign: more steps than a life has, more than networks hold."""


def check_params(algo: str, params: Mapping[str, object]) -> dict[str, object]:
    """The parameters with their right types, by their underscored names; a wrong one raises UserError.

    Values may come from JSON or, as text, from a command line.
    """
    schema = load_schema(algo)
    if schema is None:
        raise UserError(f"There is no algorithm '{algo}'{closest(algo, DEFAULT_ALGO_REGISTRY) or '.'}")
    return check_values(Path(algo).name, schema.parameters, params)


def check_values(
    algo: str, parameters: Sequence[ParamSchema], params: Mapping[str, object]
) -> dict[str, object]:
    """The same for something that takes these parameters."""
    known = {parameter.name: parameter for parameter in parameters}
    checked: dict[str, object] = {}
    for name, value in params.items():
        parameter = known.get(name.replace("-", "_"))
        if parameter is None:
            hint = closest(name.replace("-", "_"), known) or f"; it takes {', '.join(known)}."
            raise UserError(f"{algo} has no parameter '{name}'{hint}")
        if parameter.name in checked:
            raise UserError(f"{algo} parameter '{parameter.name}' is given twice; give it once.")
        checked[parameter.name] = check_value(algo, parameter, value)
    return checked


def check_value(algo: str, parameter: ParamSchema, value: object) -> Value:
    """One value with the parameter's type, inside its bounds and choices."""
    if value is None or (parameter.optional and isinstance(value, str) and value.lower() in ("none", "null")):
        if parameter.optional:
            return None
        raise _refusal(algo, parameter, value)
    try:
        typed = _convert(parameter, value)
    except ValueError:
        raise _refusal(algo, parameter, value) from None
    inside = not isinstance(typed, int | float) or is_inside(typed, parameter.minimum, parameter.maximum)
    if not inside or (parameter.choices is not None and typed not in parameter.choices):
        raise _refusal(algo, parameter, value)
    check_limit(f"{algo} parameter '{parameter.name}'", typed)
    return typed


def check_limit(what: str, value: object) -> None:
    """Raise UserError for a number that is too large for anything, and for a text that no program can get."""
    if isinstance(value, str) and "\0" in value:
        raise UserError(f"{what} has a character that no text may have (NUL); leave it out.")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    limit = LIMITS["float" if isinstance(value, float) else "int"]
    # Infinity, which only a flag can say, is meant: no bound on the norm of a gradient.
    if limit < abs(value) < math.inf:
        raise UserError(f"{what} is {value!s:.40}, but must be at most {limit:g}.")


def _convert(parameter: ParamSchema, value: object) -> bool | int | float | str:
    if parameter.type == "bool":
        value = TRUTH.get(value.lower()) if isinstance(value, str) else value
        if isinstance(value, bool):
            return value
    elif parameter.type == "str":
        if isinstance(value, str):
            return value
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        return _to_number(value, parameter.type == "int")
    raise ValueError(value)


def _to_number(value: int | float | str, whole: bool) -> int | float:
    """A number; a whole one also when written `1e6` or `500_000`."""
    if whole and isinstance(value, int | str):
        return parse_whole(str(value))
    number = float(value)
    if not math.isfinite(number) or (whole and number != int(number)):
        raise ValueError(value)
    return int(number) if whole else number


def _refusal(algo: str, parameter: ParamSchema, value: object) -> UserError:
    return UserError(
        f"{algo} parameter '{parameter.name}' is {value!r:.80}, but must be {allowed(parameter)}."
    )


def allowed(parameter: ParamSchema) -> str:
    """What a parameter may be, in words."""
    if parameter.choices is not None:
        text = "one of " + ", ".join(repr(choice) for choice in parameter.choices)
    else:
        text = KINDS[parameter.type]
    text += bounds_text(parameter.minimum, parameter.maximum)
    return text + (" or null" if parameter.optional else "")


LONGEST_NAME = 100
"""Of an experiment: with environment, seed and time it becomes the name of a folder."""


def check_together(values: Mapping[str, Any]) -> None:
    """Raise UserError for values that may each be right, but not together. `values` has all parameters."""
    total, envs = values["total_timesteps"], values["num_envs"]
    if total < envs:
        raise UserError(
            f"total_timesteps is {total}, which is less than one step of {envs} "
            "environments; raise it or lower num_envs."
        )
    rollout, parts = envs * values.get("num_steps", 0), values.get("num_minibatches", 0)
    if parts > rollout:
        raise UserError(
            f"num_minibatches is {parts}, but a rollout has only {rollout} steps (num_envs times num_steps); "
            "lower it."
        )
    size, buffer = values.get("batch_size", 0), values.get("buffer_size", 0)
    if size > buffer:
        raise UserError(f"batch_size is {size}, but the replay buffer holds only {buffer}; lower it.")
    if values["eval_every"] and not values["eval_episodes"]:
        raise UserError("eval_every asks for evaluations, but eval_episodes is 0; raise it.")
    before = values.get("teacher_steps", 0) + values.get("offline_steps", 0)
    if before >= total:
        raise UserError(
            f"total_timesteps is {total}, but the teacher's steps and the offline ones count too, {before} "
            "together: raise it, or lower teacher_steps or offline_steps."
        )
    low, high = values.get("v_min", 0.0), values.get("v_max", 1.0)
    if not low < high:
        raise UserError(f"v_min is {low}, which is not less than v_max, {high}; lower it.")
    dropped, quantiles = values.get("top_quantiles_to_drop", 0), values.get("n_quantiles", 1)
    if dropped >= quantiles:
        raise UserError(
            f"top_quantiles_to_drop is {dropped}, but a critic has only {quantiles} quantiles; lower it."
        )
    width, heads = values.get("trxl_dim", 1), values.get("trxl_num_heads", 1)
    if width % heads:
        raise UserError(
            f"trxl_dim is {width}, which is not a multiple of trxl_num_heads, {heads}; change one."
        )
    _check_levels(values)
    if len(values["exp_name"]) > LONGEST_NAME:
        raise UserError(
            f"exp_name has {len(values['exp_name'])} characters; at most {LONGEST_NAME} are allowed."
        )


def _check_levels(values: Mapping[str, Any]) -> None:
    """Raise UserError for levels of Procgen that there are none of."""
    number, first = values.get("num_levels", 0), values.get("start_level", 0)
    if first and not number:
        raise UserError(
            f"start_level is {first}, but num_levels is 0, which means all levels; raise num_levels."
        )
    if first + number > GREATEST_LEVEL:
        raise UserError(
            f"start_level plus num_levels is {first + number}, but levels end at {GREATEST_LEVEL}; lower one."
        )
    entry = find_environment(values["env_id"]) if number else None
    if number and (entry is None or entry.family != PROCGEN):
        raise UserError(
            f"num_levels is {number}, but {values['env_id']} is not a game of Procgen, which have levels; "
            "leave it out."
        )


def warn_together(values: Mapping[str, Any]) -> str:
    """What will come of values that are not wrong, but hardly meant; empty when there is nothing to say."""
    total, start = values["total_timesteps"], values.get("learning_starts")
    if start is None:
        return ""
    every = values.get("train_frequency", 1)
    first = (start // every + 1) * every
    if first <= total:
        return ""
    return (
        f"Nothing will be learned: the first update comes at step {first:,}, and the run ends at {total:,}; "
        f"raise total_timesteps, or lower {'learning_starts' if start >= every else 'train_frequency'}."
    )
