"""The actions of an environment as something to press, to move or to type."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from mosaic.client.playing import ARROWS, Choices

_SLIDER_STEPS = 200
_MOST_BUTTONS = 18
_FIRST_KEYS = 10


@dataclass(frozen=True)
class Choice:
    """One action out of a few, with the words and the keys for it."""

    action: int
    word: str
    keys: str


@dataclass(frozen=True)
class Field:
    """One number of an action that has several."""

    name: str
    low: float | None
    high: float | None
    whole: bool

    @property
    def bounded(self) -> bool:
        return self.low is not None and self.high is not None

    @property
    def steps(self) -> int:
        """How many steps a slider has from its low end to its high one."""
        return round(self._room()) if self.whole else _SLIDER_STEPS

    def at(self, step: int) -> float:
        """The number at a slider's place."""
        assert self.low is not None
        value = self.low + self._room() * step / max(1, self.steps)
        return round(value) if self.whole else value

    def step_of(self, value: float) -> int:
        """The place of a number on a slider; one beyond its ends is at the end."""
        assert self.low is not None
        room = self._room()
        share = (value - self.low) / room if room else 0.0
        return round(min(1.0, max(0.0, share)) * self.steps)

    def _room(self) -> float:
        assert self.low is not None and self.high is not None
        return self.high - self.low


class ActionSpace:
    """What `init` of a session says of its actions: `choices` to press, or `fields` to set."""

    def __init__(self, space: Mapping[str, Any]) -> None:
        self._names = Choices(space)
        count = int(space.get("n", 0)) if self._names.discrete else 0
        self.choices = (
            tuple(self._choice(number) for number in range(count)) if count <= _MOST_BUTTONS else ()
        )
        self._shape: list[int] = []
        self.fields = () if self.choices else tuple(self._fields(space, count))

    def by_key(self, key: str) -> int | None:
        """The action that a key (`0` to `9`, `left`, `up` …) stands for; None when it stands for none."""
        return self._names.by_key(key)

    def name(self, action: Any) -> str:
        """An action as a person reads it."""
        return self._names.name(action)

    def build(self, values: Sequence[float]) -> Any:
        """The action that the numbers of all fields make."""
        pairs = zip(self.fields, values, strict=True)
        numbers: list[Any] = [round(value) if one.whole else value for one, value in pairs]
        if not self._shape:
            return numbers[0]
        for size in reversed(self._shape[1:]):
            numbers = [numbers[start : start + size] for start in range(0, len(numbers), size)]
        return numbers

    def numbers(self, action: Any) -> list[float]:
        """The numbers of an action in the order of the fields."""
        return list(_flat(action))

    def _choice(self, number: int) -> Choice:
        action = self._names.first + number
        signs = [ARROWS[arrow] for arrow, meant in self._names.arrows.items() if meant == action]
        digit = [str(number)] if number < _FIRST_KEYS else []
        word = self._names.name(action).removeprefix(str(action)).strip()
        return Choice(action, word or f"action {action}", " ".join(digit + signs))

    def _fields(self, space: Mapping[str, Any], count: int) -> Iterator[Field]:
        if count:
            first = self._names.first
            yield Field("action", first, first + count - 1, whole=True)
            return
        if space["kind"] == "multi_discrete":
            sizes = list(_flat(space["nvec"]))
            self._shape = _shape(space["nvec"])
            bounds = [(0.0, size - 1) for size in sizes]
        elif space["kind"] == "multi_binary":
            self._shape = list(space["shape"])
            bounds = [(0.0, 1.0)] * math.prod(self._shape)
        else:
            self._shape = list(space["shape"])
            bounds = _box_bounds(space, math.prod(self._shape))
        whole = space["kind"] != "box" or "int" in str(space.get("dtype", ""))
        names = (", ".join(map(str, place)) for place in product(*map(range, self._shape)))
        for name, (low, high) in zip(names, bounds, strict=True):
            yield Field(f"action {name}".strip(), low, high, whole)


def _box_bounds(space: Mapping[str, Any], count: int) -> list[tuple[Any, Any]]:
    ends = []
    for name in ("low", "high"):
        given = list(_flat(space.get(name)))
        given = given * count if len(given) == 1 else given
        ends.append([value if value is not None and abs(value) < 1e30 else None for value in given])
    return list(zip(*ends, strict=True))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _shape(value: Any) -> list[int]:
    return [len(value), *_shape(value[0])] if isinstance(value, list) and value else []
