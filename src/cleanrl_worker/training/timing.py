"""How fast a run is, and where its time goes."""

from __future__ import annotations

from time import perf_counter
from typing import Protocol


class ScalarSink(Protocol):
    """Anything that takes scalars."""

    def add_scalar(self, tag: str, value: float, step: int) -> None: ...


class Stopwatch:
    """Adds up wall time per section of the training loop; the loop says which section it enters."""

    def __init__(self) -> None:
        self._section = "other"
        self._spent: dict[str, float] = {}
        self._since = self._reported_at = perf_counter()
        self._reported_step = 0
        self._reported_once = False

    def enter(self, section: str) -> None:
        """From now on time counts for `section`."""
        now = perf_counter()
        self._spent[self._section] = self._spent.get(self._section, 0.0) + now - self._since
        self._section = section
        self._since = now

    def report(self, sink: ScalarSink, step: int, every: float = 1.0) -> None:
        """Log steps per second and time shares since the last report, at most once in `every` seconds."""
        self.enter(self._section)
        elapsed = self._since - self._reported_at
        if self._reported_once and elapsed < every:
            return
        sink.add_scalar("charts/SPS", (step - self._reported_step) / elapsed, step)
        for section, seconds in self._spent.items():
            sink.add_scalar(f"time/{section}", seconds / elapsed, step)
        self._spent = dict.fromkeys(self._spent, 0.0)
        self._reported_at = self._since
        self._reported_step = step
        self._reported_once = True
