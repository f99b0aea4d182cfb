"""Work that may block, done beside the window."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import shiboken6
from PySide6.QtCore import QObject, Qt, Signal, Slot

from gym_gui.services.notifications import Notifications

T = TypeVar("T")

_THREADS = 4
_END_SECONDS = 35.0
"""A call to the daemon ends by its deadline; nothing that runs here may take longer to stop."""


@dataclass(frozen=True)
class _Job:
    """What is to be done, and for whom."""

    work: Callable[[], Any]
    done: Callable[[Any], object]
    failed: Callable[[Exception], object]
    owner: object


class Tasks(QObject):
    """A few threads. Results come back on the thread of the window, unless who asked is gone by then.

    The threads know jobs by their number only: whoever drops the last reference to a widget ends it, and that
    must be the thread of the window.
    """

    _finished = Signal(int)

    def __init__(self, notifications: Notifications) -> None:
        super().__init__()
        self._notifications = notifications
        self._queue: SimpleQueue[int | None] = SimpleQueue()
        self._numbers = count()
        self._jobs: dict[int, _Job] = {}
        self._results: dict[int, tuple[bool, Any]] = {}
        """Of each job whether it succeeded, and what it gave or raised."""
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)
        self._closed = False
        self._finished.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def run(
        self,
        work: Callable[[], T],
        done: Callable[[T], object],
        failed: Callable[[Exception], object] | None = None,
        owner: QObject | None = None,
    ) -> None:
        """Do `work` in a thread, then call `done` with what it gave, or `failed` with what it raised.

        Without `failed` an error is told in the notifications. When `owner`, or the object that `done` is a
        method of, is gone by then, nothing is called.
        """
        if self._closed:
            return
        owner = owner if owner is not None else getattr(done, "__self__", None)
        number = next(self._numbers)
        self._jobs[number] = _Job(work, done, failed or self._notifications.tell_error, owner)
        self._queue.put(number)
        if not self._idle.acquire(blocking=False) and len(self._threads) < _THREADS:
            thread = threading.Thread(target=self._work, name="task", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while True:
            try:
                number = self._queue.get_nowait()
            except Empty:
                self._idle.release()
                number = self._queue.get()
            if number is None:
                return
            self._do(number)
            # The window may have gone, and this object with it, while the work was done.
            if not self._closed and shiboken6.isValid(self):
                self._finished.emit(number)

    def _do(self, number: int) -> None:
        # What it gives has no name here: an error remembers what had one when it was raised.
        try:
            self._results[number] = True, self._jobs[number].work()
        except Exception as error:
            self._results[number] = False, error

    @Slot(int)
    def _deliver(self, number: int) -> None:
        if self._closed:
            return
        job, (good, result) = self._jobs.pop(number), self._results.pop(number)
        if isinstance(job.owner, QObject) and not shiboken6.isValid(job.owner):
            return
        if good:
            job.done(result)
        else:
            job.failed(result)

    def close(self) -> None:
        """Drop what waits and let every thread end; what is being done is not delivered any more."""
        self._closed = True
        while not self._queue.empty():
            self._queue.get_nowait()
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(_END_SECONDS)
        self._threads.clear()
        self._jobs.clear()
        self._results.clear()
