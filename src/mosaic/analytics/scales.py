"""The axes of a chart: round places with their words, and which piece of one is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from mosaic.contract import words

_MINUS = "−"
_TIMES = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400)
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_MOST_DECIMALS = 12
_SMALLEST = 1e-5
"""The smallest share of an axis that can be zoomed into."""

Piece = tuple[float, float]


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
        # As many figures as tell one from the next.
        digits = max(1, 1 + math.ceil(math.log10(most / spacing))) if spacing > 0 else 3
        return [f"{value:.{digits}g}".replace("-", _MINUS) for value in values]
    return [_plain(value, _decimals(spacing)) for value in values]


def time_ticks(values: Sequence[float], spacing: float) -> list[str]:
    """Seconds as 0:30 or 1:05:00; where they are too long, 0.2 s."""
    if spacing < 1:
        return [f"{_plain(value, _decimals(spacing))} s" for value in values]
    return [clock(value) for value in values]


def clock(seconds: float) -> str:
    """Seconds as 0:30 or 1:05:00."""
    whole = abs(round(seconds))
    return f"{_MINUS if seconds < 0 and whole else ''}{words.clock(whole)}"


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
    while digits < _MOST_DECIMALS and abs(spacing - round(spacing, digits)) > spacing * 1e-6:
        digits += 1
    return digits


def nice_times(low: float, high: float, most: int) -> tuple[float, list[float]]:
    """Whole seconds, minutes or hours between two ends, at most so many."""
    for spacing in _TIMES:
        first, last = math.ceil(low / spacing - 1e-9), math.floor(high / spacing + 1e-9)
        if last <= first:
            break
        if last - first < most:
            return float(spacing), [float(index * spacing) for index in range(first, last + 1)]
    return nice_ticks(low, high, most)


def nice_steps(low: float, high: float, most: int) -> tuple[float, list[float]]:
    """Round places that are whole numbers: there is no step or batch between two of them."""
    spacing, found = nice_ticks(low, high, most)
    if spacing.is_integer():
        return spacing, found
    whole = 1.0 if spacing < 1.0 else 5.0
    places = [index * whole for index in range(math.ceil(low / whole), math.floor(high / whole) + 1)]
    return (whole, places) if len(places) > 1 else (spacing, found)


def nice_ticks(low: float, high: float, most: int) -> tuple[float, list[float]]:
    """Round places between two ends, at most so many, and the distance between them."""
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return 1.0, []
    most = max(2, most)
    power = 10.0 ** math.floor(math.log10(span / most))
    found = 1.0, list[float]()
    for factor in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0):
        spacing = power * factor
        first, last = math.ceil(low / spacing - 1e-9), math.floor(high / spacing + 1e-9)
        # One place alone gives no scale: then rather more of them than there is room for.
        if last > first or not found[1]:
            found = spacing, [index * spacing for index in range(first, last + 1)]
        if last - first < most:
            break
    return found


def log_ticks(low: float, high: float, most: int) -> tuple[float, list[float]]:
    """Round places between two powers of ten, as powers: whole ones, or 1, 2 and 5 where there are few."""
    spacing, found = nice_ticks(low, high, most)
    whole = [float(power) for power in range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)]
    if len(whole) >= 3:
        stride = -(-len(whole) // most)
        return float(stride), whole[::stride]
    powers = range(math.floor(low), math.ceil(high) + 1)
    parts = [math.log10(factor) + power for power in powers for factor in (1, 2, 5)]
    inside = [part for part in parts if low <= part <= high]
    if len(inside) >= 2:
        return 1.0, inside
    # So small a piece is as good as even.
    _, values = nice_ticks(ten_to(low), ten_to(high), most)
    return spacing, [math.log10(value) for value in values if value > 0] or found


def log_step_ticks(values: Sequence[float], spacing: float) -> list[str]:
    """Powers of ten as steps, each with its own unit: 100, 1k, 20k."""
    return [step_ticks([number], number)[0] for number in map(ten_to, values)]


def log_time_ticks(values: Sequence[float], spacing: float) -> list[str]:
    """Powers of ten as seconds."""
    return [clock(ten_to(value)) for value in values]


def ten_to(value: float) -> float:
    """Ten to a power; an axis that has just become logarithmic may still ask for its old range."""
    return math.pow(10.0, min(max(value, -300.0), 300.0))


def log_value_ticks(values: Sequence[float], spacing: float) -> list[str]:
    """Powers of ten as values, each with the decimals that it needs."""
    found = [ten_to(value) for value in values]
    if len(found) > 1 and max(found) < 2 * min(found):
        # They lie so near to each other that they are as good as even.
        return value_ticks(found, float(f"{min(abs(b - a) for a, b in pairwise(found)):.3g}"))
    return [_power_text(value) for value in found]


def _power_text(value: float) -> str:
    if 1e-4 <= value < 1:
        return f"{value:.6f}".rstrip("0")
    return f"{value:,.10g}" if 1 <= value < 1e6 else f"{value:.3g}".replace("-", _MINUS)


def zoomed(piece: Piece, whole: Piece) -> Piece | None:
    """A piece as far as it lies in the whole, and not too small to be seen; None stands for all of it."""
    low, high = max(min(piece), whole[0]), min(max(piece), whole[1])
    if (low, high) == whole:
        return None
    return low, max(high, low + (whole[1] - whole[0]) * _SMALLEST)


def moved(piece: Piece, by: float, whole: Piece) -> Piece | None:
    """The piece of the same length further on; it stops at the ends."""
    by = min(max(by, whole[0] - piece[0]), whole[1] - piece[1])
    return zoomed((piece[0] + by, piece[1] + by), whole)


def scaled(piece: Piece, factor: float, around: float | None, whole: Piece) -> Piece | None:
    """A piece `factor` times as long, in which the place `around`, or its middle, stays where it is."""
    fixed = sum(piece) / 2 if around is None else around
    return zoomed((fixed - (fixed - piece[0]) * factor, fixed + (piece[1] - fixed) * factor), whole)
