"""Runs kept up to date from the daemon's stream, and what of them is new since it was last asked."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from mosaic.client import Client, HistoryEntry, RunHeadline, RunPage, RunQuery, RunRecord, RunRemoved
from mosaic.contract.errors import NotFoundError
from mosaic.contract.run_filter import WHOLE

MOST_WHOLE = 5_000
"""With more runs than this only some are known: the newest, those that live, and what was looked for."""
PAGE = 500
_FIRST = 2_000
_LIST_FROM = 20
"""From so many changed runs on, one list is cheaper than a question for each."""
_STARTED = ("HSHK", "RDY", "EXEC", "PAUSE", "FAULT")

Update = HistoryEntry | RunHeadline | RunRecord | RunRemoved


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
