"""An algorithm in plain data: its parameters with types and bounds, read from its arguments' dataclass."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import types
import typing
from typing import Any

from cleanrl_worker.kit.args import RUNTIME_FIELDS, Bounds
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.schemas.model import AlgoSchema
from mosaic.contract.capabilities import ParamSchema

KINDS = ("bool", "int", "float", "str")


class UnclearField(Exception):
    """A field of the arguments cannot be a parameter; the text says why, as part of a sentence."""


def describe_algorithm(spec: AlgorithmSpec) -> dict[str, Any]:
    """One algorithm as schemas.json holds it; what says nothing is left out."""
    texts = field_texts(spec.args)
    about = inspect.cleandoc(spec.args.__doc__ or spec.name).splitlines()
    described: dict[str, Any] = {
        "help": about[0] if about else "",
        "action_spaces": list(spec.action_spaces),
        "observation_spaces": list(spec.observation_spaces),
        "parameters": [_as_json(one, texts) for one in parameters_of(spec.args)],
    }
    if spec.requires:
        described["requires"] = list(spec.requires)
    if spec.env_backend != "python":
        described["env_backend"] = spec.env_backend
    if not spec.exact:
        described["exact"] = False
    if spec.wrap is not None:
        described["wraps"] = True
    if spec.several_players:
        described["several_players"] = True
    if spec.masks:
        described["masks"] = True
    return described


def schema_of(spec: AlgorithmSpec) -> AlgoSchema:
    """What an algorithm takes, without the texts, which only people read."""
    return AlgoSchema(
        name=spec.name,
        help="",
        action_spaces=tuple(spec.action_spaces),
        observation_spaces=tuple(spec.observation_spaces),
        parameters=parameters_of(spec.args),
        requires=tuple(spec.requires),
        exact=spec.exact,
        wraps=spec.wrap is not None,
        several_players=spec.several_players,
        masks=spec.masks,
    )


def parameters_of(args_type: type) -> tuple[ParamSchema, ...]:
    """The fields of a dataclass as parameters, without their texts; UnclearField names one that is none."""
    hints = typing.get_type_hints(args_type, include_extras=True)
    return tuple(_parameter(field, hints[field.name]) for field in dataclasses.fields(args_type))


def _parameter(field: dataclasses.Field[Any], hint: Any) -> ParamSchema:
    kind, choices, optional, bounds = read_hint(hint)
    if kind not in KINDS:
        raise UnclearField(f"{field.name} is a {kind}, but must be one of {', '.join(KINDS)}")
    if field.default_factory is not dataclasses.MISSING:
        raise UnclearField(f"{field.name} has a default factory, but must have a plain default")
    return ParamSchema(
        name=field.name,
        type=typing.cast(Any, kind),
        default=None if field.default is dataclasses.MISSING else field.default,
        help="",
        choices=choices,
        minimum=bounds.minimum,
        maximum=bounds.maximum,
        optional=optional,
        runtime_only=field.name in RUNTIME_FIELDS,
    )


def _as_json(parameter: ParamSchema, texts: dict[str, str]) -> dict[str, Any]:
    """One parameter's entry; keys that say nothing are left out."""
    entry: dict[str, Any] = {
        "name": parameter.name,
        "type": parameter.type,
        "default": parameter.default,
        "help": texts.get(parameter.name, ""),
    }
    if parameter.choices:
        entry["choices"] = list(parameter.choices)
    for name in ("minimum", "maximum"):
        if getattr(parameter, name) is not None:
            entry[name] = getattr(parameter, name)
    return entry | {name: True for name in ("optional", "runtime_only") if getattr(parameter, name)}


def read_hint(hint: Any) -> tuple[str, tuple[Any, ...] | None, bool, Bounds]:
    """Type name, choices, whether null is allowed, and bounds of an annotation."""
    bounds = Bounds()
    if typing.get_origin(hint) is typing.Annotated:
        bounds = next((item for item in hint.__metadata__ if isinstance(item, Bounds)), bounds)
        hint = hint.__origin__
    optional = False
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(hint) if member is not type(None)]
        optional = len(members) < len(typing.get_args(hint))
        hint = members[0] if len(members) == 1 else hint
    if typing.get_origin(hint) is typing.Literal:
        choices = typing.get_args(hint)
        return type(choices[0]).__name__, choices, optional, bounds
    return getattr(hint, "__name__", str(hint)), None, optional, bounds


def field_texts(args_type: type) -> dict[str, str]:
    """The text under each field, of the class and its bases."""
    texts: dict[str, str] = {}
    for owner in reversed(args_type.__mro__[:-1]):
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        assert isinstance(node, ast.ClassDef)
        for field, text in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                texts[field.target.id] = " ".join(str(text.value.value).split())
    return texts
