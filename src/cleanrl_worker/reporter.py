"""What a supervisor tells of its run: heartbeats with the newest numbers, the manifest and the last word."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping
from typing import Any, Protocol

from cleanrl_worker.analytics import write_manifest
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.telemetry import LifecycleEmitter
from mosaic.analytics.event_files import EventReader
from mosaic.analytics.headline import HeadlineTracker
from mosaic.contract.errors import StorageError
from mosaic.contract.paths import RunPaths
from mosaic.worker.causes import last_lines

HEARTBEAT_SECONDS = 30.0
NEWS_SECONDS = 1.9
"""Heartbeats with news come every two seconds; the first of a run, which somebody watches, every second."""
FIRST_NEWS_SECONDS = 0.9
_FIRST_BEATS = 6
LAST_WORD_SECONDS = 60.0
"""How long to try to write the last event when the disk is full."""


def complain(text: str) -> None:
    """Tell on stderr, which may be on the same full disk, what could not be written."""
    with contextlib.suppress(OSError):
        os.write(sys.stderr.fileno(), f"{text}\n".encode())


class Line(Protocol):
    """The line to the daemon."""

    def heartbeat(self, seq: int) -> None: ...


class Reporter:
    """Writes one run's events and manifest; with a line it nudges the daemon to read them."""

    def __init__(self, config: CleanRLWorkerConfig, paths: RunPaths) -> None:
        self._config = config
        self._paths = paths
        self._emitter = LifecycleEmitter(config.run_id, paths.events)
        self._tracker = HeadlineTracker(config.total_timesteps)
        self._reader = EventReader(paths.run_dir)
        self._started_at = time.time()
        self._told: dict[str, Any] = {}
        self._told_at = 0.0
        self._beats = 0
        self._saved = paths.full_checkpoints()[-1:]
        self.line: Line | None = None

    def started(self, payload: Mapping[str, Any]) -> None:
        self._nudge(self._emitter.run_started(payload).seq)

    def beat(self, paused: bool = False, at_once: bool = False) -> None:
        """A heartbeat when there is something new, or when the last one is long ago."""
        news = FIRST_NEWS_SECONDS if self._beats < _FIRST_BEATS else NEWS_SECONDS
        if not at_once and time.monotonic() - self._told_at < news:
            return
        self._tell_checkpoint()
        self._tracker.update(self._reader.poll())
        headline = self._tracker.headline().as_json()
        if paused:
            headline["phase"] = "paused"
        due = news if headline != self._told else HEARTBEAT_SECONDS
        if not at_once and time.monotonic() - self._told_at < due:
            return
        try:
            event = self._emitter.heartbeat(headline)
        except OSError as error:
            # A full disk: the next heartbeat may find room again.
            complain(f"A heartbeat cannot be written: {error}")
            return
        self._told, self._told_at = headline, time.monotonic()
        self._beats += 1
        self._nudge(event.seq)

    def ended(self, status: str, code: int, cause: str | None = None) -> int:
        """Write the manifest and the last event; gives the exit code of the supervisor."""
        self._tell_checkpoint()
        self._tracker.update(self._reader.poll())
        headline = self._tracker.headline().as_json()
        ended_at = time.time()
        result = {
            "status": status,
            "exit_code": code,
            "cause": cause,
            "started_at": self._started_at,
            "ended_at": ended_at,
            "duration_seconds": round(ended_at - self._started_at, 3),
            "headline": headline,
        }
        payload: dict[str, Any] = {"exit_code": code, "headline": headline}
        try:
            payload["manifest"] = write_manifest(self._config, self._paths, result)
        except OSError as error:
            trouble = f"the manifest {self._paths.manifest} cannot be written: {error.strerror}"
            if status == "completed":
                status, code, cause = "failed", 1, trouble
            elif status == "failed":
                # A full disk is often what the script died of, and takes its last words too.
                cause = f"{cause}; {trouble}"
        if status == "failed":
            payload |= {"exit_code": code, "cause": cause, "stderr": last_lines(self._paths.stderr)}
        self._say_last(status, payload)
        return code

    def _tell_checkpoint(self) -> None:
        """An event for a checkpoint that has appeared since the last look."""
        newest = self._paths.full_checkpoints()[-1:]
        if newest and newest != self._saved:
            step = int(newest[0].stem.removeprefix("step-"))
            try:
                event = self._emitter.checkpoint_saved({"path": str(newest[0]), "step": step})
            except OSError as error:
                complain(f"The event of a checkpoint cannot be written: {error}")
                return
            self._saved = newest
            self._nudge(event.seq)

    def _say_last(self, status: str, payload: dict[str, Any]) -> None:
        """Write the final event; a full disk gets some time to have room again."""
        say = {
            "completed": self._emitter.run_completed,
            "cancelled": self._emitter.run_cancelled,
            "failed": self._emitter.run_failed,
        }[status]
        deadline = time.monotonic() + LAST_WORD_SECONDS
        while True:
            try:
                say(payload)
                return
            except OSError as error:
                if time.monotonic() > deadline:
                    reason = payload.get("cause") or f"the run was {status}"
                    raise StorageError(
                        f"{self._paths.events} cannot be written: {error.strerror}; {reason}."
                    ) from error
            time.sleep(1.0)

    def _nudge(self, seq: int) -> None:
        if self.line is not None:
            self.line.heartbeat(seq)
