"""What people type into a field, turned into a value, and a value shown as text."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from mosaic.contract.errors import UserError

if TYPE_CHECKING:
    from gym_gui.models.form_state import Field

Value = bool | int | float | str | None

_SCALES = {"": 1, "k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
_WORDS = dict.fromkeys(("on", "true", "yes", "1"), True) | dict.fromkeys(("off", "false", "no", "0"), False)
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
_NUMBER = re.compile(r"([+-]?[\d_]*\.?[\d_]*(?:e[+-]?\d{1,3})?)([kmb]?)")
_KINDS = {
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
    if isinstance(value, int | float) and not isinstance(value, bool) and not _inside(field, value):
        raise UserError(f"{field.title} is {plain}, but must be {allowed(field)}.")
    return value


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
    text = _KINDS.get(field.kind, "text")
    example = f", such as {_EXAMPLES[field.kind]}" if field.kind in _EXAMPLES else ""
    return text + _bounds(field) + example


def _bounds(field: Field) -> str:
    low, high = field.minimum, field.maximum
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    if low is not None:
        return f" of at least {low:g}"
    return "" if high is None else f" of at most {high:g}"


def _convert(kind: str, text: str) -> bool | int | float | str:
    if kind == "bool":
        if text.lower() not in _WORDS:
            raise ValueError(text)
        return _WORDS[text.lower()]
    if kind in ("int", "count"):
        number = _decimal(text)
        if number != number.to_integral_value():
            raise ValueError(text)
        return int(number)
    if kind == "float":
        return float(_decimal(text))
    if kind == "json" and not isinstance(json.loads(text), dict):
        raise ValueError(text)
    return text


def _decimal(text: str) -> Decimal:
    """A number, also as `500k`, `1e6`, `1_000` or `500,000`; a comma that groups nothing is no number."""
    plain = text.replace(",", "") if _GROUPED.fullmatch(text) else text
    match = _NUMBER.fullmatch(plain.lower())
    try:
        return Decimal(match[1].replace("_", "")) * _SCALES[match[2]] if match else Decimal("x")
    except InvalidOperation:
        raise ValueError(text) from None


def _inside(field: Field, value: float) -> bool:
    low, high = field.minimum, field.maximum
    return (low is None or value >= low) and (high is None or value <= high)
