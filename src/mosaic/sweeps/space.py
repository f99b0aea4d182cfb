"""The search space: which parameters are searched, where and when; and spaces that are known to be good."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mosaic.contract.errors import closest

Value = bool | int | float | str
Complain = Callable[[str], None]
"""Told of each problem in a sentence."""

_KEYS = ("low", "high", "log", "step", "choices", "when")
_SPACES = Path(__file__).with_name("spaces.toml")
ALGO = "algo"
"""The name of the choice between several algorithms."""


@dataclass(frozen=True)
class Parameter:
    """A parameter with what it may be: `choices`, or numbers from `low` to `high`."""

    name: str
    whole: bool = False
    low: float | None = None
    high: float | None = None
    log: bool = False
    step: float | None = None
    choices: tuple[Value, ...] = ()
    when: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    """It is searched only where the parameters named here have one of these values."""
    algo: str = ""
    """It is one of this algorithm; empty where there is only one."""

    @property
    def key(self) -> str:
        """Its name in the study, where two algorithms may have parameters of one name."""
        return f"{self.algo}.{self.name}" if self.algo else self.name

    def corners(self) -> list[Value]:
        """The values to check: where they fit, those between fit too."""
        if self.choices:
            return list(self.choices)
        assert self.low is not None and self.high is not None
        return [self._typed(self.low), self._typed(self.high)]

    def count(self) -> int | None:
        """How many values there are; None when there is no end to them."""
        if self.choices:
            return len(self.choices)
        assert self.low is not None and self.high is not None
        step = self.step or (1 if self.whole and not self.log else None)
        return None if step is None else math.floor((self.high - self.low) / step + 1e-9) + 1

    def values(self) -> list[Value]:
        """All that it may be, where there is an end to it."""
        if self.choices:
            return list(self.choices)
        assert self.low is not None
        return [self._typed(self.low + (self.step or 1) * index) for index in range(self.count() or 0)]

    def holds(self, value: Any) -> bool:
        """Whether it may be this."""
        if self.choices:
            return any(
                value == one and isinstance(value, bool) == isinstance(one, bool) for one in self.choices
            )
        assert self.low is not None and self.high is not None
        if not is_number(value) or not self.low <= value <= self.high:
            return False
        places = (value - self.low) / (self.step or 1)
        return (not self.whole or value == int(value)) and (
            not self.step or abs(places - round(places)) < 1e-9
        )

    def is_wanted(self, chosen: Mapping[str, Any]) -> bool:
        """Whether it is searched, given what was chosen before."""
        if self.algo and chosen.get(ALGO) != self.algo:
            return False
        return all(chosen.get(name) in values for name, values in self._conditions())

    def _conditions(self) -> Iterator[tuple[str, tuple[Value, ...]]]:
        for name, values in self.when.items():
            yield (f"{self.algo}.{name}" if self.algo and name != ALGO else name), values

    def _typed(self, value: float) -> Value:
        return int(value) if self.whole else float(value)

    def distribution(self) -> dict[str, Any]:
        """What it may be, as a `Study` tells it."""
        if self.choices:
            return {"choices": list(self.choices)}
        return {name: getattr(self, name) for name in ("low", "high", "log", "step", "whole")}

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Parameter:
        when = {name: tuple(values) for name, values in told["when"].items()}
        return cls(**{**told, "choices": tuple(told["choices"]), "when": when})


def parse_space(
    table: Mapping[str, Any],
    types: Mapping[str, str],
    complain: Complain,
    algo: str = "",
    place: str = "space",
) -> list[Parameter]:
    """The parameters of a `[space]`, those that others depend on first; each problem is complained of.

    `types` are those of the algorithm's parameters, as far as they are known.
    """
    found = [
        one
        for name, told in table.items()
        if (one := _parameter(name, told, types.get(name), complain, algo, f"{place}.{name}")) is not None
    ]
    return _ordered(found, complain, place)


def _parameter(
    name: str, told: Any, kind: str | None, complain: Complain, algo: str, place: str
) -> Parameter | None:
    if isinstance(told, list):
        told = {"choices": told}
    if not isinstance(told, Mapping):
        complain(
            f"'{place}' is {told!r:.60}, but must be a list of choices or a table such as "
            "{ low = 1e-5, high = 1e-2, log = true }; one value belongs to [set]."
        )
        return None
    unknown = [key for key in told if key not in _KEYS]
    for key in unknown:
        hint = closest(key, _KEYS) or f"; it takes {', '.join(_KEYS)}."
        complain(f"'{place}' has no setting '{key}'{hint}")
    when = _when(told.get("when", {}), complain, place)
    if unknown or when is None:
        return None
    if "choices" in told:
        choices = told["choices"]
        if len(told) > 1 + ("when" in told):
            complain(f"'{place}' has choices and a range: give one of them.")
        elif not isinstance(choices, list) or not all(isinstance(one, Value) for one in choices):
            complain(f"'{place}.choices' must be a list of numbers, texts or truth values.")
        elif not choices:
            complain(f"'{place}.choices' is empty: name at least one value.")
        elif len(set(map(repr, choices))) < len(choices):
            complain(f"'{place}.choices' names a value twice: name each once.")
        else:
            return Parameter(name, choices=tuple(choices), when=when, algo=algo)
        return None
    return _range(name, told, kind, complain, algo, place, when)


def _range(
    name: str,
    told: Mapping[str, Any],
    kind: str | None,
    complain: Complain,
    algo: str,
    place: str,
    when: Mapping[str, tuple[Value, ...]],
) -> Parameter | None:
    for key in ("low", "high", "step"):
        value = told.get(key)
        if value is None and key != "step":
            complain(f"'{place}' has no '{key}': a range needs low and high.")
            return None
        if value is not None and not is_number(value):
            complain(f"'{place}.{key}' is {value!r:.60}, but must be a number.")
            return None
    low, high, step, log = told["low"], told["high"], told.get("step"), told.get("log", False)
    given = [value for value in (low, high, step) if value is not None]
    whole = kind == "int" or (kind is None and all(isinstance(value, int) for value in given))
    problem = ""
    if kind in ("bool", "str"):
        problem = (
            f"is a range, but {name} is {'true or false' if kind == 'bool' else 'text'}: list its choices"
        )
    elif not isinstance(log, bool):
        problem = f"has log = {log!r:.20}, but it must be true or false"
    elif low >= high:
        problem = f"is empty: its low end {low:g} is not below its high end {high:g}"
    elif whole and any(value != int(value) for value in given):
        problem = f"must be of whole numbers, because {name} is one"
    elif log and low <= 0:
        problem = f"is logarithmic, but begins at {low:g}: start above 0"
    elif log and step is not None and not (whole and step == 1):
        problem = "is logarithmic and has a step: give one of them"
    elif step is not None and not 0 < step <= high - low:
        problem = f"has the step {step:g}, but it must be above 0 and at most {high - low:g}"
    if problem:
        complain(f"'{place}' {problem}.")
        return None
    return Parameter(name, whole, low, high, log, None if log else step, when=when, algo=algo)


def _when(told: Any, complain: Complain, place: str) -> dict[str, tuple[Value, ...]] | None:
    if not isinstance(told, Mapping):
        complain(f"'{place}.when' must be a table such as {{ anneal_lr = true }}.")
        return None
    return {name: tuple(value) if isinstance(value, list) else (value,) for name, value in told.items()}


def _ordered(found: Sequence[Parameter], complain: Complain, place: str) -> list[Parameter]:
    """Each after those that its conditions name."""
    by_name, ordered = {one.name: one for one in found}, list[Parameter]()
    for one in found:
        for name, values in one.when.items():
            if name == ALGO:
                continue
            if name not in by_name:
                complain(
                    f"'{place}.{one.name}.when' names '{name}', which is not searched"
                    f"{closest(name, by_name) or '.'}"
                )
                return list(found)
            other = by_name[name]
            if other.count() is None:
                complain(
                    f"'{place}.{one.name}.when' names '{name}', which may be any number of a range: a "
                    "condition needs choices or steps."
                )
            elif not any(other.holds(value) for value in values):
                told = f"{values[0]!r:.60}" if values else "nothing"
                complain(f"'{place}.{one.name}.when' can never hold: {name} is never {told}.")
    left = list(found)
    while left:
        ready = [one for one in left if not any(other.name in one.when for other in left)]
        if not ready:
            complain(f"'{place}': the conditions of {left[0].name} and {left[-1].name} depend on each other.")
            return list(found)
        ordered += ready
        left = [one for one in left if one not in ready]
    return ordered


def is_number(value: Any) -> bool:
    """Whether it is a number that can be computed with, and no truth value."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        # A whole number of hundreds of digits.
        return False


def params_for(space: Sequence[Parameter], chosen: Mapping[str, Any], algo: str) -> dict[str, Any]:
    """The parameters of an algorithm among what was chosen, by their own names."""
    return {
        one.name: chosen[one.key]
        for one in space
        if one.key in chosen and one.key != ALGO and one.algo in ("", algo)
    }


@dataclass(frozen=True)
class KnownSpace:
    """A search space that is known to be good, and where it comes from."""

    space: Mapping[str, Any]
    source: str


@cache
def known_spaces() -> Mapping[str, KnownSpace]:
    """The spaces that come with MOSAIC, by algorithm."""
    found = {}
    for family in tomllib.loads(_SPACES.read_text())["family"]:
        for algo in family["algorithms"]:
            space = {**family["space"], **family.get("only", {}).get(algo, {})}
            found[algo] = KnownSpace(space, family["source"])
    return found
