"""Lifecycle events of a run, as JSON lines on the supervisor's stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mosaic.contract.events import EventKind, LifecycleEvent, LifecycleWriter, last_event_seq


class LifecycleEmitter:
    """Writes the events of one run; numbering goes on when stdout is the run's event file."""

    def __init__(self, run_id: str, events: Path) -> None:
        descriptor = sys.stdout.fileno()
        is_event_file = events.exists() and os.path.samestat(os.fstat(descriptor), events.stat())
        self._writer = LifecycleWriter(run_id, descriptor, last_event_seq(events) if is_event_file else 0)

    def run_started(self, payload: Mapping[str, Any]) -> LifecycleEvent:
        return self._writer.write(EventKind.RUN_STARTED, payload)

    def heartbeat(self, payload: Mapping[str, Any]) -> LifecycleEvent:
        return self._writer.write(EventKind.HEARTBEAT, payload)

    def checkpoint_saved(self, payload: Mapping[str, Any]) -> LifecycleEvent:
        return self._writer.write(EventKind.CHECKPOINT_SAVED, payload)

    def run_completed(self, payload: Mapping[str, Any]) -> LifecycleEvent:
        return self._writer.write(EventKind.RUN_COMPLETED, payload)

    def run_failed(self, payload: Mapping[str, Any]) -> LifecycleEvent:
        return self._writer.write(EventKind.RUN_FAILED, payload)

    def run_cancelled(self, payload: Mapping[str, Any]) -> LifecycleEvent:
        return self._writer.write(EventKind.RUN_CANCELLED, payload)
