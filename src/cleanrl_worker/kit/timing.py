"""How fast a run is, and where its time goes."""

from __future__ import annotations

from collections import defaultdict
from time import perf_counter
from typing import Protocol

FIRST_SECONDS = 0.2
"""From so long on, what a run has done says something of its speed; a viewer waits for the first word."""
EVERY_SECONDS = 1.0


class ScalarSink(Protocol):
    """Anything that takes scalars."""

    def add_scalar(self, tag: str, value: float, step: int) -> None: ...


class Stopwatch:
    """Adds up wall time per section of the training loop; the loop says which section it enters."""

    def __init__(self) -> None:
        self._reports = 0
        self.start(0)

    def start(self, step: int) -> None:
        """The loop begins, after `step` steps that an earlier process may have taken."""
        self._section = "other"
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._since = self._reported_at = perf_counter()
        self._step = self._reported_step = step

    def enter(self, section: str) -> float:
        """From now on time counts for `section`; gives the time of `perf_counter`."""
        now = perf_counter()
        self._spent[self._section] += now - self._since
        self._section = section
        self._since = now
        return now

    def report(self, sink: ScalarSink, step: int) -> None:
        """Log steps per second and time shares since the last report, if that is long enough ago."""
        self._step = step
        wait = EVERY_SECONDS if self._reports else FIRST_SECONDS
        if perf_counter() - self._reported_at >= wait:
            self._log(sink)

    def finish(self, sink: ScalarSink) -> None:
        """The loop has ended; a run too short for a report gets its only one here."""
        if not self._reports and self._step > self._reported_step:
            self._log(sink)

    def _log(self, sink: ScalarSink) -> None:
        self.enter(self._section)
        elapsed = self._since - self._reported_at
        sink.add_scalar("charts/SPS", (self._step - self._reported_step) / elapsed, self._step)
        for section, seconds in self._spent.items():
            sink.add_scalar(f"time/{section}", seconds / elapsed, self._step)
            self._spent[section] = 0.0
        self._reported_at = self._since
        self._reported_step = self._step
        self._reports += 1
