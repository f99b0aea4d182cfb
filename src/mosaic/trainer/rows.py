"""Runs and state changes as the registry stores them."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from mosaic.contract.capabilities import discover_workers
from mosaic.contract.fsm import Outcome, RunStatus
from mosaic.contract.process import ProcessIdentity, boot_id
from mosaic.contract.run_config import TrainRunConfig

JSON_COLUMNS = frozenset({"config", "tags", "worker", "headline", "gpu_ids"})
_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(JSON_COLUMNS, json.loads),
    **dict.fromkeys(("outcome", "stop_outcome"), lambda value: Outcome(value) if value else None),
    **dict.fromkeys(("gpus_mandatory", "pause_wanted"), bool),
    "status": RunStatus,
}


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


@dataclass(frozen=True)
class RunRow(QueuedRun):
    """A run as it is stored."""

    request_id: str
    run_name: str
    worker_type: str
    config: dict[str, Any]
    tags: list[str]
    reason: str | None
    submitted_at: float
    priority: int
    position: int = 0
    outcome: Outcome | None = None
    started_at: float | None = None
    ended_at: float | None = None
    exit_code: int | None = None
    supervisor_pid: int | None = None
    supervisor_start: int | None = None
    boot_id: str | None = None
    training_pid: int | None = None
    events_offset: int = 0
    session_hash: str | None = None
    worker: dict[str, Any] = field(default_factory=dict)
    headline: dict[str, Any] = field(default_factory=dict)
    stop_outcome: Outcome | None = None
    stop_reason: str | None = None
    place: float = 0.0
    """Order among waiting runs of one priority; the lower starts first."""
    pause_wanted: bool = False
    worked_seconds: float = 0.0
    works_since: float | None = None
    """On the monotonic clock of its boot, which no change of the time of day moves."""

    def worked(self) -> float:
        """Seconds in EXEC until now, over pauses and restarts; sleep of the machine does not count."""
        if self.works_since is None or self.boot_id != boot_id():
            return self.worked_seconds
        return self.worked_seconds + time.monotonic() - self.works_since

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


def decode(row: sqlite3.Row) -> dict[str, Any]:
    """Columns as they are used."""
    values = dict(row)
    return values | {name: read(values[name]) for name, read in _DECODERS.items() if name in values}


def encode(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns as they are stored."""
    return {name: json.dumps(value) if name in JSON_COLUMNS else value for name, value in columns.items()}


def insert(connection: sqlite3.Connection, columns: Mapping[str, Any]) -> None:
    """Store a new run."""
    fields = encode(columns)
    query = f"INSERT INTO runs ({', '.join(fields)}) VALUES ({marks(fields)})"
    connection.execute(query, list(fields.values()))


def marks(values: Collection[Any]) -> str:
    """A question mark for each value."""
    return ", ".join("?" * len(values))


def with_notes(config: Mapping[str, Any], notes: str) -> dict[str, Any]:
    """A run's config with other notes."""
    metadata = config["metadata"]
    return {**config, "metadata": {**metadata, "ui": {**metadata["ui"], "notes": notes}}}


def new_row(run_id: str, request_id: str, config: TrainRunConfig, reason: str, submitted_at: float) -> RunRow:
    """A run that has just been accepted; it gets its position and place when it is stored."""
    resources, worker = config.resources, discover_workers().get(config.metadata.worker.type)
    # A run that waits for others, and held what they need, would wait for ever.
    waits = worker is not None and worker.waits_for_others
    return RunRow(
        run_id=run_id,
        status=RunStatus.INIT,
        cpus=0 if waits else resources.cpus,
        memory_mb=resources.memory_mb or 0,
        gpus=resources.gpus.requested,
        gpus_mandatory=resources.gpus.mandatory,
        gpu_ids=[],
        request_id=request_id,
        run_name=config.run_name,
        worker_type=config.metadata.worker.type,
        config=config.as_json(),
        tags=config.tags,
        reason=reason,
        submitted_at=submitted_at,
        priority=config.schedule.priority,
    )


@dataclass(frozen=True)
class TransitionRow:
    """A state change as it is stored."""

    seq: int
    run_id: str
    status: RunStatus
    outcome: Outcome | None
    reason: str | None
    at: float
