"""The fields of a form: what is typed into each, whether that is right, and whether it is a change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gym_gui.models.parsing import Value, parse, show
from mosaic.contract.capabilities import BoundedParameter, Parameter
from mosaic.contract.errors import UserError


@dataclass(frozen=True)
class Field:
    """One thing that can be chosen or typed."""

    name: str
    kind: str = "str"
    """`bool`, `int`, `count` (a large number), `float`, `str`, `json` or `secret`."""
    default: Value = ""
    help: str = ""
    label: str = ""
    choices: tuple[Value, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    optional: bool = False
    """Whether it may be empty, which means none."""
    placeholder: str = ""
    """What holds while it is empty."""

    @property
    def title(self) -> str:
        return self.label or self.name

    @classmethod
    def of(cls, parameter: Parameter) -> Field:
        """The field of an algorithm's parameter."""
        bounded = parameter if isinstance(parameter, BoundedParameter) else None
        return cls(
            name=parameter.name,
            kind="count" if parameter.type == "int" and _is_large(parameter.default) else parameter.type,
            default=parameter.default,
            help=parameter.help,
            choices=tuple(bounded.choices or ()) if bounded else (),
            minimum=bounded.minimum if bounded else None,
            maximum=bounded.maximum if bounded else None,
            optional=bounded.optional if bounded else parameter.default is None,
            placeholder="none" if bounded and bounded.optional else "",
        )


class FormState:
    """The texts of some fields. What was never touched has its default."""

    def __init__(self, fields: Iterable[Field]) -> None:
        self.fields = {field.name: field for field in fields}
        self._texts: dict[str, str] = {}

    def text(self, name: str) -> str:
        """What stands in a field."""
        field = self.fields[name]
        return self._texts.get(name, show(field.default, field.kind))

    def default_text(self, name: str) -> str:
        """What would stand there by default; empty is told in words."""
        field = self.fields[name]
        return show(field.default, field.kind) or field.placeholder or "empty"

    def set_default(self, name: str, value: Value) -> None:
        """Give a field another default; what was typed stays."""
        self.fields[name] = replace(self.fields[name], default=value)

    def set(self, name: str, text: str) -> None:
        """Take what was typed."""
        self._texts[name] = text

    def put(self, name: str, value: Value) -> None:
        """Take a value, as from a config."""
        self._texts[name] = show(value, self.fields[name].kind)

    def reset(self, *names: str) -> None:
        """Back to the default: these fields, or without names all."""
        for name in names or tuple(self.fields):
            self._texts.pop(name, None)

    def value(self, name: str) -> Value:
        """What a field means; UserError when it means nothing."""
        if name not in self._texts:
            return self.fields[name].default
        return parse(self.fields[name], self._texts[name])

    def whole(self, name: str) -> int | None:
        """The whole number in a field; None when it is empty."""
        value = self.value(name)
        return value if isinstance(value, int) else None

    def number(self, name: str) -> float | None:
        """The number in a field; None when it is empty."""
        value = self.value(name)
        return float(value) if isinstance(value, int | float) else None

    def is_on(self, name: str) -> bool:
        return self.value(name) is True

    def said(self, name: str) -> str:
        """The text of a field without the blanks around it."""
        return self.text(name).strip()

    def problem(self, name: str) -> str:
        """What is wrong with a field, in a sentence; empty when nothing is."""
        try:
            self.value(name)
        except UserError as error:
            return str(error)
        return ""

    def problems(self) -> list[str]:
        """All that is wrong."""
        return [problem for name in self.fields if (problem := self.problem(name))]

    def is_changed(self, name: str) -> bool:
        """Whether a field has another value than its default, however that is written."""
        if name not in self._texts:
            return False
        try:
            value = self.value(name)
        except UserError:
            return True
        default = self.fields[name].default
        return value != default and not (value in ("", None) and default in ("", None))

    def changed(self) -> list[str]:
        return [name for name in self.fields if self.is_changed(name)]

    def changes(self) -> dict[str, Value]:
        """The values that differ from their defaults."""
        return {name: self.value(name) for name in self.changed()}


def _is_large(value: object) -> bool:
    return isinstance(value, int) and value >= 10_000
