"""What a worker says of itself at the handshake, and a run's lifecycle events on its supervisor's stdout."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mosaic.contract.atomic import insist, is_full
from mosaic.contract.events import EventKind, LifecycleEvent, LifecycleWriter, last_event_seq


@dataclass(frozen=True)
class Introduction:
    """One run's worker, as the daemon keeps it with the run."""

    run_id: str
    worker_id: str
    worker_kind: str
    schema_id: str = ""
    schema_version: int = 1
    supports_pause: bool = False
    supports_checkpoint: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    """Anything else worth keeping (algorithm, environment, …), as JSON can hold it."""


_ROOM_BYTES = 128 * 2**10
"""Behind the event file's end, so much room is kept for what must be said on a full disk."""
_LAST_WORD_SECONDS = 60.0
"""How long to try to write the first and the last event when that fails for another reason."""
_FALLOC_FL_KEEP_SIZE = 1


class LifecycleEmitter(LifecycleWriter):
    """Writes the events of one run; numbering goes on when stdout is the run's event file.

    On a full disk there is room for a while: for the first event, the last one, and changes of the phase.
    Without it the first and the last one wait as long as `may_wait` allows, the others are left out.
    """

    def __init__(self, run_id: str, events: Path, may_wait: Callable[[], bool] = lambda: True) -> None:
        stdout = sys.stdout.fileno()
        self._may_wait = may_wait
        self._phase: Any = None
        self._in_file = events.exists() and os.path.samestat(os.fstat(stdout), events.stat())
        super().__init__(run_id, stdout, last_event_seq(events) if self._in_file else 0)
        self._keep_room()

    def heartbeat(self, payload: Mapping[str, Any]) -> LifecycleEvent | None:
        """None when it cannot be written: the daemon knows by the supervisor's calls that it lives."""
        if not self._keep_room() and payload.get("phase") == self._phase:
            return None
        told = self.try_to_say(EventKind.HEARTBEAT, payload)
        self._phase = payload.get("phase") if told else self._phase
        return told

    def say(self, event: EventKind, payload: Mapping[str, Any]) -> LifecycleEvent:
        """Write the first or the last event, whenever that is possible."""
        deadline = time.monotonic() + _LAST_WORD_SECONDS

        def may_wait(error: OSError) -> bool:
            return self._may_wait() if is_full(error) else time.monotonic() < deadline

        return insist(lambda: self.write(event, payload), may_wait)

    def try_to_say(self, event: EventKind, payload: Mapping[str, Any]) -> LifecycleEvent | None:
        """Write any other event; None when it cannot be written."""
        try:
            return self.write(event, payload)
        except OSError:
            return None

    def _keep_room(self) -> bool:
        """Take room behind the end of the file; False when the disk is full."""
        if not self._in_file:
            return True
        size = os.fstat(self._descriptor).st_size
        taken = ctypes.CDLL(None, use_errno=True).fallocate(
            self._descriptor, _FALLOC_FL_KEEP_SIZE, ctypes.c_long(size), ctypes.c_long(_ROOM_BYTES)
        )
        # A file system that cannot do this takes events as long as it takes anything.
        return taken == 0 or ctypes.get_errno() not in (errno.ENOSPC, errno.EDQUOT)
