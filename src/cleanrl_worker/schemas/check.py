"""Checking parameters against a schema before anything starts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from cleanrl_worker.schemas.model import ParamSchema, algorithms, load_schema
from mosaic.contract.errors import UserError, closest
from mosaic.contract.numbers import TRUTH, bounds_text, is_inside, parse_whole

Value = bool | int | float | str | None
KINDS = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "text"}
GREATEST_SEED = 2**31 - 1
"""Seeds of environments and evaluations are counted on from here, and some generators take no more bits."""
LIMITS = {"int": 10.0**15, "float": 1e30}
"""What no parameter is beyond, with whatever sign: more steps than a life has, more than networks hold."""


def check_params(algo: str, params: Mapping[str, object]) -> dict[str, object]:
    """The parameters with their right types, by their underscored names; a wrong one raises UserError.

    Values may come from JSON or, as text, from a command line.
    """
    schema = load_schema(algo)
    if schema is None:
        raise UserError(f"There is no algorithm '{algo}'{closest(algo, algorithms()) or '.'}")
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
    if parameter.choices is not None and typed not in parameter.choices:
        raise _refusal(algo, parameter, value)
    if isinstance(typed, int | float) and not is_inside(typed, parameter.minimum, parameter.maximum):
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
    if parameter.type == "str" and isinstance(value, str):
        return value
    if parameter.type == "bool":
        return _to_bool(value)
    if isinstance(value, bool):
        raise ValueError(value)
    if parameter.type == "int" and isinstance(value, int | float | str):
        return _to_int(value)
    if parameter.type == "float" and isinstance(value, int | float | str):
        return _to_float(value)
    raise ValueError(value)


def _to_bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in TRUTH:
        return TRUTH[value.lower()]
    raise ValueError(value)


def _to_int(value: int | float | str) -> int:
    """A whole number, also when written `1e6` or `500_000`."""
    if isinstance(value, str):
        return parse_whole(value)
    if not math.isfinite(value) or value != int(value):
        raise ValueError(value)
    return int(value)


def _to_float(value: int | float | str) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _refusal(algo: str, parameter: ParamSchema, value: object) -> UserError:
    return UserError(f"{algo} parameter '{parameter.name}' is {value!r}, but must be {allowed(parameter)}.")


def allowed(parameter: ParamSchema) -> str:
    """What a parameter may be, in words."""
    if parameter.choices is not None:
        text = "one of " + ", ".join(repr(choice) for choice in parameter.choices)
    else:
        text = KINDS[parameter.type]
    bounds = bounds_text(parameter.minimum, parameter.maximum)
    return text + bounds + (" or null" if parameter.optional else "")
