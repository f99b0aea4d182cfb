"""What others want of a sweep, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any


@dataclass(frozen=True)
class Ending:
    """How a sweep ended: `completed`, `cancelled`, or `failed` with the cause."""

    status: str
    cause: str = ""


class Wishes:
    """What others want of the sweep: signals and the daemon write it, the engine reads it."""

    def __init__(self) -> None:
        self.news: SimpleQueue[Any] = SimpleQueue()
        self.cancelled = False
        self.paused = False

    def cancel(self) -> None:
        self.cancelled = True
        self.news.put(None)

    def pause(self, wanted: bool) -> None:
        self.paused = wanted
        self.news.put(None)
