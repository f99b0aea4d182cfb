"""Work beside the window: tasks, streams of the daemon, and what a person should know of them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import shiboken6
from PySide6.QtCore import QObject, Qt, QTimer, Signal, SignalInstance, Slot

from gym_gui import log
from mosaic.client import Client
from mosaic.contract.errors import MosaicError, NotFoundError

Action = tuple[str, Callable[[], object]]
"""The words of a button, and what it does."""
_MOST_KEPT = 60
T = TypeVar("T")
Doing = Callable[..., object] | SignalInstance
"""What a button or a timer does."""

_THREADS = 4
END_SECONDS = 35.0
"""A call to the daemon ends by its deadline, and a thread that starts one waits for it so long."""
_RETRY_SECONDS = 2.0

_alive: set[Follower] = set()
_alive_lock = threading.Lock()


@dataclass(frozen=True)
class Notification:
    """One thing that was told."""

    text: str
    kind: str = "info"
    action: Action | None = None
    aside: bool = False
    """Whether it came by itself, and answers nothing that the person did: then it can be muted."""
    at: float = field(default_factory=time.time)


class Notifications(QObject):
    """Anyone may tell something, from any thread; the window shows it, and it is kept here and in the log."""

    posted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.history: deque[Notification] = deque(maxlen=_MOST_KEPT)
        """What was told, newest last."""

    def tell(self, text: str, kind: str = "info", action: Action | None = None, aside: bool = False) -> None:
        """`kind` is `info`, `good`, `warn` or `bad`; `action` is what the person may do about it."""
        note = log.warning if kind in ("warn", "bad") else log.info
        note(log.Code.TOLD, text)
        told = Notification(text, kind, action, aside)
        self.history.append(told)
        self.posted.emit(told)

    def tell_error(self, error: BaseException) -> None:
        """Ours says what is wrong itself; any other is a fault, and its traceback goes to the log."""
        if isinstance(error, MosaicError):
            self.tell(str(error), "bad")
            return
        log.fault("a fault was told of", error)
        self.tell(f"Something unexpected went wrong ({type(error).__name__}: {error}).", "bad")


def timer(owner: QObject, ms: int, do: Doing, once: bool = False) -> QTimer:
    """A timer of `owner` that calls `do` every `ms`, or `once`; it is not started yet."""
    made = QTimer(owner, interval=ms, singleShot=once)
    made.timeout.connect(do)
    return made


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
            thread.join(END_SECONDS)
        self._threads.clear()
        self._jobs.clear()
        self._results.clear()


class Follower:
    """From `start` on calls `follow(client)` in a thread until it returns; `close` ends what it reads.

    The client is its own, and `follow` is called again after the daemon could not be reached.
    """

    def __init__(self, var: Path, follow: Callable[[Client], None], name: str) -> None:
        self._var = var
        self._follow = follow
        self._client: Client | None = None
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._telling = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin. It is a call of its own, as `follow` may use what this object is assigned to."""
        with _alive_lock:
            _alive.add(self)
        self._thread.start()

    @property
    def closing(self) -> bool:
        return self._closing.is_set()

    def wait(self, seconds: float) -> None:
        """Rest in the thread, no longer than until this is closed."""
        self._closing.wait(seconds)

    def tell(self, emit: Callable[[], object]) -> None:
        """Call `emit`, from the thread, unless this is closed.

        `close` waits for the call: after it, whoever emits may be deleted. Qt crashes otherwise.
        """
        with self._telling:
            if not self.closing:
                emit()

    def _run(self) -> None:
        try:
            while not self.closing and not self._followed_to_the_end():
                self._closing.wait(_RETRY_SECONDS)
        finally:
            with _alive_lock:
                _alive.discard(self)

    def _followed_to_the_end(self) -> bool:
        try:
            with Client.connect(self._var) as client:
                with self._lock:
                    self._client = client
                if not self.closing:
                    self._follow(client)
            return True
        except NotFoundError:
            return True
        except MosaicError as error:
            log.info(log.Code.STREAM_LOST, f"{self._thread.name}: {error}")
            return False
        except Exception as error:
            log.fault(f"{self._thread.name} has ended", error)
            return True

    def close(self) -> None:
        """End the stream and soon the thread; it is not waited for, as it may be looking for a daemon."""
        with self._telling:
            self._closing.set()
        with self._lock:
            if self._client is not None:
                self._client.close()

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join(END_SECONDS)


def close_followers() -> None:
    """End all that still follow, and wait for them: for the end of the window."""
    with _alive_lock:
        followers = list(_alive)
    for follower in followers:
        follower.close()
    for follower in followers:
        follower.join()
