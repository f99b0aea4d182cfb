"""How much the daemon lets a worker publish."""

from __future__ import annotations

import threading


class Allowance:
    """Credits, which all publishers of a worker share, and a rate that holds for each of them.

    The first grant of a connection is the whole window: more than that is never held, so that credits given
    back twice (by us for a call that failed, and by the daemon that took it in after all) do no harm.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        """Held to look and to take; told of every change."""
        self._credits = 0
        self._window = 0
        self._rate_hz = 0.0

    @property
    def rate_hz(self) -> float:
        """At most so many items a second; 0 for no limit."""
        return self._rate_hz

    def grant(self, credits: int) -> None:
        with self.changed:
            self._window = self._window or credits
            self._credits = min(self._credits + credits, self._window)
            self.changed.notify_all()

    def limit_rate(self, hertz: float) -> None:
        with self.changed:
            self._rate_hz = hertz
            self.changed.notify_all()

    def take(self, wanted: int) -> int:
        """As many credits as there are, but not more than `wanted`."""
        with self.changed:
            taken = min(wanted, self._credits)
            self._credits -= taken
            return taken

    def forget(self) -> None:
        """The connection is lost: the next one grants anew."""
        with self.changed:
            self._credits = self._window = 0
