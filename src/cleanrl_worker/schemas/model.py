"""The shape of a schema: an algorithm, its parameters, the spaces it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

ParamType = Literal["bool", "int", "float", "str"]


@dataclass(frozen=True)
class ParamSchema:
    """One parameter; `optional` ones may be null, `runtime_only` ones are filled in by the run itself."""

    name: str
    type: ParamType
    default: bool | int | float | str | None
    help: str
    choices: tuple[bool | int | float | str, ...] | None = None
    minimum: float | None = None
    maximum: float | None = None
    optional: bool = False
    runtime_only: bool = False

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ParamSchema:
        choices = data.get("choices")
        return cls(**{**data, "choices": None if choices is None else tuple(choices)})


@dataclass(frozen=True)
class AlgoSchema:
    """One algorithm's parameters in the order of its file, and the kinds of spaces it can train on."""

    name: str
    help: str
    action_spaces: tuple[str, ...]
    observation_spaces: tuple[str, ...]
    parameters: tuple[ParamSchema, ...]
    requires: tuple[str, ...] = ()
    """The optional sets that it needs installed."""

    def parameter(self, name: str) -> ParamSchema | None:
        """The parameter called `name`, or None; hyphens and underscores are the same."""
        wanted = name.replace("-", "_")
        return next((parameter for parameter in self.parameters if parameter.name == wanted), None)

    @classmethod
    def from_json(cls, name: str, data: Mapping[str, Any]) -> AlgoSchema:
        return cls(
            name=name,
            help=data["help"],
            action_spaces=tuple(data["action_spaces"]),
            observation_spaces=tuple(data["observation_spaces"]),
            parameters=tuple(ParamSchema.from_json(parameter) for parameter in data["parameters"]),
            requires=tuple(data.get("requires", ())),
        )
