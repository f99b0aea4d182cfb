"""Steps and episodes that workers publish: a bounded ring a run, read by anybody, waited for by nobody."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.trainer.broker import Subscriber

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
