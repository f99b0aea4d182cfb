"""A supervisor's waiting: for the end of its training process, for signals and for wishes to pause."""

from __future__ import annotations

import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Protocol

from mosaic.contract.process import grace_seconds
from mosaic.worker.training_process import TrainingProcess

TICK_SECONDS = 1.0


class Beat(Protocol):
    """Told often that the run lives; `at_once` when something has just changed.

    It may give in how many seconds it wants to be told again, if sooner than after `TICK_SECONDS`.
    """

    def __call__(self, paused: bool = False, at_once: bool = False) -> float | None: ...


class Watch:
    """Made in the main thread, before the training process: from then on a signal is no longer lost."""

    def __init__(self) -> None:
        # Read now: a wrong number must not be found when the run is to end.
        self._grace = grace_seconds()
        self._cancelled_at: float | None = None
        self._wishes: deque[bool] = deque()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    @property
    def cancelled(self) -> bool:
        """Whether a signal has asked for the end."""
        return self._cancelled_at is not None

    def seconds_to_end(self) -> float:
        """How much is left of the time in which a cancelled run may end by itself."""
        if self._cancelled_at is None:
            return 0.0
        return max(0.0, self._cancelled_at + self._grace - time.monotonic())

    def wish_pause(self, wanted: bool) -> None:
        """Have the training process stopped, or go on. May be called from any thread."""
        self._wishes.append(wanted)
        os.write(self._wake_write, b"p")

    def until_end(
        self, training: TrainingProcess, beat: Beat, readers: Mapping[int, Callable[[], bool]] | None = None
    ) -> None:
        """Beats until the training process has ended, and its end when that was asked for.

        A reader is called when its descriptor has something to read, until it gives False.
        """
        poller, waiting = select.poll(), dict(readers or {})
        for descriptor in (training.pidfd, self._wake_read, *waiting):
            poller.register(descriptor, select.POLLIN)
        asked = paused = False
        tick = beat()
        while training.exit_code is None:
            for descriptor, _ in poller.poll((tick or TICK_SECONDS) * 1000):
                if descriptor == self._wake_read:
                    os.read(self._wake_read, 64)
                elif descriptor in waiting and not waiting[descriptor]():
                    poller.unregister(descriptor)
            training.reap()
            if self._cancelled_at is not None:
                if not asked:
                    training.ask_to_end()
                    asked = True
                if time.monotonic() - self._cancelled_at > self._grace:
                    return
            while self._wishes and not asked:
                training.set_paused(self._wishes.popleft())
            # What counts is what the process does: others can stop it, and let it go on, too.
            if training.stopped != paused:
                paused = not paused
                beat(paused, at_once=True)
            tick = beat(paused)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._cancelled_at is None:
            self._cancelled_at = time.monotonic()
