"""Numbers in environment variables: a wrong one is told in a sentence, wherever it is read."""

from __future__ import annotations

import math
import os

from mosaic.contract.errors import UserError

_MOST = 2**31 - 1


def number_variable(name: str, default: float, least: float = 0.0) -> float:
    """What the variable says, or the default where it says nothing."""
    try:
        number = float(os.environ.get(name, "").strip() or default)
    except ValueError:
        number = math.nan
    return _checked(name, number, least, "a number")


def whole_variable(name: str, default: int, least: int) -> int:
    """The same for a whole number."""
    number = _whole(os.environ.get(name, "").strip() or str(default))
    return int(_checked(name, math.nan if number is None else number, least, "a whole number"))


def _checked(name: str, number: float, least: float, what: str) -> float:
    if not least <= number <= _MOST:
        text = os.environ.get(name, "").strip()
        raise UserError(f"{name} is '{text:.40}', but must be {what} from {least:g}: correct or unset it.")
    return number


def list_variable(name: str) -> tuple[int, ...] | None:
    """Whole numbers from 0 with commas between, each once (`0,2`); None where it is not set."""
    text = os.environ.get(name)
    if text is None:
        return None
    numbers = [_whole(part.strip()) for part in text.split(",")] if text.strip() else []
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        raise UserError(f"{name} is '{text:.40}', but must be numbers such as 0,2: correct or unset it.")
    return tuple(dict.fromkeys(known))


def _whole(text: str) -> int | None:
    # Python reads other scripts' digits and underscores too, which nobody means here.
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    return number if 0 <= number <= _MOST else None
