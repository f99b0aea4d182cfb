"""What the training process tells over its pipe, published by the supervisor."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mosaic.worker.link import TrainerLink


class PublishingPipe:
    """A pipe for the training process; its lines are `steps {…}` and `episodes {…}`."""

    def __init__(self) -> None:
        self.read_fd, self.write_fd = os.pipe()
        os.set_blocking(self.read_fd, False)
        self._rest = b""

    def attach(self, link: TrainerLink) -> None:
        """From now on what is read is published."""
        from mosaic.worker.publisher import StepPublisher

        self._publishers = {b"steps": StepPublisher(link), b"episodes": StepPublisher(link, "episodes")}

    def read(self) -> bool:
        """Publish what there is; False at the end of the pipe."""
        data = os.read(self.read_fd, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            stream, _, text = line.partition(b" ")
            self._publishers[stream].publish(json.loads(text))
        return bool(data)

    def close(self) -> None:
        """Publish the rest, and wait a while until it is sent."""
        with contextlib.suppress(BlockingIOError):
            while self.read():
                pass
        for publisher in self._publishers.values():
            publisher.close()
        os.close(self.read_fd)
