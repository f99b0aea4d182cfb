"""Runs and state changes as the registry stores them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mosaic.contract.fsm import Outcome, RunStatus
from mosaic.contract.process import ProcessIdentity, boot_id

JSON_COLUMNS = frozenset({"config", "tags", "worker", "headline", "gpu_ids"})
_OUTCOME_COLUMNS = ("outcome", "stop_outcome")


@dataclass(frozen=True)
class RunRow:
    """A run as it is stored."""

    position: int
    run_id: str
    request_id: str
    run_name: str
    worker_type: str
    config: dict[str, Any]
    tags: list[str]
    cpus: int
    status: RunStatus
    outcome: Outcome | None
    reason: str | None
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    exit_code: int | None
    supervisor_pid: int | None
    supervisor_start: int | None
    boot_id: str | None
    training_pid: int | None
    events_offset: int
    session_hash: str | None
    worker: dict[str, Any]
    headline: dict[str, Any]
    stop_outcome: Outcome | None
    stop_reason: str | None
    priority: int
    place: float
    """Order among waiting runs of one priority; the lower starts first."""
    memory_mb: int
    gpus: int
    gpus_mandatory: bool
    gpu_ids: list[int]
    pause_wanted: bool

    @property
    def supervisor(self) -> ProcessIdentity | None:
        """The supervisor's process, if it was recorded in this boot."""
        if self.supervisor_pid is None or self.supervisor_start is None or self.boot_id != boot_id():
            return None
        return ProcessIdentity(self.supervisor_pid, self.supervisor_start)

    @property
    def max_restarts(self) -> int:
        return int(self.config["schedule"]["max_restarts"])

    @property
    def max_seconds(self) -> float | None:
        minutes = self.config["schedule"]["max_wallclock_minutes"]
        return None if minutes is None else float(minutes) * 60

    @classmethod
    def from_sql(cls, row: sqlite3.Row) -> RunRow:
        fields = dict(row)
        fields |= {name: json.loads(fields[name]) for name in JSON_COLUMNS}
        fields |= {name: Outcome(fields[name]) if fields[name] else None for name in _OUTCOME_COLUMNS}
        fields |= {name: bool(fields[name]) for name in ("gpus_mandatory", "pause_wanted")}
        fields["status"] = RunStatus(fields["status"])
        return cls(**fields)


@dataclass(frozen=True)
class TransitionRow:
    """A state change as it is stored."""

    seq: int
    run_id: str
    status: RunStatus
    outcome: Outcome | None
    reason: str | None
    at: float

    @classmethod
    def from_sql(cls, row: sqlite3.Row) -> TransitionRow:
        fields = dict(row)
        fields["status"] = RunStatus(fields["status"])
        fields["outcome"] = Outcome(fields["outcome"]) if fields["outcome"] else None
        return cls(**fields)


def seconds_worked(history: Sequence[TransitionRow], now: float) -> float:
    """How long a run has been in EXEC, over pauses and restarts."""
    total, since = 0.0, None
    for row in history:
        if row.status == RunStatus.EXEC:
            since = row.at
        elif since is not None:
            total += row.at - since
            since = None
    return total + (now - since if since is not None else 0.0)
