"""The daemon's wishes to live workers: pause, credits and rate. Only the newest of each is kept."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from mosaic.contract.proto import trainer_pb2 as pb

CREDIT_WINDOW = 2_000
"""How much a worker may publish before the daemon has taken it in."""
UNWATCHED_RATE_HZ = 10.0
"""While nobody reads what a worker publishes, a little of it is enough."""


class ControlChannel:
    """What one connected worker has not been told yet."""

    def __init__(self) -> None:
        self._wake = asyncio.Event()
        self._pause: bool | None = None
        self._credits = CREDIT_WINDOW
        self._rate: float | None = None
        self._wake.set()

    def pause(self, wanted: bool) -> None:
        self._pause = wanted
        self._wake.set()

    def grant(self, credits: int) -> None:
        # A worker that does not listen must not find more than a window when it does.
        self._credits = min(self._credits + credits, CREDIT_WINDOW)
        self._wake.set()

    def limit_rate(self, hertz: float) -> None:
        self._rate = hertz
        self._wake.set()

    def wake(self) -> None:
        self._wake.set()

    async def messages(self) -> list[pb.ControlMessage]:
        """The next messages, as soon as there are any; none when the channel was only woken."""
        await self._wake.wait()
        self._wake.clear()
        found = []
        if self._pause is not None:
            found.append(pb.ControlMessage(pause=True) if self._pause else pb.ControlMessage(resume=True))
            self._pause = None
        # The rate first, so that the first credits are not spent without one.
        if self._rate is not None:
            found.append(pb.ControlMessage(max_rate_hz=self._rate))
            self._rate = None
        if self._credits:
            found.append(pb.ControlMessage(grant_steps=self._credits))
            self._credits = 0
        return found


class Control:
    """The workers that are connected now, one channel a run: a newer connection replaces the older."""

    def __init__(self) -> None:
        self._channels: dict[str, ControlChannel] = {}
        self._readers: Counter[str] = Counter()

    @contextmanager
    def connect(self, run_id: str) -> Iterator[ControlChannel]:
        channel = ControlChannel()
        channel.limit_rate(self._rate(run_id))
        older = self._channels.get(run_id)
        self._channels[run_id] = channel
        if older is not None:
            # It waits for messages that will not come: let it see that it is replaced.
            older.wake()
        try:
            yield channel
        finally:
            if self._channels.get(run_id) is channel:
                del self._channels[run_id]

    def is_current(self, run_id: str, channel: ControlChannel) -> bool:
        return self._channels.get(run_id) is channel

    def pause(self, run_id: str, wanted: bool) -> None:
        """Tell the worker now; one that is not connected learns it when it comes."""
        if run_id in self._channels:
            self._channels[run_id].pause(wanted)

    def grant(self, run_id: str, credits: int) -> None:
        if run_id in self._channels:
            self._channels[run_id].grant(credits)

    @contextmanager
    def reading(self, run_id: str) -> Iterator[None]:
        """Somebody reads what the run publishes: the worker need not hold back."""
        self._count_reader(run_id, 1)
        try:
            yield
        finally:
            self._count_reader(run_id, -1)

    def _count_reader(self, run_id: str, change: int) -> None:
        before = self._rate(run_id)
        self._readers[run_id] += change
        if not self._readers[run_id]:
            del self._readers[run_id]
        if self._rate(run_id) != before and run_id in self._channels:
            self._channels[run_id].limit_rate(self._rate(run_id))

    def _rate(self, run_id: str) -> float:
        return 0.0 if self._readers[run_id] else UNWATCHED_RATE_HZ

    def wake_all(self) -> None:
        for channel in self._channels.values():
            channel.wake()
