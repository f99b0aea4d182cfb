"""Runs as plain Python values, made from what the daemon sends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
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
        return cls(
            seq=message.seq,
            run_id=message.run_id,
            status=message.status,
            outcome=message.outcome or None,
            reason=message.reason or None,
            at=message.at,
        )


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
        return cls(
            seq=message.seq,
            at=message.at,
            payload=json.loads(message.payload_json),
            dropped=message.seq - previous_seq - 1,
        )


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
    def python(self) -> str | None:
        """The interpreter that was asked for; None is ours."""
        return self.config.get("metadata", {}).get("worker", {}).get("python") or None

    @property
    def notes(self) -> str:
        """What people have noted about it: later, or else when it was submitted."""
        later = self.config.get("metadata", {}).get("ui", {}).get("notes")
        first = (self.worker_config.get("extras") or {}).get("notes")
        return str((first if later is None else later) or "")

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_message(cls, message: pb.Run) -> RunRecord:
        return cls(
            run_id=message.run_id,
            run_name=message.run_name,
            worker_type=message.worker_type,
            status=message.status,
            outcome=message.outcome or None,
            reason=message.reason or None,
            run_dir=message.run_dir,
            tags=list(message.tags),
            submitted_at=message.submitted_at,
            started_at=message.started_at or None,
            ended_at=message.ended_at or None,
            exit_code=message.exit_code if message.HasField("exit_code") else None,
            supervisor_pid=message.supervisor_pid or None,
            training_pid=message.training_pid or None,
            priority=message.priority,
            place=message.place,
            gpus=list(message.gpus),
            config=_read(message.config_json or message.brief_json),
            headline=_read(message.headline_json),
            worker=_read(message.worker_json),
            history=[HistoryEntry.from_message(entry) for entry in message.history],
        )


def _read(text: str) -> dict[str, Any]:
    return json.loads(text) if text else {}


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

    def request(self, limit: int, cursor: str, count: bool) -> pb.ListRunsRequest:
        asked = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return pb.ListRunsRequest(**asked, limit=limit, cursor=cursor, count=count)


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
        return cls(
            address=address,
            version=message.version,
            pid=message.pid,
            uptime_seconds=message.uptime_seconds,
            live_runs=message.live_runs,
            waiting_runs=message.waiting_runs,
            cpus=message.cpus,
            cpus_reserved=message.cpus_reserved,
            memory_mb=message.memory_mb,
            memory_mb_reserved=message.memory_mb_reserved,
            gpus=message.gpus,
            gpus_reserved=message.gpus_reserved,
            last_seq=message.last_seq,
            disk_free_bytes=message.disk_free_bytes,
            problems=list(message.problems),
            notices=list(message.notices),
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
