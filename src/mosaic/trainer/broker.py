"""Tells waiting streams that something is new. It holds no history: streams read that from the registry."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Subscriber:
    """One stream's wake-up, and since it last looked the newest headline of each run and who was changed.

    Headlines replace each other, so a stopped reader costs one entry a run and never grows.
    """

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self._wake = asyncio.Event()
        self._headlines: dict[str, dict[str, Any]] = {}
        self._changed: dict[str, None] = {}

    def notify(self, run_id: str, headline: dict[str, Any] | None, changed: bool = False) -> None:
        if self.run_id in ("", run_id):
            if headline is not None:
                self._headlines[run_id] = headline
            if changed:
                self._changed[run_id] = None
            self._wake.set()

    def take_changed(self) -> list[str]:
        taken, self._changed = list(self._changed), {}
        return taken

    def take_headlines(self) -> dict[str, dict[str, Any]]:
        taken, self._headlines = self._headlines, {}
        return taken

    async def wait(self, seconds: float | None = None) -> None:
        """Until something is new, or `seconds` have passed."""
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return
        self._wake.clear()


class Broker:
    """The streams that are open now."""

    def __init__(self) -> None:
        self._subscribers: set[Subscriber] = set()

    @property
    def streams(self) -> int:
        return len(self._subscribers)

    @contextmanager
    def subscribe(self, run_id: str = "") -> Iterator[Subscriber]:
        """A subscriber to one run, or to all."""
        subscriber = Subscriber(run_id)
        self._subscribers.add(subscriber)
        try:
            yield subscriber
        finally:
            self._subscribers.discard(subscriber)

    def publish(self, run_id: str, headline: dict[str, Any] | None = None, changed: bool = False) -> None:
        """With `changed` the run has another name, place or the like, or is removed: of that no state change
        tells."""
        for subscriber in self._subscribers:
            subscriber.notify(run_id, headline, changed)

    def wake_all(self) -> None:
        """Let every open stream look around, for the end of the daemon."""
        for subscriber in self._subscribers:
            subscriber.notify(subscriber.run_id, None)
