"""What the live view knows: a row for each run, fed by the daemon's updates."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from mosaic.client import HistoryEntry, RunHeadline, RunRecord
from mosaic.contract import words
from mosaic.contract.capabilities import EVALUATES, NO_ENVIRONMENT
from mosaic.contract.phases import WAITING_FOR_SPACE
from mosaic.fastlane.layout import START_PHASES

_NOT_STARTED = ("INIT", "HSHK", "RDY")


class Row:
    """One run as it stands now."""

    def __init__(self, run: RunRecord) -> None:
        asked, newest = run.worker_config, run.history[-1] if run.history else None
        starts = [entry.reason for entry in run.history if entry.status == "INIT"]
        algo, env_id = asked.get("algo"), asked.get("env_id")
        place = "" if env_id == NO_ENVIRONMENT else f" on {env_id}"
        self.run_id, self.run_dir = run.run_id, run.run_dir
        self.title = f"{Path(algo).name}{place}" if algo and env_id else run.run_name
        self.seed: int | None = asked.get("seed")
        self.python = run.python
        """The interpreter that trains; None is ours."""
        self.evaluates = (asked.get("extras") or {}).get("mode") == EVALUATES
        """It plays a policy and trains none."""
        self.status, self.outcome, self.reason = run.status, run.outcome, run.reason
        self.started_at, self.ended_at = run.started_at, run.ended_at
        self.seq = newest.seq if newest else 0
        self.moved_at = newest.at if newest else time.time()
        """When it came into its state."""
        # What is known of a run that starts again is from before.
        self.headline = {} if run.status in _NOT_STARTED else run.headline
        self.paused_seconds = sum(
            after.at - entry.at for entry, after in pairwise(run.history) if entry.status == "PAUSE"
        )
        """How long it has been paused, without the pause it may be in."""
        self.restart = words.restart(starts[-1] if starts else run.reason)
        """`restart 1 of 2 after: …`, when it was started again."""
        self.heard = True
        """It has told something since it was started."""
        self.ending = False
        """It was asked to end and has not yet."""

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


class Board:
    """All runs that are followed, in the order they were added."""

    def __init__(self, runs: Iterable[RunRecord] = ()) -> None:
        self.rows = {run.run_id: Row(run) for run in runs}

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
