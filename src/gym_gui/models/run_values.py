"""What can be known of a run by name: for filters, and for the columns of the table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from gym_gui.models import words
from mosaic.client import RunRecord

Value = str | float | None


def elapsed(run: RunRecord, now: float) -> float | None:
    """Seconds since the run was started, up to its end, without pauses."""
    if run.started_at is None:
        return None
    paused = sum(after.at - entry.at for entry, after in pairwise(run.history) if entry.status == "PAUSE")
    until = run.ended_at or now
    if run.status == "PAUSE" and run.history:
        until = run.history[-1].at
    return max(0.0, until - run.started_at - paused)


def _asked(run: RunRecord) -> Mapping[str, Any]:
    asked: Mapping[str, Any] = run.config.get("metadata", {}).get("worker", {}).get("config", {})
    return asked


def _headline(name: str) -> Callable[[RunRecord], Value]:
    return lambda run: run.headline.get(name)


def _text(name: str) -> Callable[[RunRecord], Value]:
    return lambda run: str(_asked(run).get(name) or "")


TEXTS: dict[str, Callable[[RunRecord], Value]] = {
    "name": lambda run: run.run_name,
    "algo": lambda run: PurePath(str(_asked(run).get("algo") or "")).name,
    "env": _text("env_id"),
    "tag": lambda run: ", ".join(run.tags),
    "state": lambda run: words.state_of(run).word,
    "notes": lambda run: run.notes,
    "id": lambda run: run.run_id,
}
NUMBERS: dict[str, Callable[[RunRecord], Value]] = {
    "return": _headline("mean_return"),
    "steps": _headline("step"),
    "speed": _headline("sps"),
    "episodes": _headline("episodes"),
    "progress": _headline("progress"),
    "seed": lambda run: _asked(run).get("seed"),
    "priority": lambda run: run.priority,
    "duration": lambda run: elapsed(run, time.time()),
    "age": lambda run: time.time() - run.submitted_at,
}
