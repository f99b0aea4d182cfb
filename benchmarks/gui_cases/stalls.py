"""How late the event loop is: a timer that should ring every few milliseconds, and when it did."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QObject, Qt, QTimer

BEAT_MS = 4


@dataclass(frozen=True)
class Stalls:
    """How long the loop was held up between two beats, over one case, in milliseconds."""

    seconds: float
    late: list[float]
    work: list[float]
    """The CPU time of the window's own thread between the same beats: not what it waited for a core."""

    def text(self) -> str:
        return (
            f"p50 {np.quantile(self.late, 0.5):.1f}, p99 {self.p99:.1f}, worst {self.worst:.0f} ms "
            f"(own work: p99 {np.quantile(self.work, 0.99):.1f}, worst {max(self.work):.0f} ms) "
            f"in {self.seconds:.0f} s"
        )

    @property
    def p99(self) -> float:
        return float(np.quantile(self.late, 0.99))

    @property
    def worst(self) -> float:
        return max(self.late)


class StallMeter(QObject):
    """Beats while it is on. What it counts is the time beyond the beat that each took to come."""

    def __init__(self) -> None:
        super().__init__()
        self._timer = QTimer(self, interval=BEAT_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._late: list[float] = []
        self._work: list[float] = []
        self._last = self._began = self._worked = 0.0

    def start(self) -> None:
        self._late, self._work = [], []
        self._last = self._began = time.perf_counter()
        self._worked = time.thread_time()
        self._timer.start()

    def stop(self) -> Stalls:
        self._timer.stop()
        return Stalls(time.perf_counter() - self._began, self._late, self._work)

    def _beat(self) -> None:
        now, worked = time.perf_counter(), time.thread_time()
        self._late.append(max(0.0, 1000 * (now - self._last) - BEAT_MS))
        self._work.append(1000 * (worked - self._worked))
        self._last, self._worked = now, worked
