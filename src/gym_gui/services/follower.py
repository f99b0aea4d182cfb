"""A stream of the daemon, followed in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from gym_gui import log
from mosaic.client import Client
from mosaic.contract.errors import MosaicError, NotFoundError

_RETRY_SECONDS = 2.0
_END_SECONDS = 35.0
"""A thread that starts a daemon waits for it so long."""

_alive: set[Follower] = set()
_alive_lock = threading.Lock()


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
        self._thread.join(_END_SECONDS)


def close_followers() -> None:
    """End all that still follow, and wait for them: for the end of the window."""
    with _alive_lock:
        followers = list(_alive)
    for follower in followers:
        follower.close()
    for follower in followers:
        follower.join()
