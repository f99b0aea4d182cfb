"""What flows between calls: news for open streams, wishes to live workers, and what those publish."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mosaic.contract.proto import trainer_pb2 as pb


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

    def take(self) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """The headlines and the changed runs since the last time."""
        taken = self._headlines, list(self._changed)
        self._headlines, self._changed = {}, {}
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
        self.subscribers: set[Subscriber] = set()

    @contextmanager
    def subscribe(self, run_id: str = "") -> Iterator[Subscriber]:
        """A subscriber to one run, or to all."""
        subscriber = Subscriber(run_id)
        self.subscribers.add(subscriber)
        try:
            yield subscriber
        finally:
            self.subscribers.discard(subscriber)

    def publish(self, run_id: str, headline: dict[str, Any] | None = None, changed: bool = False) -> None:
        """With `changed` the run has another name, place or the like, or is removed: of that no state change
        tells."""
        for subscriber in self.subscribers:
            subscriber.notify(run_id, headline, changed)

    def wake_all(self) -> None:
        """Let every open stream look around, for the end of the daemon."""
        for subscriber in self.subscribers:
            subscriber.notify(subscriber.run_id, None)


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

    def tell(self, pause: bool | None = None, credits: int = 0, rate: float | None = None) -> None:
        """Leave a wish, more credits or another rate; without any the channel is only woken."""
        self._pause = self._pause if pause is None else pause
        # A worker that does not listen must not find more than a window when it does.
        self._credits = min(self._credits + credits, CREDIT_WINDOW)
        self._rate = self._rate if rate is None else rate
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
        channel, older = ControlChannel(), self._channels.get(run_id)
        channel.tell(rate=self._rate(run_id))
        self._channels[run_id] = channel
        if older is not None:
            # It waits for messages that will not come: let it see that it is replaced.
            older.tell()
        try:
            yield channel
        finally:
            if self._channels.get(run_id) is channel:
                del self._channels[run_id]

    def is_current(self, run_id: str, channel: ControlChannel) -> bool:
        return self._channels.get(run_id) is channel

    def tell(
        self, run_id: str, pause: bool | None = None, credits: int = 0, rate: float | None = None
    ) -> None:
        """Tell the worker now; one that is not connected learns it when it comes."""
        if run_id in self._channels:
            self._channels[run_id].tell(pause, credits, rate)

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
        if self._rate(run_id) != before:
            self.tell(run_id, rate=self._rate(run_id))

    def _rate(self, run_id: str) -> float:
        return 0.0 if self._readers[run_id] else UNWATCHED_RATE_HZ

    def wake_all(self) -> None:
        for channel in self._channels.values():
            channel.tell()


STREAMS = ("steps", "episodes")
KEPT_ITEMS = 10_000
KEPT_BYTES = 8 * 2**20
KEPT_BYTES_IN_ALL = 64 * 2**20
BATCH_ITEMS = 500
BATCH_BYTES = 2**18
"""A reader that has stopped costs the daemon one batch."""


class Ring:
    """The newest items of one stream. The oldest are dropped when it is full."""

    def __init__(self, items: int = KEPT_ITEMS, size: int = KEPT_BYTES) -> None:
        # A list: cutting off its front moves a few kilobytes, and a place in it is found by halving.
        self._items: list[pb.Published] = []
        self._most_items = items
        self._most_bytes = size
        self._base = 0
        self.bytes = 0
        self.last_seq = 0

    def begin(self) -> None:
        """A worker registers and numbers from 1 again: its items come after those of its predecessor."""
        self._base = self.last_seq

    def add(self, items: Sequence[pb.Published]) -> int:
        """Keep new items; ones sent again after a lost connection are known by their number."""
        accepted = 0
        for item in items:
            item.seq += self._base
            if item.seq > self.last_seq:
                self.last_seq = item.seq
                self._items.append(item)
                self.bytes += item.ByteSize()
                accepted += 1
        surplus, left = 0, self.bytes
        while len(self._items) - surplus > self._most_items or left > self._most_bytes:
            left -= self._items[surplus].ByteSize()
            surplus += 1
        del self._items[:surplus]
        self.bytes = left
        return accepted

    def since(self, seq: int) -> pb.PublishedBatch | None:
        """The next items after `seq`, with the number of those missing among them; None for none."""
        start = bisect_right(self._items, seq, key=lambda item: item.seq)
        chosen, size = self._items[start : start + BATCH_ITEMS], 0
        for count, item in enumerate(chosen):
            size += item.ByteSize()
            if count and size > BATCH_BYTES:
                del chosen[count:]
                break
        if not chosen:
            return None
        return pb.PublishedBatch(items=chosen, dropped=chosen[-1].seq - seq - len(chosen))

    def clear(self) -> None:
        """Drop all items; the numbering goes on."""
        self._items.clear()
        self.bytes = 0


class Published:
    """The rings of all runs. When they hold too much together, those written to longest ago are emptied."""

    def __init__(self, size: int = KEPT_BYTES_IN_ALL) -> None:
        self._rings: OrderedDict[tuple[str, str], Ring] = OrderedDict()
        self._readers: dict[str, set[Subscriber]] = {}
        self._most_bytes = size
        self._bytes = 0

    def ring(self, run_id: str, stream: str) -> Ring:
        return self._rings.setdefault((run_id, stream), Ring())

    def begin(self, run_id: str) -> None:
        """A worker of this run registers."""
        for stream in STREAMS:
            if (run_id, stream) in self._rings:
                self._rings[run_id, stream].begin()

    def add(self, run_id: str, stream: str, items: Sequence[pb.Published]) -> int:
        """Keep what a worker publishes and wake those who read it; gives how many items were new."""
        ring = self.ring(run_id, stream)
        self._rings.move_to_end((run_id, stream))
        self._bytes -= ring.bytes
        accepted = ring.add(items)
        self._bytes += ring.bytes
        for other in self._rings.values():
            if self._bytes <= self._most_bytes:
                break
            self._bytes -= other.bytes
            other.clear()
        for reader in self._readers.get(run_id, ()):
            reader.notify(run_id, None)
        return accepted

    @contextmanager
    def reading(self, run_id: str, reader: Subscriber) -> Iterator[None]:
        """Wake `reader` whenever the run publishes. Nobody else is woken: watchers of states care not."""
        readers = self._readers.setdefault(run_id, set())
        readers.add(reader)
        try:
            yield
        finally:
            readers.discard(reader)
            if not readers:
                self._readers.pop(run_id, None)

    def forget(self, run_id: str) -> None:
        """Drop what a removed run had published."""
        for stream in STREAMS:
            ring = self._rings.pop((run_id, stream), None)
            self._bytes -= ring.bytes if ring is not None else 0
