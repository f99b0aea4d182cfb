"""The daemon as the window sees it: its runs, its health, and whether it is there."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal, SignalInstance

from gym_gui import log
from gym_gui.services.follower import close_followers
from gym_gui.services.run_feed import RunFeed
from mosaic.client import Client, RunPage, RunRecord
from mosaic.contract.errors import MosaicError, UnavailableError

CONNECTING, ALIVE, UNREACHABLE = "connecting", "alive", "unreachable"
_BATCH_SECONDS = 0.25
_PART = 100
_HEALTH_SECONDS = 2.0
_RETRY_SECONDS = 2.0
_END_SECONDS = 35.0
"""A thread that starts a daemon waits for it so long."""


class DaemonLink(QObject):
    """Two threads: one listens to the daemon, one passes on what is new, at most 4 times a second.

    A daemon that went away is looked for, and started, until it is there or the link is closed.
    """

    runs_changed = Signal(object)
    """list[RunRecord], changed or new."""
    runs_removed = Signal(object)
    """list[str], the ids."""
    health_changed = Signal(object)
    """HealthRecord, or None while there is no daemon."""
    state_changed = Signal(str)

    def __init__(self, var: Path) -> None:
        super().__init__()
        self.var = var.resolve()
        self.state = CONNECTING
        self.reason = ""
        self.listed = False
        """Whether the runs are known, so that none means none."""
        self._was_away = False
        self._feed = RunFeed()
        self._client: Client | None = None
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._listen, name="daemon link", daemon=True),
            threading.Thread(target=self._pass_on, name="daemon news", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def client(self) -> Client:
        """The client of all short calls; any thread but that of the window may use it."""
        client = self._client
        if client is None:
            raise UnavailableError(self.reason or "The daemon is being looked for; try again in a moment.")
        return client

    def remove(self, run_id: str) -> int:
        """Remove an ended run and its files, in a task; gives the bytes freed."""
        freed = self.client().remove(run_id)
        self._feed.forget(run_id)
        return freed

    @property
    def partial(self) -> RunPage | None:
        """The last page of the newest runs that was read at the start, where there are too many for all."""
        return self._feed.partial

    def add(self, runs: Sequence[RunRecord]) -> None:
        """Runs that somebody found otherwise: what becomes of them is told from now on."""
        self._feed.add(runs)

    def want(self, run_id: str) -> None:
        """Have a run told of that may not be known, soon."""
        self._feed.want(run_id)

    def close(self) -> None:
        """End the threads, and those of every stream that is still followed. No run is stopped."""
        self._closing.set()
        with self._lock:
            if self._client is not None:
                self._client.close()
        close_followers()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_END_SECONDS)

    def _listen(self) -> None:
        while not self._closing.is_set():
            try:
                with Client.connect(self.var, self._found) as client:
                    with self._lock:
                        self._client = client
                    if not self._closing.is_set():
                        self._follow(client)
            except MosaicError as error:
                self._say(UNREACHABLE, str(error))
            except Exception as error:
                log.fault("the link to the daemon broke", error)
                self._say(UNREACHABLE, f"{type(error).__name__}: {error}")
            finally:
                self._client = None
            self._closing.wait(_RETRY_SECONDS)

    def _follow(self, client: Client) -> None:
        # The number is asked for before the list: what changes in between is told again, not missed.
        seq = client.health().last_seq
        self._feed.begin(client)
        self._say(ALIVE)
        for update in client.watch(since_seq=seq, headlines=True):
            self._feed.take(update)

    def _found(self, found: bool) -> None:
        """The client has lost the daemon, or has it again."""
        self._was_away = self._was_away or found
        self._say(ALIVE if found else CONNECTING, "" if found else "The daemon went away; starting it again.")

    def _say(self, state: str, reason: str = "") -> None:
        if self._closing.is_set():
            return
        changed = (state, reason) != (self.state, self.reason)
        self.state, self.reason = state, reason
        if changed:
            log.info(log.Code.DAEMON_STATE, f"{state} {reason}".strip())
            self.state_changed.emit(state)

    def _pass_on(self) -> None:
        health_at = -_HEALTH_SECONDS
        while not self._closing.wait(_BATCH_SECONDS):
            client = self._client
            if client is None:
                continue
            try:
                self._emit_runs(client)
                if time.monotonic() - health_at >= _HEALTH_SECONDS:
                    health_at = time.monotonic()
                    self._emit_health(client)
            except MosaicError as error:
                log.info(log.Code.STREAM_LOST, f"daemon news: {error}")
                self._send(self.health_changed, None)
            except Exception as error:
                log.fault("the news of the daemon broke", error)

    def _emit_runs(self, client: Client) -> None:
        listed = self._feed.listed
        changed, removed = self._feed.news(client)
        first, self.listed = listed and not self.listed, listed
        # In parts, so that the window can breathe between them; the first list is told of also when empty.
        for start in range(0, max(len(changed), int(first)), _PART):
            self._send(self.runs_changed, changed[start : start + _PART])
        if removed:
            self._send(self.runs_removed, removed)

    def _emit_health(self, client: Client) -> None:
        self._send(self.health_changed, client.health())
        if self._was_away:
            # Of what was removed meanwhile nobody tells.
            self._was_away = False
            self._feed.look_for_removed(client)

    def _send(self, signal: SignalInstance, value: object) -> None:
        if not self._closing.is_set():
            signal.emit(value)
