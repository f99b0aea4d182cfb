"""The daemon as the window sees it: its runs, its health, and whether it is there."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal, SignalInstance

from gym_gui import log
from gym_gui.services.tasks import END_SECONDS, close_followers
from mosaic.client import Client, HistoryEntry, RunHeadline, RunPage, RunQuery, RunRecord, RunRemoved
from mosaic.contract.errors import MosaicError, NotFoundError, UnavailableError
from mosaic.contract.run_filter import WHOLE

MOST_WHOLE = 5_000
"""With more runs than this only some are known: the newest, those that live, and what was looked for."""
PAGE = 500
_FIRST = 2_000
_LIST_FROM = 20
"""From so many changed runs on, one list is cheaper than a question for each."""
_STARTED = ("HSHK", "RDY", "EXEC", "PAUSE", "FAULT")

Update = HistoryEntry | RunHeadline | RunRecord | RunRemoved
CONNECTING, ALIVE, UNREACHABLE = "connecting", "alive", "unreachable"
_BATCH_SECONDS = 0.25
_PART = 100
_HEALTH_SECONDS = 2.0
_RETRY_SECONDS = 2.0


class RunFeed:
    """One thread puts in what the stream says, another takes out records. It knows no Qt."""

    def __init__(self) -> None:
        self.listed = False
        self.partial: RunPage | None = None
        """Where there are too many runs to know all: the last page of the newest that was read."""
        self._lock = threading.Lock()
        self._records: dict[str, RunRecord] = {}
        self._new: dict[str, None] = {}
        self._moved: dict[str, None] = {}
        self._headlines: dict[str, dict[str, Any]] = {}
        self._removed: list[str] = []

    def begin(self, client: Client) -> None:
        """List the runs, newest first; each page can be had when it comes. What is gone is told of."""
        known = set(self._records)
        newest = RunQuery(fields=WHOLE)
        page = client.page(newest, PAGE, count=True)
        counted, seen = page, len(page.runs)
        most = _FIRST if page.total > MOST_WHOLE else page.total + PAGE
        self._take_list(page.runs)
        self.listed = True
        while page.cursor and seen < most:
            page = client.page(newest, PAGE, page.cursor)
            seen += len(page.runs)
            self._take_list(page.runs)
        self.partial = replace(page, counts=counted.counts) if page.cursor else None
        if self.partial is not None:
            # Whatever else there is, what happens now is known.
            waiting = RunQuery(statuses=("INIT",), order_by="queue", ascending=True, fields=WHOLE)
            self._take_list(client.each(replace(newest, statuses=_STARTED)))
            self._take_list(client.each(waiting, _FIRST))
        self.look_for_removed(client, known)

    def _take_list(self, runs: Iterable[RunRecord]) -> None:
        for run in runs:
            with self._lock:
                before = self._records.get(run.run_id)
                told = run if before is None else replace(run, history=before.history)
                if told != before:
                    self._records[run.run_id] = told
                    self._new[run.run_id] = None

    def add(self, runs: Iterable[RunRecord]) -> None:
        """Runs that somebody found otherwise: they are kept up to date from now on. Those that are known are
        so already, and may be newer."""
        with self._lock:
            for run in runs:
                self._records.setdefault(run.run_id, run)

    def take(self, update: Update) -> None:
        """Something that the daemon's stream has said."""
        if isinstance(update, RunRemoved):
            self.forget(update.run_id)
            return
        with self._lock:
            if isinstance(update, RunRecord):
                if update.run_id in self._records:
                    self._records[update.run_id] = replace(
                        update, history=self._records[update.run_id].history
                    )
                    self._new[update.run_id] = None
            elif isinstance(update, RunHeadline):
                self._headlines[update.run_id] = update.headline
            else:
                self._moved[update.run_id] = None

    def want(self, run_id: str) -> None:
        """Have a run told of that may not be known."""
        with self._lock:
            self._moved[run_id] = None

    def news(self, client: Client) -> tuple[list[RunRecord], list[str]]:
        """The records that are new or changed, and the ids of those that are gone."""
        with self._lock:
            moved, self._moved = list(self._moved), {}
        self._ask(client, moved)
        with self._lock:
            for run_id, headline in self._headlines.items():
                self._apply(run_id, headline)
            self._headlines.clear()
            changed = [self._records[run_id] for run_id in self._new if run_id in self._records]
            removed, self._removed = self._removed, []
            self._new.clear()
        return changed, removed

    def _ask(self, client: Client, moved: list[str]) -> None:
        try:
            if len(moved) < _LIST_FROM:
                for run_id in moved:
                    self._get(client, run_id)
                return
            for some in _parts(moved):
                found = client.page(RunQuery(run_ids=some, fields=WHOLE), PAGE).runs
                self._take_list(found)
                for run_id in set(some) - {run.run_id for run in found}:
                    self._get(client, run_id)
        except BaseException:
            with self._lock:
                self._moved |= dict.fromkeys(moved)
            raise

    def _get(self, client: Client, run_id: str) -> None:
        try:
            run = client.get(run_id)
        except NotFoundError:
            self.forget(run_id)
            return
        with self._lock:
            self._records[run_id] = run
            self._new[run_id] = None

    def _apply(self, run_id: str, headline: dict[str, Any]) -> None:
        run = self._records.get(run_id)
        if run is None or run.ended:
            return
        if "waits_for" not in headline:
            run = replace(run, headline=headline)
        elif run.status == "INIT":
            run = replace(run, reason=headline["waits_for"])
        self._records[run_id] = run
        self._new[run_id] = None

    def look_for_removed(self, client: Client, run_ids: Iterable[str] | None = None) -> None:
        """Find runs that were removed while no stream told of it; without ids among all that are known."""
        with self._lock:
            known = list(self._records if run_ids is None else run_ids)
        for some in _parts(known):
            there = {run.run_id for run in client.page(RunQuery(run_ids=some, fields=("run_id",)), PAGE).runs}
            for run_id in set(some) - there:
                self.forget(run_id)

    def forget(self, run_id: str) -> None:
        """This run was removed just now."""
        with self._lock:
            if self._records.pop(run_id, None) is not None:
                self._removed.append(run_id)


def _parts(run_ids: Sequence[str]) -> Iterator[list[str]]:
    """So many at a time as one page has."""
    left = iter(run_ids)
    while some := list(islice(left, PAGE)):
        yield some


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
        self.feed = RunFeed()
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
            raise UnavailableError(self.reason or "Connecting to the daemon; try again in a moment.")
        return client

    def remove(self, run_id: str) -> int:
        """Remove an ended run and its files, in a task; gives the bytes freed."""
        freed = self.client().remove(run_id)
        self.feed.forget(run_id)
        return freed

    def close(self) -> None:
        """End the threads, and those of every stream that is still followed. No run is stopped."""
        self._closing.set()
        with self._lock:
            if self._client is not None:
                self._client.close()
        close_followers()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(END_SECONDS)

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
        self.feed.begin(client)
        self._say(ALIVE)
        for update in client.watch(since_seq=seq, headlines=True):
            self.feed.take(update)

    def _found(self, found: bool) -> None:
        """The client has lost the daemon, or has it again."""
        self._was_away = self._was_away or found
        self._say(ALIVE if found else CONNECTING, "" if found else "The daemon has stopped; restarting it.")

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
        listed = self.feed.listed
        changed, removed = self.feed.news(client)
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
            self.feed.look_for_removed(client)

    def _send(self, signal: SignalInstance, value: object) -> None:
        if not self._closing.is_set():
            signal.emit(value)
