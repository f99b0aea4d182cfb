"""A live run as the daemon sees it: its supervisor, its event file, its clocks, and what its end means."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mosaic.contract.errors import StorageError
from mosaic.contract.events import FINAL_EVENTS, EventKind, LifecycleEvent, LifecycleReader
from mosaic.contract.fsm import Outcome, RunStatus
from mosaic.contract.paths import RunPaths
from mosaic.contract.process import ProcessIdentity, grace_seconds
from mosaic.trainer import log
from mosaic.trainer.log import Code
from mosaic.trainer.rows import RunRow
from mosaic.trainer.storage import RETRY_SECONDS
from mosaic.worker.causes import last_lines

HANDSHAKE_SECONDS = 60.0
SILENCE_SECONDS = 150.0
"""Heartbeats come every 30 s, as calls on a full disk too; five missed ones mean that nobody works there."""
_STOP_MARGIN_SECONDS = 15.0
"""A supervisor that takes so much longer than the grace period is killed."""
_TAIL_BYTES = 1 << 18


class AttachedRun:
    """Watches one supervisor. `on_event` and `on_end` are told what happens, in order."""

    def __init__(
        self,
        run: RunRow,
        paths: RunPaths,
        supervisor: ProcessIdentity,
        process: subprocess.Popen[bytes] | None,
        on_event: Callable[[str, LifecycleEvent], None],
        on_end: Callable[[str, LifecycleEvent | None, int | None], None],
    ) -> None:
        self.run_id = run.run_id
        self.supervisor = supervisor
        self.headline: dict[str, Any] = run.headline
        self.lost_reason: str | None = None
        self._process = process
        self._on_event = on_event
        self._on_end = on_end
        self._reader = LifecycleReader(paths.events, run.events_offset)
        self._pending: deque[LifecycleEvent] = deque()
        self._final: LifecycleEvent | None = None
        self._heard_at = time.monotonic()
        self._timers: list[asyncio.TimerHandle] = []
        self._limit: asyncio.TimerHandle | None = None
        self._pidfd: int | None = None

    def attach(self, started: bool) -> None:
        """Begin to watch. For a run that has `started`, only the newest events still matter."""
        if started:
            size = self._reader.path.stat().st_size if self._reader.path.exists() else 0
            self._reader.offset = max(self._reader.offset, size - _TAIL_BYTES)
        self.look()
        loop = asyncio.get_running_loop()
        self._pidfd = self.supervisor.open()
        if self._pidfd is None:
            loop.call_soon(self._ended)
        else:
            loop.add_reader(self._pidfd, self._ended)

    def detach(self) -> None:
        """Stop watching; the run goes on."""
        for timer in self._timers:
            timer.cancel()
        self.limit_time(None, lambda: None)
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def hear(self) -> None:
        """The supervisor lives, whether it can write or not: the silence counts anew from here."""
        self._heard_at = time.monotonic()

    def look(self) -> None:
        """Take in what the supervisor has written since the last look."""
        for event in self._reader.poll():
            self.hear()
            self._queue(event)
        try:
            self._take_pending()
        except StorageError as error:
            # What an event changes could not be written: it stays pending until the next look.
            log.warning(Code.STORAGE_FAILED, str(error), self.run_id)

    def silent_for(self) -> float:
        """Seconds since the event file grew or the supervisor called; sleep of the machine does not count."""
        return time.monotonic() - self._heard_at

    def ask_to_end(self) -> None:
        """Cancel: the supervisor ends its tree, and is killed when it does not manage to."""
        log.info(Code.RUN_SIGNALLED, "SIGTERM to the supervisor", self.run_id)
        self.supervisor.send(signal.SIGTERM)
        # One that was stopped from outside hears it too.
        self.supervisor.send(signal.SIGCONT)
        self._later(grace_seconds() + _STOP_MARGIN_SECONDS, self.kill)

    def kill(self, reason: str | None = None) -> None:
        """End the supervisor at once; `reason` becomes the cause of the fault."""
        self.lost_reason = reason
        log.warning(
            Code.RUN_SIGNALLED, f"SIGKILL to the supervisor: {reason or 'it did not end'}", self.run_id
        )
        self.supervisor.send(signal.SIGKILL)

    def expect_handshake(self, check: Callable[[], bool]) -> None:
        """Kill the supervisor unless `check` says in time that the handshake took place."""

        def late() -> None:
            if not check():
                self.kill(f"no handshake within {HANDSHAKE_SECONDS:.0f} s")

        self._later(HANDSHAKE_SECONDS, late)

    def limit_time(self, seconds: float | None, action: Callable[[], None]) -> None:
        """Do `action` after so many seconds, in place of an earlier limit; None for no limit."""
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
        if seconds is not None:
            self._limit = asyncio.get_running_loop().call_later(max(0.0, seconds), action)

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(seconds, action))

    def _queue(self, event: LifecycleEvent) -> None:
        """Heartbeats replace each other: an old pause that is read again after a restart is not a pause."""
        if event.event == EventKind.HEARTBEAT:
            self._pending = deque(one for one in self._pending if one.event != EventKind.HEARTBEAT)
        self._pending.append(event)

    def _take_pending(self) -> None:
        while self._pending:
            event = self._pending[0]
            if event.event in FINAL_EVENTS:
                self._final = event
            if event.event == EventKind.HEARTBEAT:
                self.headline = dict(event.payload)
            elif event.event == EventKind.RUN_STARTED and "phase" in event.payload:
                self.headline = {**self.headline, "phase": event.payload["phase"]}
            self._on_event(self.run_id, event)
            self._pending.popleft()

    def _ended(self) -> None:
        self.detach()
        self.look()
        code = self._process.wait() if self._process is not None else None
        self._tell_end(code)

    def _tell_end(self, code: int | None) -> None:
        """Tell that the run has ended, again and again while that cannot be written."""
        try:
            self._take_pending()
            self._on_end(self.run_id, self._final, code)
        except StorageError as error:
            log.warning(Code.STORAGE_FAILED, str(error), self.run_id)
            self._later(RETRY_SECONDS, lambda: self._tell_end(code))


_STDERR_LINES, _STDERR_LETTERS = 3, 4096


@dataclass(frozen=True)
class Verdict:
    """The state an ended run goes to. `status` is TERM, or FAULT with the cause as the reason."""

    status: RunStatus
    outcome: Outcome | None
    reason: str | None
    exit_code: int | None
    clean: bool
    """Whether the supervisor ended its process tree itself."""


def judge(run: RunRow, final: LifecycleEvent | None, code: int | None, folder: Path, stderr: Path) -> Verdict:
    """The verdict from the last event, the supervisor's exit code (if we are its parent) and its stderr."""
    if final is None:
        if run.stop_outcome is not None:
            return Verdict(RunStatus.TERM, run.stop_outcome, run.stop_reason, code, clean=False)
        return Verdict(RunStatus.FAULT, None, _gone(code, folder, stderr), code, clean=False)
    exit_code = final.payload.get("exit_code", code)
    if final.event == EventKind.RUN_COMPLETED and code in (0, None) and run.status == RunStatus.EXEC:
        return Verdict(RunStatus.TERM, Outcome.COMPLETED, None, exit_code, clean=True)
    if final.event == EventKind.RUN_CANCELLED or run.stop_outcome is not None:
        outcome = run.stop_outcome or Outcome.CANCELLED
        reason = run.stop_reason or "the supervisor was asked to end by a signal"
        return Verdict(RunStatus.TERM, outcome, reason, exit_code, clean=True)
    if final.event == EventKind.RUN_FAILED:
        cause = str(final.payload.get("cause", "the worker gave no cause"))
        return Verdict(RunStatus.FAULT, None, cause, exit_code, clean=True)
    return Verdict(
        RunStatus.FAULT, None, f"the worker said completed, but {_how(code)}", exit_code, clean=True
    )


def _gone(code: int | None, folder: Path, stderr: Path) -> str:
    # Who removes it while a file is written into it leaves the folder, and little in it.
    if not RunPaths(folder).events.exists():
        return f"the run's folder {folder} was removed before the run had ended ({_how(code)})"
    lines = [line.strip() for line in last_lines(stderr)[-_STDERR_LINES:]]
    last = f": {' | '.join(lines)[-_STDERR_LETTERS:]}" if lines else ""
    return f"the supervisor ended unexpectedly ({_how(code)}){last}"


def _how(code: int | None) -> str:
    if code is None:
        return "while no daemon was watching"
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"
