"""Observations and opinions of a policy as rows and bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_MOST_ROWS = 16


@dataclass(frozen=True)
class Row:
    """A name and a value."""

    name: str
    value: str


@dataclass(frozen=True)
class Bar:
    """What a policy makes of one action."""

    text: str
    share: float
    """How long the bar is, from 0 to 1."""
    chosen: bool
    """Whether the policy takes it next."""


def number(value: Any) -> str:
    """A number with three digits after the point; a whole one as it is; a dash for none."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".replace("-", "−")


def observation_rows(observation: Any, name: str = "") -> list[Row]:
    """A row for each number, for each part of a dictionary; the size of what is too much to read."""
    if isinstance(observation, dict):
        return [row for part, value in observation.items() for row in observation_rows(value, str(part))]
    if not isinstance(observation, list):
        return [Row(name or "value", number(observation))]
    sizes = _sizes(observation)
    if len(sizes) > 1:
        return [Row(name or "array", " × ".join(map(str, sizes)))]
    shown = [
        Row(f"{name} {place}".strip(), number(value)) for place, value in enumerate(observation[:_MOST_ROWS])
    ]
    left = len(observation) - len(shown)
    return [*shown, Row("…", f"{left} more")] if left else shown


def bars(following: dict[str, Any], actions: Sequence[int]) -> list[Bar]:
    """A bar for each action out of `next` of a message; empty where it has no numbers for them."""
    chances, values = following.get("probabilities"), following.get("action_values")
    told = chances or values
    if not isinstance(told, list) or len(told) != len(actions) or any(isinstance(one, list) for one in told):
        return []
    numbers = [0.0 if one is None else float(one) for one in told]
    low, room = min(numbers), max(numbers) - min(numbers)
    shares = numbers if chances else [(one - low) / room if room else 0.0 for one in numbers]
    texts = [f"{100 * one:.0f} %" if chances else number(one) for one in numbers]
    chosen = following["action"]
    return [
        Bar(text, share, action == chosen) for action, text, share in zip(actions, texts, shares, strict=True)
    ]


def _sizes(value: Any) -> list[int]:
    return [len(value), *(_sizes(value[0]) if value else [])] if isinstance(value, list) else []
