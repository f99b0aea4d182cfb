"""Numbers, seeds and truth values as people type them, on the command line, in the window and in settings."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from mosaic.contract.errors import UserError

SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
"""Units of time."""
TRUTH = dict.fromkeys(("on", "true", "yes", "1"), True) | dict.fromkeys(("off", "false", "no", "0"), False)
_SCALES = {"": 1, "k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
_NUMBER = re.compile(r"([+-]?[\d_]*\.?[\d_]*(?:e[+-]?\d{1,3})?)([kmb]?)")
_BEYOND = Decimal(10) ** 100
_SEEDS = re.compile(r"(\d+)(?:\s*[-–]\s*(\d+))?")
_MOST_SEEDS = 1000


def parse_decimal(text: str) -> Decimal:
    """A number, also as `500k`, `1e6`, `1_000` or `500,000`, where a comma must group; else a ValueError."""
    plain = text.strip().lower()
    match = _NUMBER.fullmatch(plain.replace(",", "") if _GROUPED.fullmatch(plain) else plain)
    try:
        return Decimal(match[1].replace("_", "")) * _SCALES[match[2]] if match else Decimal("x")
    except InvalidOperation:
        raise ValueError(text) from None


def parse_whole(text: str) -> int:
    """A whole number in the same ways; else a ValueError."""
    value = parse_decimal(text)
    if abs(value) >= _BEYOND or value != value.to_integral_value():
        raise ValueError(text)
    return int(value)


def is_inside(value: float, low: float | None, high: float | None) -> bool:
    """Whether a number lies between two bounds, of which either may be missing."""
    return (low is None or value >= low) and (high is None or value <= high)


def bounds_text(low: float | None, high: float | None) -> str:
    """` from 0 to 1`, ` of at least 1`, or nothing: what follows the kind of a number."""
    if low is not None and high is not None:
        return f" from {low:.10g} to {high:.10g}"
    if low is not None:
        return f" of at least {low:g}"
    return "" if high is None else f" of at most {high:g}"


def parse_seeds(text: str, wrong: str) -> tuple[int, ...]:
    """Seeds such as `1-5`, `1,3,7` or `1-3,10`; a UserError says `wrong`, or which one stands there twice."""
    plain = text.strip()
    found: dict[int, None] = {}
    for part in re.split(r"[,;]", plain.strip(",;")):
        match = _SEEDS.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise UserError(wrong)
        if last - first >= _MOST_SEEDS or len(found) >= _MOST_SEEDS:
            raise UserError(f"'{plain}' is more than {_MOST_SEEDS:,} seeds: start fewer runs at once.")
        for seed in range(first, last + 1):
            if seed in found:
                raise UserError(f"'{plain}' names seed {seed} more than once: name each once.")
            found[seed] = None
    return tuple(found)
