"""Steps and episodes that workers publish: a bounded ring a run, read by anybody, waited for by nobody."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from mosaic.contract.proto import trainer_pb2 as pb

KEPT_ITEMS = 10_000
KEPT_BYTES = 8 * 2**20
BATCH_ITEMS = 500


class Ring:
    """The newest items of one stream. The oldest are dropped when it is full."""

    def __init__(self, items: int = KEPT_ITEMS, size: int = KEPT_BYTES) -> None:
        self._items: deque[pb.Published] = deque()
        self._most_items = items
        self._most_bytes = size
        self._bytes = 0
        self.last_seq = 0

    def add(self, items: Sequence[pb.Published]) -> int:
        """Keep new items; ones sent again after a lost connection are known by their number."""
        accepted = 0
        for item in items:
            if item.seq > self.last_seq:
                self.last_seq = item.seq
                self._items.append(item)
                self._bytes += item.ByteSize()
                accepted += 1
        while len(self._items) > self._most_items or self._bytes > self._most_bytes:
            self._bytes -= self._items.popleft().ByteSize()
        return accepted

    def since(self, seq: int) -> pb.PublishedBatch | None:
        """The next items after `seq`, with the number of those that were dropped between; None for none."""
        if seq >= self.last_seq or not self._items:
            return None
        first = self._items[0].seq
        start = max(0, seq + 1 - first)
        # Numbers may have gaps of the worker's own making, so the place is searched from a lower bound.
        start = min(start, len(self._items) - 1)
        while start > 0 and self._items[start - 1].seq > seq:
            start -= 1
        chosen = [item for item in list(self._items)[start : start + BATCH_ITEMS + 1] if item.seq > seq]
        dropped = max(0, first - seq - 1)
        return pb.PublishedBatch(items=chosen[:BATCH_ITEMS], dropped=dropped)


class Published:
    """The rings of all live runs."""

    def __init__(self) -> None:
        self._rings: dict[tuple[str, str], Ring] = {}

    def ring(self, run_id: str, stream: str) -> Ring:
        return self._rings.setdefault((run_id, stream), Ring())

    def forget(self, run_id: str) -> None:
        """Drop what a removed run had published."""
        for key in [key for key in self._rings if key[0] == run_id]:
            del self._rings[key]
