"""Work that may block, done beside the window."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import shiboken6
from PySide6.QtCore import QObject, Qt, Signal, Slot

from gym_gui.services.notifications import Notifications

T = TypeVar("T")

_THREADS = 4
_END_SECONDS = 35.0
"""A call to the daemon ends by its deadline; nothing that runs here may take longer to stop."""

Work = tuple[Callable[[], Any], Callable[[Any], None]]


class Tasks(QObject):
    """A few threads. Results come back on the thread of the window, unless who asked is gone by then."""

    _finished = Signal(object)

    def __init__(self, notifications: Notifications) -> None:
        super().__init__()
        self._notifications = notifications
        self._queue: SimpleQueue[Callable[[], Callable[[], None]] | None] = SimpleQueue()
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
        on_error = failed or self._notifications.tell_error

        def job() -> Callable[[], None]:
            try:
                result = work()
            except Exception as error:
                return _bound(owner, on_error, error)
            return _bound(owner, done, result)

        self._queue.put(job)
        if not self._idle.acquire(blocking=False) and len(self._threads) < _THREADS:
            thread = threading.Thread(target=self._work, name="task", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while True:
            try:
                job = self._queue.get_nowait()
            except Empty:
                self._idle.release()
                job = self._queue.get()
            if job is None:
                return
            finish = job()
            # The window may have gone, and this object with it, while the work was done.
            if not self._closed and shiboken6.isValid(self):
                self._finished.emit(finish)

    @Slot(object)
    def _deliver(self, finish: Callable[[], None]) -> None:
        if not self._closed:
            finish()

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


def _bound(owner: object, call: Callable[[Any], object], argument: Any) -> Callable[[], None]:
    def finish() -> None:
        if isinstance(owner, QObject) and not shiboken6.isValid(owner):
            return
        call(argument)

    return finish
