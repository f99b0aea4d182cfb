"""What the live view knows: a row for each run, fed by the daemon's updates."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mosaic.cli import words
from mosaic.client import HistoryEntry, RunHeadline, RunRecord


@dataclass
class Row:
    """One run as it stands now."""

    run_id: str
    title: str
    seed: int | None
    run_dir: str
    status: str
    outcome: str | None
    reason: str | None
    seq: int
    headline: dict[str, Any]
    started_at: float | None = None
    ended_at: float | None = None
    ending: bool = False
    """It was asked to end and has not yet."""

    @classmethod
    def from_record(cls, run: RunRecord) -> Row:
        asked = run.worker_config
        algo, env_id = asked.get("algo"), asked.get("env_id")
        return cls(
            run_id=run.run_id,
            title=f"{Path(algo).name} on {env_id}" if algo and env_id else run.run_name,
            seed=asked.get("seed"),
            run_dir=run.run_dir,
            status=run.status,
            outcome=run.outcome,
            reason=run.reason,
            seq=run.history[-1].seq if run.history else 0,
            headline=run.headline,
            started_at=run.started_at,
            ended_at=run.ended_at,
        )

    @property
    def ended(self) -> bool:
        return self.status == "TERM"

    @property
    def state(self) -> str:
        """The state in words."""
        if self.ending and not self.ended:
            return "ending"
        return words.state(self.status, self.outcome)

    @property
    def name(self) -> str:
        """The run as a person knows it."""
        return self.title if self.seed is None else f"{self.title}, seed {self.seed}"

    def elapsed(self) -> float | None:
        """Seconds since the run was started, up to its end."""
        if self.started_at is None:
            return None
        return (self.ended_at or time.time()) - self.started_at

    def seconds_left(self) -> float | None:
        """How long it will take at the present speed."""
        step, total, rate = (self.headline.get(key) for key in ("step", "total_steps", "sps"))
        if self.status != "EXEC" or not total or not rate or step is None:
            return None
        return max(0.0, float((total - step) / rate))

    def move(self, entry: HistoryEntry) -> None:
        """Take in a state change."""
        self.seq, self.status, self.outcome, self.reason = (
            entry.seq,
            entry.status,
            entry.outcome,
            entry.reason,
        )
        if entry.status == "INIT":
            self.started_at, self.headline = None, {}
        elif entry.status == "HSHK":
            self.started_at = entry.at
        elif entry.status == "TERM":
            self.ended_at = entry.at


@dataclass
class Board:
    """All runs that are followed, in the order they were added."""

    rows: dict[str, Row] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Iterable[RunRecord]) -> Board:
        board = cls()
        for run in runs:
            board.add(run)
        return board

    def add(self, run: RunRecord) -> None:
        self.rows[run.run_id] = Row.from_record(run)

    def all_ended(self) -> bool:
        return all(row.ended for row in self.rows.values())

    @property
    def live(self) -> list[Row]:
        return [row for row in self.rows.values() if not row.ended]

    @property
    def last_seq(self) -> int:
        """The state change up to which every live row is up to date."""
        return min((row.seq for row in self.live), default=0)

    def apply(self, update: HistoryEntry | RunHeadline) -> Row | None:
        """Take in an update; gives the row it changed."""
        row = self.rows.get(update.run_id)
        if row is None:
            return None
        if isinstance(update, RunHeadline):
            row.headline = update.headline
            return row
        if update.seq <= row.seq:
            return None
        row.move(update)
        return row
