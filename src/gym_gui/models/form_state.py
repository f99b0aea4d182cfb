"""The fields of a form: what is typed into each, what it means, and whether that is right and a change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from mosaic.contract import numbers
from mosaic.contract.capabilities import ParamSchema
from mosaic.contract.errors import UserError
from mosaic.contract.outside import parse_json
from mosaic.contract.words import count

Value = bool | int | float | str | None

_KIND_WORDS = {
    "bool": "on or off",
    "int": "a whole number",
    "count": "a whole number",
    "float": "a number",
    "json": "a JSON object",
}
_EXAMPLES = {"count": "50,000 or 500k", "json": '{"gravity": 5.0}'}


def parse(field: Field, text: str) -> Value:
    """The value in a text; a UserError says what the field takes."""
    plain = text.strip()
    if not plain:
        if field.optional or field.kind in ("str", "secret", "json"):
            return None if field.optional else ""
        raise UserError(f"{field.title} is empty, but must be {allowed(field)}.")
    try:
        value = _convert(field.kind, plain)
    except ValueError:
        raise UserError(f"{field.title} is '{plain}', but must be {allowed(field)}.") from None
    if field.choices and value not in field.choices:
        raise UserError(f"{field.title} is '{plain}', but must be {allowed(field)}.")
    outside = isinstance(value, int | float) and not numbers.is_inside(value, field.minimum, field.maximum)
    if outside and not isinstance(value, bool):
        raise UserError(f"{field.title} is {plain}, but must be {allowed(field)}.")
    return value


def problem_in(read: Callable[[], object]) -> str:
    """What a UserError says that comes of reading something; empty when none does."""
    try:
        read()
    except UserError as error:
        return str(error)
    return ""


def show(value: Value, kind: str = "str") -> str:
    """A value as a field shows it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and kind == "count":
        return f"{value:,}"
    return str(value)


def allowed(field: Field) -> str:
    """What a field takes, in words."""
    if field.choices:
        return "one of " + ", ".join(show(choice) for choice in field.choices)
    text = _KIND_WORDS.get(field.kind, "text")
    example = f", such as {_EXAMPLES[field.kind]}" if field.kind in _EXAMPLES else ""
    return text + numbers.bounds_text(field.minimum, field.maximum) + example


def _convert(kind: str, text: str) -> bool | int | float | str:
    if kind == "bool":
        if text.lower() not in numbers.TRUTH:
            raise ValueError(text)
        return numbers.TRUTH[text.lower()]
    if kind in ("int", "count"):
        return numbers.parse_whole(text)
    if kind == "float":
        return float(numbers.parse_decimal(text))
    if kind == "json" and not isinstance(parse_json(text), dict):
        raise ValueError(text)
    return text


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
    def maybe(
        cls,
        name: str,
        kind: str = "str",
        help: str = "",
        label: str = "",
        placeholder: str = "",
        minimum: float | None = None,
        maximum: float | None = None,
    ) -> Field:
        """A field that is empty by default; `placeholder` says what holds then."""
        return cls(name, kind, None, help, label, (), minimum, maximum, True, placeholder)

    @classmethod
    def of(cls, parameter: ParamSchema) -> Field:
        """The field of an algorithm's parameter."""
        large = isinstance(parameter.default, int) and parameter.default >= 10_000
        return cls(
            name=parameter.name,
            kind="count" if parameter.type == "int" and large else parameter.type,
            default=parameter.default,
            help=parameter.help,
            choices=parameter.choices or (),
            minimum=parameter.minimum,
            maximum=parameter.maximum,
            optional=parameter.optional,
            placeholder="none" if parameter.optional else "",
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
        return problem_in(lambda: self.value(name))

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


def parse_seeds(text: str) -> tuple[int, ...]:
    """The seeds in a text; a UserError says how to write them, or which one stands there twice."""
    wrong = f"Seeds are '{text.strip()}', but must be written as 1, as 1, 2, 3 or as 1-5."
    return numbers.parse_seeds(text, wrong)


def show_seeds(seeds: Sequence[int]) -> str:
    """Seeds in the shortest way to write them."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]}-{seeds[-1]}"
    return ", ".join(map(str, seeds))


def seeds_problem(text: str) -> str:
    """What is wrong with a text of seeds; empty when nothing is."""
    return problem_in(lambda: parse_seeds(text))


def about_seeds(text: str) -> str:
    """How many runs a text of seeds means; empty when it cannot be read."""
    if seeds_problem(text):
        return ""
    return count(len(parse_seeds(text)), "run")
