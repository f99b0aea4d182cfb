"""Which runs the list shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gym_gui.models import words
from gym_gui.models.words import state_of
from mosaic.client import RunRecord

STATES = ("all", "running", "waiting", "failed")
_RUNNING = frozenset({"HSHK", "RDY", "EXEC", "PAUSE"})
_FAILED = frozenset({"failed", "timed_out"})
_FIELDS = frozenset({"algo", "env", "tag", "seed", "state", "name", "id"})


@dataclass(frozen=True)
class RunFilter:
    """A state and words; each word must be found. `env:cart` looks in the environment only."""

    state: str = "all"
    text: str = ""

    @cached_property
    def _words(self) -> list[tuple[str, str]]:
        found = []
        for word in self.text.lower().split():
            field, colon, rest = word.partition(":")
            found.append((field, rest) if colon and field in _FIELDS else ("", word))
        return found

    def matches(self, run: RunRecord) -> bool:
        """Whether the run is one of those that are wanted."""
        return in_state(run, self.state) and self.finds(run, search_text(run))

    def finds(self, run: RunRecord, text: str) -> bool:
        """Whether the words fit, whatever the state; `text` is the run's `search_text`."""
        return all(word in (_field(run, field) if field else text) for field, word in self._words)


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
    seed = _asked(run).get("seed")
    labels = f"{words.tags_text(run.tags)} {run.run_name} {run.notes}"
    return f"{words.kind_of(run)} seed {seed} {labels} {run.run_id}".lower()


def _field(run: RunRecord, field: str) -> str:
    asked = _asked(run)
    texts = {
        "algo": asked.get("algo"),
        "env": asked.get("env_id"),
        "tag": " ".join(run.tags),
        "seed": asked.get("seed"),
        "state": state_of(run).word,
        "name": run.run_name,
        "id": run.run_id,
    }
    return str(texts[field] or "").lower()


def _asked(run: RunRecord) -> Mapping[str, Any]:
    asked: Mapping[str, Any] = run.config.get("metadata", {}).get("worker", {}).get("config", {})
    return asked
