"""Publishing steps and episodes without ever waiting for anybody."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import Any, Literal

from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.worker.link import Connection, TrainerLink

KEPT_ITEMS = 10_000
KEPT_BYTES = 8 * 2**20
FLUSH_SECONDS = 5.0
_BATCH_ITEMS = 500
_BATCH_BYTES = 2**20
_LINGER_SECONDS = 0.02
"""Items that come close together travel together."""
_RETRY_SECONDS = 0.5


class StepPublisher:
    """One of a run's two streams. What does not fit the buffer is dropped, oldest first, and counted.

    The buffer also holds what was sent, as far as it reaches: a daemon that was started anew gets it again.
    Close it before the link.
    """

    def __init__(
        self,
        link: TrainerLink,
        stream: Literal["steps", "episodes"] = "steps",
        kept_items: int = KEPT_ITEMS,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self._link = link
        self._stream = stream
        self._most_items = kept_items
        self._most_bytes = kept_bytes
        self._changed = link.allowance.changed
        self._sent: deque[pb.Published] = deque()
        self._waiting: deque[pb.Published] = deque()
        self._bytes = 0
        self._seq = 0
        self.dropped = 0
        """How many items were dropped before they were sent."""
        self._sent_at = 0.0
        self._retry_at = 0.0
        self._idle = False
        self._close_at: float | None = None
        self._daemon = link.connection.daemon
        self._thread = threading.Thread(target=self._work, name=f"publish {stream}", daemon=True)
        self._thread.start()

    def publish(self, payload: Mapping[str, Any]) -> None:
        """Number an item and queue it; never waits for the daemon."""
        text = json.dumps(payload, separators=(",", ":"))
        with self._changed:
            self._seq += 1
            item = pb.Published(seq=self._seq, at=time.time(), payload_json=text)
            self._waiting.append(item)
            self._bytes += item.ByteSize()
            self._make_room()
            if self._idle:
                self._changed.notify_all()

    def close(self, seconds: float = FLUSH_SECONDS) -> None:
        """Send what waits, without regard to the rate, for at most `seconds`; then stop."""
        with self._changed:
            self._close_at = time.monotonic() + seconds
            self._changed.notify_all()
        self._thread.join(seconds)

    def _make_room(self) -> None:
        while self._bytes > self._most_bytes or len(self._sent) + len(self._waiting) > self._most_items:
            if self._sent:
                self._bytes -= self._sent.popleft().ByteSize()
            elif self._waiting:
                self._bytes -= self._waiting.popleft().ByteSize()
                self.dropped += 1
            else:
                return

    def _work(self) -> None:
        while (turn := self._next_batch()) is not None:
            connection, batch = turn
            arrived = self._link.publish(connection, self._stream, batch)
            with self._changed:
                if arrived:
                    self._sent.extend(batch)
                else:
                    self._waiting.extendleft(reversed(batch))
                    self._link.allowance.grant(len(batch))
                    self._retry_at = time.monotonic() + _RETRY_SECONDS
                self._make_room()

    def _next_batch(self) -> tuple[Connection, list[pb.Published]] | None:
        """Wait until something may be sent; None when all is said, or the time for that is over."""
        with self._changed:
            while True:
                now = time.monotonic()
                connection = self._link.connection
                self._rewind_for(connection)
                if self._close_at is not None and (now >= self._close_at or not self._waiting):
                    return None
                pause, most = self._pace()
                due = max(self._sent_at + pause, self._retry_at)
                if now >= due and (batch := self._cut(most)):
                    self._sent_at = now
                    return connection, batch
                # Otherwise credits or a new rate wake us up, when idle also an item.
                self._idle = not self._waiting
                ends = [due] if self._waiting and now < due else []
                ends += [self._close_at] if self._close_at is not None else []
                self._changed.wait(min(ends) - now if ends else None)

    def _rewind_for(self, connection: Connection) -> None:
        """A daemon that was started anew has nothing: it gets all that is kept, before anything newer."""
        if connection.daemon != self._daemon:
            self._daemon = connection.daemon
            self._waiting.extendleft(reversed(self._sent))
            self._sent.clear()

    def _pace(self) -> tuple[float, int]:
        """The pause between two batches, and the most that one may hold."""
        rate = self._link.allowance.rate_hz
        if not rate or self._close_at is not None:
            return _LINGER_SECONDS, _BATCH_ITEMS
        pause = max(1.0, 1.0 / rate)
        return pause, min(_BATCH_ITEMS, round(rate * pause))

    def _cut(self, most: int) -> list[pb.Published]:
        """The next items, as far as credits, `most` and the size of a message allow."""
        fitting, size = 0, 0
        for item in islice(self._waiting, most):
            size += item.ByteSize()
            if fitting and size > _BATCH_BYTES:
                break
            fitting += 1
        return [self._waiting.popleft() for _ in range(self._link.allowance.take(fitting))]
