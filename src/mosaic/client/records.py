"""Runs as plain Python values, made from what the daemon sends."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from mosaic.contract.proto import trainer_pb2 as pb


@dataclass(frozen=True)
class HistoryEntry:
    """One state change of a run."""

    seq: int
    run_id: str
    status: str
    outcome: str | None
    reason: str | None
    at: float

    @classmethod
    def from_message(cls, message: pb.Transition) -> HistoryEntry:
        outcome, reason = message.outcome or None, message.reason or None
        return cls(message.seq, message.run_id, message.status, outcome, reason, message.at)


@dataclass(frozen=True)
class RunHeadline:
    """The newest numbers of a run while it lives (see `mosaic.analytics.headline.Headline`)."""

    run_id: str
    headline: dict[str, Any]


@dataclass(frozen=True)
class RunRemoved:
    """A run that there is no more."""

    run_id: str


@dataclass(frozen=True)
class PublishedItem:
    """A step or an episode that a worker has published."""

    seq: int
    at: float
    payload: dict[str, Any]
    dropped: int
    """How many items right before this one were dropped, by the worker or by the daemon."""

    @classmethod
    def from_message(cls, message: pb.Published, previous_seq: int) -> PublishedItem:
        dropped = message.seq - previous_seq - 1
        return cls(message.seq, message.at, json.loads(message.payload_json), dropped)


@dataclass(frozen=True)
class RunRecord:
    """What the daemon knows of a run."""

    run_id: str
    run_name: str
    worker_type: str
    status: str
    outcome: str | None
    reason: str | None
    run_dir: str
    tags: list[str]
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    exit_code: int | None
    supervisor_pid: int | None
    training_pid: int | None
    priority: int
    place: float
    gpus: list[int]
    config: dict[str, Any] = field(repr=False)
    """As it was accepted; in a list that did not ask for the whole only what lists show of it."""
    headline: dict[str, Any] = field(repr=False)
    worker: dict[str, Any] = field(repr=False)
    history: list[HistoryEntry] = field(repr=False, default_factory=list)

    @property
    def ended(self) -> bool:
        return self.status == "TERM"

    @property
    def worker_config(self) -> dict[str, Any]:
        """The part of the config that went to the worker."""
        return dict(self.config.get("metadata", {}).get("worker", {}).get("config", {}))

    @property
    def mode(self) -> str:
        """What the run does: `train`, `resume_training`, `policy_eval` or another word of its worker."""
        return str((self.worker_config.get("extras") or {}).get("mode") or "train")

    @property
    def python(self) -> str | None:
        """The interpreter that was asked for; None is ours."""
        return self.config.get("metadata", {}).get("worker", {}).get("python") or None

    @property
    def sweep(self) -> str:
        """The id of the sweep that has made the run as a trial; empty for a run of its own."""
        return str(self.config.get("metadata", {}).get("ui", {}).get("sweep") or "")

    @property
    def notes(self) -> str:
        """What people have noted about it: later, or else when it was submitted."""
        later = self.config.get("metadata", {}).get("ui", {}).get("notes")
        first = (self.worker_config.get("extras") or {}).get("notes")
        return str((first if later is None else later) or "")

    @property
    def checked(self) -> list[tuple[str, str]]:
        """What a check has found before the run was queued: pairs of texts; empty for one that was not."""
        told = self.config.get("metadata", {}).get("ui", {}).get("checked")
        rows = told.get("rows") if isinstance(told, dict) else None
        pairs = (
            [row for row in rows if isinstance(row, list) and len(row) == 2] if isinstance(rows, list) else []
        )
        return [(str(name), str(found)) for name, found in pairs]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_message(cls, message: pb.Run) -> RunRecord:
        plain = ("run_id", "run_name", "worker_type", "status", "run_dir", "submitted_at")
        optional = ("outcome", "reason", "started_at", "ended_at", "supervisor_pid", "training_pid")
        told: dict[str, Any] = {name: getattr(message, name) for name in plain}
        told |= {name: getattr(message, name) or None for name in optional}
        return cls(
            **told,
            priority=message.priority,
            place=message.place,
            tags=list(message.tags),
            gpus=list(message.gpus),
            exit_code=message.exit_code if message.HasField("exit_code") else None,
            config=_read(message.config_json or message.brief_json),
            headline=_read(message.headline_json),
            worker=_read(message.worker_json),
            history=[HistoryEntry.from_message(entry) for entry in message.history],
        )


def _read(text: str) -> dict[str, Any]:
    return json.loads(text) if text else {}


@dataclass(frozen=True)
class RunPage:
    """Some runs of a list."""

    runs: list[RunRecord]
    cursor: str
    """Where the next page begins; empty after the last."""
    counts: dict[tuple[str, str | None], int]
    """How many there are in all of each status and outcome, when that was asked for."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @classmethod
    def from_message(cls, message: pb.ListRunsResponse) -> RunPage:
        counts = {(one.status, one.outcome or None): one.runs for one in message.counts}
        return cls([RunRecord.from_message(run) for run in message.runs], message.next_cursor, counts)


@dataclass(frozen=True)
class HealthRecord:
    """How the daemon is."""

    address: str
    version: str
    pid: int
    uptime_seconds: float
    live_runs: int
    waiting_runs: int
    cpus: int
    cpus_reserved: int
    memory_mb: int
    memory_mb_reserved: int
    gpus: int
    gpus_reserved: int
    last_seq: int
    disk_free_bytes: int
    problems: list[str]
    notices: list[str]

    @classmethod
    def from_message(cls, address: str, message: pb.Health) -> HealthRecord:
        told = {one.name: getattr(message, one.name) for one in fields(cls) if one.name != "address"}
        lists = {name: list(told[name]) for name in ("problems", "notices")}
        return cls(address=address, **(told | lists))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
