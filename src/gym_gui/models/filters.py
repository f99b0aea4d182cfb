"""Which runs are shown: a state, words, and conditions such as `return>400`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from gym_gui.models import words
from gym_gui.models.compare import settings_of
from gym_gui.models.run_values import ALIASES, NUMBERS, TEXTS
from mosaic.client import RunRecord

STATES = ("all", "running", "waiting", "failed")
HINT = "Words, or: algo=ppo  env:cart  tag=x  seed=1  state=failed  return>400  age<2d  learning_rate=0.01"
"""What may be written, in a line."""
_RUNNING = frozenset({"HSHK", "RDY", "EXEC", "PAUSE"})
_FAILED = frozenset({"failed", "timed_out"})
_TERM = re.compile(r"(?P<name>[A-Za-z_][\w.-]*)(?P<how>!=|>=|<=|=|>|<|:)(?P<value>.*)")
_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(k|m|g|s|min|h|d|%)?", re.IGNORECASE)
_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9, "s": 1, "min": 60, "h": 3600, "d": 86400, "%": 0.01}

Settings = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class Term:
    """One condition: a name, how, and a value; a plain word has no name."""

    name: str
    how: str
    value: str

    @cached_property
    def number(self) -> float | None:
        return parse_number(self.value)

    @property
    def problem(self) -> str:
        """What is wrong with it, in a sentence; empty when nothing is."""
        compares = self.how in (">", ">=", "<", "<=")
        if self.value and self.number is None and (compares or (self.how != ":" and self.name in NUMBERS)):
            return f"'{self.value}' is not a number: write {self.name}{self.how}400, 10k, 5min or 2d."
        return ""

    def fits(self, run: RunRecord, text: str, settings: Settings) -> bool:
        """Whether the run is one of those that it means; `text` is the run's `search_text`."""
        if not self.name:
            return self.value in text
        if not self.value:
            return True
        if self.name == "tag":
            return self._fits_any([tag.lower() for tag in run.tags])
        if self.name in TEXTS:
            return self._fits_any([str(TEXTS[self.name](run)).lower()])
        value = NUMBERS[self.name](run) if self.name in NUMBERS else settings().get(self.name)
        if isinstance(value, bool):
            value = "true" if value else "false"
        if isinstance(value, int | float) and self.number is not None and self.how != ":":
            return self._compares(value, self.number)
        return value is not None and self._fits_any([str(value).lower()])

    def _compares(self, value: float, number: float) -> bool:
        same = abs(value - number) <= 1e-9 * max(abs(value), abs(number))
        greater = value > number and not same
        return {"=": same, "!=": not same, ">": greater, ">=": greater or same}.get(
            self.how, not greater and (not same or self.how == "<=")
        )

    def _fits_any(self, values: list[str]) -> bool:
        if self.how == ":":
            return any(self.value in value for value in values)
        found = any(fnmatchcase(value, self.value) for value in values)
        return found if self.how == "=" else not found if self.how == "!=" else False


def parse_number(text: str) -> float | None:
    """`400`, `1e-3`, `10k`, `2.5M`, `90%`; times in seconds: `30s`, `5min`, `2h`, `1d`; None for words."""
    found = _NUMBER.fullmatch(text)
    return float(found[1]) * _UNITS.get((found[2] or "").lower(), 1) if found else None


def parse_terms(text: str) -> tuple[Term, ...]:
    """The conditions in a text; in quotes they may have spaces."""
    lexer = shlex.shlex(text.lower(), posix=True)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    try:
        parts = list(lexer)
    except ValueError:
        # A quote that is not closed yet: it is being typed.
        parts = text.lower().replace('"', " ").replace("'", " ").split()
    return tuple(_term(part) for part in parts)


def _term(part: str) -> Term:
    found = _TERM.fullmatch(part)
    if found is None:
        return Term("", "", part)
    name = found["name"].replace("-", "_")
    return Term(ALIASES.get(name, name), found["how"], found["value"])


@dataclass(frozen=True)
class RunFilter:
    """A state and conditions, all of which must hold."""

    state: str = "all"
    text: str = ""

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return parse_terms(self.text)

    @property
    def problem(self) -> str:
        """What is wrong with the first condition that cannot be understood; empty when all can."""
        return next(filter(None, (term.problem for term in self.terms)), "")

    def matches(self, run: RunRecord) -> bool:
        """Whether the run is one of those that are wanted."""
        return in_state(run, self.state) and self.finds(run, search_text(run), lambda: settings_of(run))

    def finds(self, run: RunRecord, text: str, settings: Settings) -> bool:
        """Whether the conditions hold, whatever the state chosen; `text` is the run's `search_text`."""
        return all(term.fits(run, text, settings) for term in self.terms)


def in_state(run: RunRecord, state: str) -> bool:
    """Whether the run belongs under one of `STATES`."""
    if state == "running":
        return run.status in _RUNNING
    if state == "waiting":
        return run.status == "INIT"
    if state == "failed":
        return run.outcome in _FAILED or run.status == "FAULT"
    return True


def search_text(run: RunRecord) -> str:
    """All that words may find of a run, but for its state: it is the same until somebody labels the run."""
    seed = run.worker_config.get("seed")
    labels = f"{words.tags_text(run.tags)} {run.run_name} {run.notes}"
    return f"{words.kind_of(run)} seed {seed} {labels} {run.run_id}".lower()
