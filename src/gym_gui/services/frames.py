"""Pictures read beside the window: the live ones of a run, and those of a video file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shiboken6
from PySide6.QtCore import QObject, Signal, SignalInstance

from gym_gui import log
from mosaic.analytics.eval_summary import EvalSummary, read_eval_summary
from mosaic.analytics.film import require_av
from mosaic.contract.errors import MosaicError, StorageError
from mosaic.fastlane.grid import LiveGrid, Metrics, as_rgb
from mosaic.fastlane.reader import SlotStatus

Key = tuple[int, int]
Prepare = Callable[[Sequence[tuple[Key, Any]]], Sequence[Any]]
"""Makes what is shown of pictures, (height, width, 3) of bytes; a key changes when its picture does."""

_LOOK_SECONDS = 1 / 30
_STATUS_SECONDS = 0.5
_SUMMARY_SECONDS = 1.0
_RATE_SECONDS = 2.0
"""So long back the pictures of each second are counted."""


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
        times: list[float] = []
        pictures: Sequence[Any] = ()
        told_at = -_STATUS_SECONDS
        while not stop.is_set():
            began = time.monotonic()
            changed = grid.look()
            if changed:
                times.append(began)
                frames = grid.frames().items()
                pictures = prepare([((slot, frame.number), as_rgb(frame.pixels)) for slot, frame in frames])
            if changed or began - told_at >= _STATUS_SECONDS:
                told_at = began
                times = [at for at in times if began - at <= _RATE_SECONDS]
                rate = (len(times) - 1) / max(1e-3, began - times[0]) if len(times) > 1 else 0.0
                found = LiveNews(pictures, grid.status(), grid.metrics(), rate, summary.read(began))
                with self._lock:
                    waits, self._newest = self._newest is not None, found
                if not waits and not stop.is_set():
                    self.news.emit()
            stop.wait(max(0.002, _LOOK_SECONDS - (time.monotonic() - began)))


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


@dataclass(frozen=True)
class VideoFrame:
    """One picture, (height, width, 3), and where in the film it is."""

    pixels: Any
    seconds: float
    length: float


class VideoFrames(QObject):
    """Plays one file. `news` comes for each picture, and not again before it was taken."""

    news = Signal()
    ended = Signal()
    failed = Signal(str)

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._lock = threading.Condition()
        self._newest: VideoFrame | None = None
        self._playing = True
        self._seek: float | None = None
        self._resumed_at = 0.0
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"video {path.name}", daemon=True)

    def start(self) -> None:
        """Begin to play; who wants to hear of it has connected by now."""
        self._thread.start()

    def take(self) -> VideoFrame | None:
        """The picture to be shown now; None when that was taken already."""
        with self._lock:
            newest, self._newest = self._newest, None
        return newest

    def play(self, playing: bool) -> None:
        """Go on, or stand still."""
        with self._lock:
            self._playing = playing
            self._lock.notify()

    def seek(self, seconds: float) -> None:
        """Show the picture at a place of the film."""
        with self._lock:
            self._seek = max(0.0, seconds)
            self._lock.notify()

    def close(self) -> None:
        """Let the thread end; it is not waited for, as it may be opening the file."""
        with self._lock:
            self._closing = True
            self._lock.notify()

    def _run(self) -> None:
        try:
            require_av("Playing a video")
            import av

            try:
                with av.open(str(self._path)) as film:
                    self._show(film)
            except (OSError, ValueError, av.FFmpegError) as error:
                raise StorageError(f"{self._path.name} cannot be played: {error}.") from error
        except MosaicError as error:
            self._say(self.failed, str(error))

    def _say(self, signal: SignalInstance, *values: object) -> None:
        # Whoever has closed this may delete it: `close` waits here until it is said.
        with self._lock:
            if not self._closing and shiboken6.isValid(self):
                signal.emit(*values)

    def _show(self, film: Any) -> None:
        stream = film.streams.video[0]
        stream.thread_type = "NONE"
        length = float(stream.duration * stream.time_base) if stream.duration else 0.0
        start = 0.0
        while not self._closing:
            seek = self._play_from(film, stream, start, length)
            if seek is None:
                seek = self._wait_at_end()
            start = seek if seek is not None else 0.0

    def _play_from(self, film: Any, stream: Any, start: float, length: float) -> float | None:
        """Show pictures from `start` on; gives the place that somebody wants to go to, None at the end."""
        film.seek(int(start / stream.time_base), stream=stream)
        shown_at, shown = time.monotonic(), start
        first = True
        for frame in film.decode(stream):
            seconds = float(frame.pts * stream.time_base) if frame.pts is not None else shown
            # A film can be entered at some pictures only; those before the wanted one are passed over.
            if first and seconds < start - 1e-3:
                continue
            if not first:
                self._wait_until(shown_at + seconds - shown)
            if self._interrupted():
                break
            pixels = np.ascontiguousarray(frame.to_ndarray(format="rgb24"))
            shown_at, shown = time.monotonic(), seconds
            self._tell(VideoFrame(pixels, seconds, length))
            first = False
            if not self._wait_while_still():
                break
            shown_at = max(shown_at, self._resumed_at)
        with self._lock:
            seek, self._seek = self._seek, None
        return seek

    def _tell(self, frame: VideoFrame) -> None:
        with self._lock:
            waits, self._newest = self._newest is not None, frame
        if not waits:
            self._say(self.news)

    def _interrupted(self) -> bool:
        """Whether the film is to go on elsewhere, or not at all."""
        return self._closing or self._seek is not None

    def _wait_until(self, moment: float) -> None:
        with self._lock:
            self._lock.wait_for(self._interrupted, max(0.0, moment - time.monotonic()))

    def _wait_while_still(self) -> bool:
        """Wait until the film goes on; False when it goes on elsewhere or not at all."""
        with self._lock:
            if not self._playing:
                self._lock.wait_for(lambda: self._playing or self._interrupted())
                self._resumed_at = time.monotonic()
            return not self._interrupted()

    def _wait_at_end(self) -> float | None:
        self._say(self.ended)
        with self._lock:
            self._playing = False
            self._lock.wait_for(lambda: self._playing or self._interrupted())
            seek, self._seek = self._seek, None
        return seek
