"""Lifecycle events: JSON lines that a supervisor appends and everybody else reads."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from mosaic.contract.outside import parse_json, sound


class EventKind(StrEnum):
    """What a supervisor reports."""

    RUN_STARTED = "run_started"
    HEARTBEAT = "heartbeat"
    CHECKPOINT_SAVED = "checkpoint_saved"
    RUN_COMPLETED = "run_completed"
    RUN_FAILED = "run_failed"
    RUN_CANCELLED = "run_cancelled"


FINAL_EVENTS = frozenset({EventKind.RUN_COMPLETED, EventKind.RUN_FAILED, EventKind.RUN_CANCELLED})


@dataclass(frozen=True)
class LifecycleEvent:
    """One line of `events.jsonl`."""

    event: EventKind
    run_id: str
    seq: int
    ts: float
    payload: Mapping[str, Any]

    def to_line(self) -> bytes:
        fields = {**vars(self), "ts": round(self.ts, 3)}
        return json.dumps(fields, allow_nan=False, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> LifecycleEvent | None:
        """The event of a line, or None for a line torn by a crash or printed by something else."""
        try:
            fields = parse_json(line)
            return cls(
                event=EventKind(fields["event"]),
                run_id=str(fields["run_id"]),
                seq=int(fields["seq"]),
                ts=float(fields["ts"]),
                payload=sound(dict(fields["payload"])),
            )
        except (ValueError, KeyError, TypeError, OverflowError):
            return None


class LifecycleWriter:
    """Appends events to a descriptor, one write each, numbering on from what the file holds."""

    def __init__(self, run_id: str, descriptor: int, last_seq: int = 0) -> None:
        self._run_id = run_id
        self._descriptor = descriptor
        self.last_seq = last_seq
        """The number of the newest event."""
        self._torn = False

    def write(self, event: EventKind, payload: Mapping[str, Any]) -> LifecycleEvent:
        """Append one event; it is on disk when this returns."""
        made = LifecycleEvent(event, self._run_id, self.last_seq + 1, time.time(), payload)
        # After a write that failed half-way (a full disk), the next event must not share its line.
        line = b"\n" * self._torn + made.to_line()
        self._torn = True
        while line:
            line = line[os.write(self._descriptor, line) :]
        self._torn = False
        self.last_seq = made.seq
        if os.path.isfile(f"/proc/self/fd/{self._descriptor}"):
            os.fsync(self._descriptor)
        return made


class LifecycleReader:
    """Reads what was appended since the last call; a line still being written waits for the next."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset

    def poll(self) -> list[LifecycleEvent]:
        return list(self.new_events())

    def new_events(self) -> Iterator[LifecycleEvent]:
        """The same one by one, as far as the caller wants them."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self.offset += len(line)
                event = LifecycleEvent.from_line(line)
                if event is not None:
                    yield event


def last_event_seq(path: Path) -> int:
    """The number of the last event in the file, 0 when there is none. Ends a torn last line first."""
    with contextlib.suppress(FileNotFoundError), path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        if size and file.read(1) != b"\n":
            file.write(b"\n")
    return max((event.seq for event in tail_events(path)), default=0)


def tail_events(path: Path, window: int = 1 << 16) -> list[LifecycleEvent]:
    """The last events of a file that may be long: what `window` bytes hold, but at least one."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return []
    found = LifecycleReader(path, max(0, size - window)).poll()
    return found if found or window >= size else tail_events(path, 8 * window)
