"""Runs and state changes as the registry stores them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from mosaic.contract.fsm import Outcome, RunStatus
from mosaic.contract.process import ProcessIdentity, boot_id

JSON_COLUMNS = frozenset({"config", "tags", "worker", "headline", "gpu_ids"})
_OUTCOME_COLUMNS = ("outcome", "stop_outcome")


@dataclass(frozen=True)
class QueuedRun:
    """What the queue knows of a run: little, because it is read anew for every run that waits."""

    run_id: str
    status: RunStatus
    cpus: int
    memory_mb: int
    gpus: int
    gpus_mandatory: bool
    gpu_ids: list[int]

    @classmethod
    def columns(cls) -> str:
        return ", ".join(field.name for field in fields(cls))

    @classmethod
    def from_columns(cls, row: Sequence[Any]) -> QueuedRun:
        run_id, status, cpus, memory_mb, gpus, gpus_mandatory, gpu_ids = row
        return cls(
            run_id, RunStatus(status), cpus, memory_mb, gpus, bool(gpus_mandatory), json.loads(gpu_ids)
        )


@dataclass(frozen=True)
class RunRow(QueuedRun):
    """A run as it is stored."""

    position: int
    request_id: str
    run_name: str
    worker_type: str
    config: dict[str, Any]
    tags: list[str]
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
        values = dict(row)
        values |= {name: json.loads(values[name]) for name in JSON_COLUMNS}
        values |= {name: Outcome(values[name]) if values[name] else None for name in _OUTCOME_COLUMNS}
        values |= {name: bool(values[name]) for name in ("gpus_mandatory", "pause_wanted")}
        values["status"] = RunStatus(values["status"])
        return cls(**values)


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
        values = dict(row)
        values["status"] = RunStatus(values["status"])
        values["outcome"] = Outcome(values["outcome"]) if values["outcome"] else None
        return cls(**values)


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
