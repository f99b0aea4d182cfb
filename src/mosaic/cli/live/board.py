"""What the live view knows: a row for each run, fed by the daemon's updates."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from mosaic.cli import words
from mosaic.client import HistoryEntry, RunHeadline, RunRecord
from mosaic.contract.capabilities import EVALUATES, NO_ENVIRONMENT
from mosaic.contract.phases import WAITING_FOR_SPACE
from mosaic.fastlane.layout import START_PHASES

_NOT_STARTED = ("INIT", "HSHK", "RDY")


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
    moved_at: float = 0.0
    """When it came into its state."""
    paused_seconds: float = 0.0
    """How long it has been paused, without the pause it may be in."""
    restart: str | None = None
    """`restart 1 of 2 after: …`, when it was started again."""
    evaluates: bool = False
    """It plays a policy and trains none."""
    python: str | None = None
    """The interpreter that trains; None is ours."""
    heard: bool = True
    """It has told something since it was started."""
    ending: bool = False
    """It was asked to end and has not yet."""

    @classmethod
    def from_record(cls, run: RunRecord) -> Row:
        asked, newest = run.worker_config, run.history[-1] if run.history else None
        starts = [entry.reason for entry in run.history if entry.status == "INIT"]
        algo, env_id = asked.get("algo"), asked.get("env_id")
        place = "" if env_id == NO_ENVIRONMENT else f" on {env_id}"
        return cls(
            run_id=run.run_id,
            title=f"{Path(algo).name}{place}" if algo and env_id else run.run_name,
            seed=asked.get("seed"),
            run_dir=run.run_dir,
            status=run.status,
            outcome=run.outcome,
            reason=run.reason,
            seq=newest.seq if newest else 0,
            # What is known of a run that starts again is from before.
            headline={} if run.status in _NOT_STARTED else run.headline,
            started_at=run.started_at,
            ended_at=run.ended_at,
            python=run.python,
            moved_at=newest.at if newest else time.time(),
            paused_seconds=sum(
                after.at - entry.at for entry, after in pairwise(run.history) if entry.status == "PAUSE"
            ),
            restart=words.restart(starts[-1] if starts else run.reason),
            evaluates=(asked.get("extras") or {}).get("mode") == EVALUATES,
        )

    @property
    def ended(self) -> bool:
        return self.status == "TERM"

    @property
    def state(self) -> str:
        """The state in words."""
        if self.ending and not self.ended:
            return "ending"
        if self.restart and self.status in _NOT_STARTED and not self.waits:
            return "restarting"
        if self.starts_with is not None:
            return "starting"
        if self.status == "EXEC" and self.headline.get("phase") == WAITING_FOR_SPACE:
            return WAITING_FOR_SPACE
        if self.stall is not None:
            return "stalled"
        if self.evaluates and self.status == "EXEC":
            return "evaluating"
        return words.state(self)

    @property
    def starts_with(self) -> str | None:
        """What a started run does before its first step, as far as that is known; None when it steps."""
        phase = self.headline.get("phase", "") if self.heard else ""
        return phase if self.status == "EXEC" and (phase in START_PHASES or not self.heard) else None

    @property
    def stall(self) -> str | None:
        """What a run does that takes no step any more; None for others."""
        stalled = self.status == "EXEC" and self.headline.get("phase") == "stalled"
        return str(self.headline["stall"]["text"]) if stalled else None

    @property
    def starting(self) -> str:
        """`starting: importing`."""
        return f"{self.state}: {self.starts_with}" if self.starts_with else self.state

    @property
    def waits(self) -> bool:
        """Whether something that it needs is missing."""
        return self.status == "INIT" and not words.restart(self.reason)

    @property
    def name(self) -> str:
        """The run as a person knows it."""
        return self.title if self.seed is None else f"{self.title}, seed {self.seed}"

    def elapsed(self) -> float | None:
        """Seconds since the run was first started, up to its end, without pauses."""
        if self.started_at is None:
            return None
        until = self.moved_at if self.status == "PAUSE" else self.ended_at or time.time()
        return until - self.started_at - self.paused_seconds

    def paused_for(self) -> float | None:
        """Seconds since it was paused."""
        return time.time() - self.moved_at if self.status == "PAUSE" else None

    def seconds_left(self) -> float | None:
        """How long it will take at the present speed."""
        step, total, rate = (self.headline.get(key) for key in ("step", "total_steps", "sps"))
        if self.status != "EXEC" or not total or not rate or step is None:
            return None
        return max(0.0, float((total - step) / rate))

    def move(self, entry: HistoryEntry) -> None:
        """Take in a state change."""
        if self.status == "PAUSE":
            self.paused_seconds += entry.at - self.moved_at
        self.seq, self.moved_at = entry.seq, entry.at
        self.status, self.outcome, self.reason = entry.status, entry.outcome, entry.reason
        if entry.status == "INIT":
            self.headline, self.restart = {}, words.restart(entry.reason)
            self.heard = True
        elif entry.status == "HSHK":
            self.started_at = self.started_at or entry.at
            self.heard = False
        elif entry.status == "TERM":
            self.ended_at = entry.at

    def take(self, headline: dict[str, Any]) -> None:
        """Take in new numbers, or what a waiting run waits for now."""
        if "waits_for" not in headline:
            self.headline, self.heard = headline, True
        elif self.status == "INIT":
            self.reason = headline["waits_for"]


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
            row.take(update.headline)
            return row
        if update.seq <= row.seq:
            return None
        row.move(update)
        return row
