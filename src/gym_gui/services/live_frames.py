"""The live pictures of one run, read beside the window while somebody looks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from gym_gui import log
from mosaic.analytics.eval_summary import EvalSummary, read_eval_summary
from mosaic.contract.errors import StorageError
from mosaic.fastlane.grid import LiveGrid, Metrics, as_rgb
from mosaic.fastlane.reader import SlotStatus

Key = tuple[int, int]
Prepare = Callable[[Sequence[tuple[Key, Any]]], Sequence[Any]]
"""Makes what is shown of pictures, (height, width, 3) of bytes; a key changes when its picture does."""

_LOOK_SECONDS = 1 / 30
_STATUS_SECONDS = 0.5
_SUMMARY_SECONDS = 1.0
_RATE_SECONDS = 2.0


@dataclass(frozen=True)
class LiveNews:
    """What is to be seen now."""

    pictures: Sequence[Any]
    """What `prepare` has made of the frames, by slot."""
    status: SlotStatus
    metrics: Metrics | None
    frames_per_second: float
    summary: EvalSummary | None


class LiveFrames(QObject):
    """Looking makes environments render, so it looks only between `start` and `stop`.

    `news` comes when there is something new to `take`, and not again before it was taken.
    """

    news = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._stop: threading.Event | None = None
        self._lock = threading.Lock()
        self._newest: LiveNews | None = None
        self._thread: threading.Thread | None = None

    def start(self, run_id: str, prepare: Prepare, evaluation: Path | None = None) -> None:
        """Look at a run; `evaluation` is the folder of one that evaluates.

        `prepare` is called in the thread with the frames that there are, each with the key of its content.
        """
        self.stop()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._look,
            args=(run_id, prepare, evaluation, self._stop),
            name=f"live {run_id}",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Look no more. The thread ends within a frame."""
        if self._stop is not None and self._thread is not None:
            self._stop.set()
            self._thread.join()
        self._stop = self._thread = None
        self._newest = None

    def take(self) -> LiveNews | None:
        """What is new; None when that was taken already."""
        with self._lock:
            newest, self._newest = self._newest, None
        return newest

    def _look(self, run_id: str, prepare: Prepare, evaluation: Path | None, stop: threading.Event) -> None:
        try:
            with LiveGrid(run_id) as grid:
                self._look_at(grid, prepare, _Summary(evaluation), stop)
        except Exception as error:
            log.fault("its live picture is lost", error, run_id)

    def _look_at(self, grid: LiveGrid, prepare: Prepare, summary: _Summary, stop: threading.Event) -> None:
        rate = _Rate()
        pictures: Sequence[Any] = ()
        told_at = -_STATUS_SECONDS
        while not stop.is_set():
            began = time.monotonic()
            changed = grid.look()
            if changed:
                rate.count(began)
                frames = grid.frames().items()
                pictures = prepare([((slot, frame.number), as_rgb(frame.pixels)) for slot, frame in frames])
            if changed or began - told_at >= _STATUS_SECONDS:
                told_at = began
                found = LiveNews(
                    pictures, grid.status(), grid.metrics(), rate.per_second(began), summary.read(began)
                )
                with self._lock:
                    waits, self._newest = self._newest is not None, found
                if not waits and not stop.is_set():
                    self.news.emit()
            stop.wait(max(0.002, _LOOK_SECONDS - (time.monotonic() - began)))


class _Rate:
    """How many pictures have come in each second of late."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def count(self, now: float) -> None:
        self._times.append(now)

    def per_second(self, now: float) -> float:
        self._times = [at for at in self._times if now - at <= _RATE_SECONDS]
        if len(self._times) < 2:
            return 0.0
        return (len(self._times) - 1) / max(1e-3, now - self._times[0])


class _Summary:
    """The summary of an evaluation, looked at once a second."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._read_at = -_SUMMARY_SECONDS
        self._found: EvalSummary | None = None

    def read(self, now: float) -> EvalSummary | None:
        if self._folder is not None and now - self._read_at >= _SUMMARY_SECONDS:
            self._read_at = now
            try:
                self._found = read_eval_summary(self._folder)
            except StorageError as error:
                log.info(log.Code.STREAM_LOST, str(error))
        return self._found
