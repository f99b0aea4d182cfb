"""Pictures as a video: an MP4 file that any player shows."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mosaic.contract.errors import UserError

if TYPE_CHECKING:
    from av.container import OutputContainer
    from av.video.stream import VideoStream


class Film:
    """The frames of one episode, compressed as they come."""

    def __init__(self, frames_per_second: float) -> None:
        self._data = io.BytesIO()
        self._rate = Fraction(frames_per_second).limit_denominator(1000)
        self._container: OutputContainer | None = None
        self._stream: VideoStream | None = None
        self.frames = 0

    def add(self, frame: NDArray[Any]) -> None:
        """Take in one picture of (height, width, 3) bytes; the first one's size is that of the film."""
        import av

        if frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
            raise ValueError(f"render() gave {frame.dtype} of shape {frame.shape}, not a picture")
        # The codec halves the colours' resolution, so it takes even sizes only.
        frame = np.pad(frame, ((0, frame.shape[0] % 2), (0, frame.shape[1] % 2), (0, 0)), mode="edge")
        if self._stream is None or self._container is None:
            self._container = av.open(self._data, "w", format="mp4")
            self._stream = self._container.add_stream("libx264", rate=self._rate)
            self._stream.height, self._stream.width = frame.shape[:2]
            self._stream.pix_fmt = "yuv420p"
            # The run has its own count of threads; this is a guest in one of them.
            self._stream.codec_context.thread_count = 1
        picture = av.VideoFrame.from_ndarray(frame, format="rgb24")
        if (picture.height, picture.width) != (self._stream.height, self._stream.width):
            picture = picture.reformat(width=self._stream.width, height=self._stream.height)
        self._container.mux(self._stream.encode(picture))
        self.frames += 1

    def finish(self) -> bytes:
        """The whole file."""
        assert self._stream is not None and self._container is not None
        self._container.mux(self._stream.encode(None))
        self._container.close()
        return self._data.getvalue()


def require_av(who: str) -> None:
    """Raise UserError with the command that helps when nothing can write videos; `who` wants them."""
    try:
        import av  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"{who} needs the package 'av', which is not installed; run `./mosaic extras install video`."
        ) from error
