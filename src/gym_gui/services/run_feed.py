"""Runs kept up to date from the daemon's stream, and what of them is new since it was last asked."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mosaic.client import Client, HistoryEntry, RunHeadline, RunRecord
from mosaic.contract.errors import NotFoundError

_LIST_FROM = 20
"""From so many changed runs on, one list is cheaper than a question for each."""
_LOOKS = 5


class RunFeed:
    """One thread puts in what the stream says, another takes out records. It knows no Qt."""

    def __init__(self) -> None:
        self.listed = False
        self._lock = threading.Lock()
        self._records: dict[str, RunRecord] = {}
        self._new: dict[str, None] = {}
        self._moved: dict[str, None] = {}
        self._headlines: dict[str, dict[str, Any]] = {}
        self._removed: list[str] = []
        self._looked_for: Counter[str] = Counter()

    def take_all(self, runs: Sequence[RunRecord]) -> None:
        """All runs that there are now: what is not among them is gone."""
        with self._lock:
            found = {run.run_id: run for run in runs}
            self._removed += [run_id for run_id in self._records if run_id not in found]
            self._new |= {key: None for key, run in found.items() if self._records.get(key) != run}
            self._records = found
            self.listed = True

    def take(self, update: HistoryEntry | RunHeadline | RunRecord) -> None:
        """Something that the daemon's stream has said."""
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
            if len(moved) >= _LIST_FROM:
                self.take_all(client.runs())
                return
            for run_id in moved:
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

    def look_for_removed(self, client: Client) -> None:
        """Find runs that somebody else has removed: of that the stream says nothing, but their folders go."""
        try:
            folders = set(os.listdir(client.paths.runs))
        except FileNotFoundError:
            folders = set()
        with self._lock:
            gone = [key for key, run in self._records.items() if run.ended and key not in folders]
        for run_id in gone:
            # A folder goes a moment before its run does; one that was taken away by hand leaves its run.
            if self._looked_for[run_id] < _LOOKS:
                self._looked_for[run_id] += 1
                self._get(client, run_id)

    def forget(self, run_id: str) -> None:
        """This run was removed just now."""
        with self._lock:
            if self._records.pop(run_id, None) is not None:
                self._removed.append(run_id)
