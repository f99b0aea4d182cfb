"""The pictures of a video file, decoded in a thread at the speed they are shown."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shiboken6
from PySide6.QtCore import QObject, Signal, SignalInstance

from mosaic.analytics.film import require_av
from mosaic.contract.errors import MosaicError, StorageError


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
            if self._closing or self._seek is not None:
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

    def _wait_until(self, moment: float) -> None:
        with self._lock:
            while not self._closing and self._seek is None:
                left = moment - time.monotonic()
                if left <= 0:
                    return
                self._lock.wait(left)

    def _wait_while_still(self) -> bool:
        """Wait until the film goes on; False when it goes on elsewhere or not at all."""
        with self._lock:
            stood = not self._playing
            while not self._playing and not self._closing and self._seek is None:
                self._lock.wait()
            if stood:
                self._resumed_at = time.monotonic()
            return not self._closing and self._seek is None

    def _wait_at_end(self) -> float | None:
        self._say(self.ended)
        with self._lock:
            self._playing = False
            while not self._closing and self._seek is None and not self._playing:
                self._lock.wait()
            seek, self._seek = self._seek, None
        return seek
