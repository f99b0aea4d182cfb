"""The words along an axis, and numbers as they stand beside a curve."""

from __future__ import annotations

import math
from collections.abc import Sequence

_MINUS = "−"
_TIMES = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400)
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def step_ticks(values: Sequence[float], spacing: float) -> list[str]:
    """Steps with one unit for all: 0, 125k, 250k."""
    most = max((abs(value) for value in values), default=0.0)
    size, unit = next(((size, unit) for size, unit in _UNITS if most >= size), (1.0, ""))
    digits = _decimals(spacing / size)
    return [_plain(value / size, digits) + unit if value else "0" for value in values]


def value_ticks(values: Sequence[float], spacing: float) -> list[str]:
    """Values with as many decimals as tell them apart; very large or small ones with a power of ten."""
    most = max((abs(value) for value in values), default=0.0)
    if most >= 1e6 or (0 < most < 1e-4):
        return [f"{value:.3g}".replace("-", _MINUS) for value in values]
    return [_plain(value, _decimals(spacing)) for value in values]


def time_ticks(values: Sequence[float], spacing: float) -> list[str]:
    """Seconds as 0:30 or 1:05:00."""
    return [clock(value) for value in values]


def clock(seconds: float) -> str:
    """Seconds as 0:30 or 1:05:00."""
    whole = abs(round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    sign = _MINUS if seconds < 0 and whole else ""
    return f"{sign}{hours}:{minutes:02}:{rest:02}" if hours else f"{sign}{minutes}:{rest:02}"


def film_time(seconds: float, length: float) -> str:
    """Where a film is: 0.9 of 1.2 s, or 0:30 of 1:05."""
    if length < 60:
        return f"{seconds:.1f} of {length:.1f} s"
    return f"{clock(seconds)} of {clock(length)}"


def value_text(value: float) -> str:
    """One value beside a curve: four digits that mean something."""
    if not math.isfinite(value):
        return "not a number"
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-4:
        return f"{value:.3e}".replace("-", _MINUS)
    digits = 0 if size >= 10_000 else max(0, 3 - (math.floor(math.log10(size)) if size else 0))
    return _plain(value, min(digits, 6))


def place_text(value: float, axis: str) -> str:
    """A place on the axis in words."""
    if axis == "time":
        return f"after {clock(value)}"
    return f"batch {value:,.0f}" if axis == "batch" else f"step {value:,.0f}"


def _plain(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace("-", _MINUS)


def _decimals(spacing: float) -> int:
    if spacing <= 0:
        return 0
    digits = 0
    while digits < 6 and abs(spacing - round(spacing, digits)) > spacing * 1e-6:
        digits += 1
    return digits


def nice_times(low: float, high: float, most: int) -> tuple[float, list[float]]:
    """Whole seconds, minutes or hours between two ends, at most so many."""
    for spacing in _TIMES:
        first, last = math.ceil(low / spacing - 1e-9), math.floor(high / spacing + 1e-9)
        if last - first < most:
            return float(spacing), [float(index * spacing) for index in range(first, last + 1)]
    return nice_ticks(low, high, most)


def nice_ticks(low: float, high: float, most: int) -> tuple[float, list[float]]:
    """Round places between two ends, at most so many, and the distance between them."""
    span = high - low
    if not math.isfinite(span) or span <= 0 or most < 1:
        return 1.0, []
    power = 10.0 ** math.floor(math.log10(span / most))
    steps = (power * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0))
    spacing = next(step for step in steps if math.floor(high / step) - math.ceil(low / step) < most)
    first, last = math.ceil(low / spacing - 1e-9), math.floor(high / spacing + 1e-9)
    return spacing, [index * spacing for index in range(first, last + 1)]
