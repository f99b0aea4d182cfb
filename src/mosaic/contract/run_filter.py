"""Words and conditions such as `return>400`: how daemon and window are asked for runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import PurePath
from typing import Any

from mosaic.contract.capabilities import EVALUATES, NO_ENVIRONMENT
from mosaic.contract.numbers import SECONDS

TEXTS = frozenset({"name", "algo", "env", "tag", "state", "notes", "id", "sweep"})
NUMBERS = frozenset(
    {"return", "steps", "speed", "episodes", "progress", "seed", "priority", "duration", "age"}
)
"""What is known of every run by name; any other name is a setting, such as a parameter of its algorithm."""
_ALIASES = {
    "env_id": "env",
    "sps": "speed",
    "step": "steps",
    "tags": "tag",
    "note": "notes",
    "run_name": "name",
}
_NEUTRAL_EXTRAS = frozenset(
    [
        *("notes", "seed_override", "tensorboard_dir", "schema_id", "schema_version", "trust_modules"),
        *("fastlane_video_mode", "video_mode", "fastlane_slot", "fastlane_grid_limit", "grid_limit"),
        *("fastlane_only", "requirements", "mode", "algo_params", "upload_model", "hf_entity"),
        *("track_wandb", "track_mlflow", "track_trackio"),
    ]
)
_OF_TRACKERS = ("wandb_", "mlflow_", "trackio_")
_TERM = re.compile(r"(?P<name>[A-Za-z_][\w.-]*)(?P<how>!=|>=|<=|=|>|<|:)(?P<value>.*)")
_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(k|m|g|s|min|h|d|w|%)?", re.IGNORECASE)
_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9, **SECONDS, "%": 0.01}

RUN_STATES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "all": ((), ()),
    "running": (("HSHK", "RDY", "EXEC", "PAUSE"), ()),
    "waiting": (("INIT",), ()),
    "failed": (("TERM", "FAULT"), ("failed", "timed_out")),
}
"""What the window has a button for, and a saved filter may ask for: the statuses and outcomes of each."""

GROUPINGS = ("config", "algo", "env", "tag", "run")
"""By what runs can be put together: seeds of one configuration, or what is the same of them."""

BRIEF = (
    *("run_id", "run_name", "worker_type", "status", "outcome", "reason", "run_dir", "tags", "submitted_at"),
    *("started_at", "ended_at", "exit_code", "supervisor_pid", "training_pid", "priority", "place", "gpus"),
    *("headline_json", "brief_json"),
)
"""What lists show of a run."""
WHOLE = (*BRIEF[:-1], "config_json", "worker_json")
"""All that there is of a run but its history."""


@dataclass(frozen=True)
class RunQuery:
    """Which runs, in which order, and what of them. What is empty narrows nothing."""

    statuses: Sequence[str] = ()
    outcomes: Sequence[str] = ()
    """How they ended; one that has not yet fits whatever stands here."""
    tags: Sequence[str] = ()
    without_tags: Sequence[str] = ()
    algo: str = ""
    env_id: str = ""
    run_ids: Sequence[str] = ()
    ended_before: float | None = None
    filter: str = ""
    """Words and conditions as in the window: `cartpole return>400 learning_rate=0.01`."""
    order_by: str = ""
    """`submitted`, `ended`, `queue` or what a condition can name, such as `return`; the unknown last."""
    ascending: bool = False
    fields: Sequence[str] = BRIEF
    """Fields of the message `Run`; those left out are empty in the records."""
    limit: int = 0
    """Runs of one page; 0 for the usual number."""
    cursor: str = ""
    count: bool = False
    """Whether all are counted as well."""


@dataclass(frozen=True)
class Term:
    """One condition: a name, how, and a value; a plain word has no name."""

    name: str
    how: str
    value: str

    @cached_property
    def number(self) -> float | None:
        """`400`, `1e-3`, `10k`, `2.5M`, `90%`; times in seconds: `30s`, `5min`, `2h`, `1d`; else None."""
        found = _NUMBER.fullmatch(self.value)
        return float(found[1]) * _UNITS.get((found[2] or "").lower(), 1) if found else None

    @property
    def problem(self) -> str:
        """What is wrong with it, in a sentence; empty when nothing is."""
        compares = self.how in (">", ">=", "<", "<=")
        if self.value and self.number is None and (compares or (self.how != ":" and self.name in NUMBERS)):
            return f"'{self.value}' is not a number: write {self.name}{self.how}400, 10k, 5min or 2d."
        return ""

    def fits_texts(self, values: Iterable[str]) -> bool:
        """Whether it holds for one of these, in small letters."""
        if self.how == ":":
            return any(self.value in value for value in values)
        found = any(fnmatchcase(value, self.value) for value in values)
        return found if self.how == "=" else not found if self.how == "!=" else False

    def fits(self, value: Any) -> bool:
        """Whether it holds for a number or another setting; what is not known fits nothing."""
        if isinstance(value, bool):
            value = "true" if value else "false"
        if isinstance(value, int | float) and self.number is not None and self.how != ":":
            return self._compares(value, self.number)
        return value is not None and self.fits_texts([str(value).lower()])

    def _compares(self, value: float, number: float) -> bool:
        same = abs(value - number) <= 1e-9 * max(abs(value), abs(number))
        greater = value > number and not same
        return {"=": same, "!=": not same, ">": greater, ">=": greater or same}.get(
            self.how, not greater and (not same or self.how == "<=")
        )


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


def is_neutral(extra: str) -> bool:
    """Whether an extra changes nothing of what is learned, or is looked at by itself."""
    return extra in _NEUTRAL_EXTRAS or extra.startswith(_OF_TRACKERS)


def canonical(name: str) -> str:
    """A name as a person may write it, as it is known: `env-id` is `env`."""
    name = name.lower().replace("-", "_")
    return _ALIASES.get(name, name)


def _term(part: str) -> Term:
    found = _TERM.fullmatch(part)
    if found is None:
        return Term("", "", part)
    return Term(canonical(found["name"]), found["how"], found["value"])


def kind_text(algo: Any, env_id: Any, mode: Any, run_name: str) -> str:
    """What a run does: `ppo · CartPole-v1`; an evaluation says so."""
    if not algo:
        return run_name
    name = PurePath(str(algo)).name
    title = name if env_id in (None, "", NO_ENVIRONMENT) else f"{name} · {env_id}"
    return f"Evaluation of {title}" if mode == EVALUATES else title


def search_text(kind: str, seed: Any, tags: Sequence[str], run_name: str, notes: str, run_id: str) -> str:
    """All that words may find of a run, but for its state: it is the same until somebody labels the run."""
    labels = f"{' '.join(f'#{tag}' for tag in tags)} {run_name} {notes}"
    return f"{kind} seed {seed} {labels} {run_id}".lower()
