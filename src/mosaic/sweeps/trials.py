"""The runs of trials: submitted so that none is lost or made twice, watched, read, paused and cancelled.

It knows nothing of Optuna: whoever decides what to train next, by whatever rule, can use it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from mosaic.analytics.store import NO_POINTS, MetricSeries, RunMetrics
from mosaic.client import Client, HistoryEntry, RunQuery
from mosaic.client.configs import again_config
from mosaic.contract.atomic import write_json
from mosaic.contract.errors import ConflictError, MosaicError, NotFoundError, UnavailableError, UserError
from mosaic.contract.fsm import LIVE, RunStatus
from mosaic.contract.outside import read_json
from mosaic.sweeps.spec import Template, with_params

_RETRY_SECONDS = 1.0
_GONE = "its run was removed"
_PAUSED = "paused.json"


@dataclass
class TrialRun:
    """One run of a trial."""

    run_id: str
    env_id: str
    seed: int
    status: str = RunStatus.INIT
    outcome: str | None = None
    reason: str | None = None
    metrics: RunMetrics | None = None

    @property
    def ended(self) -> bool:
        return self.status == RunStatus.TERM

    @property
    def lives(self) -> bool:
        """Whether it may write something."""
        return self.status in (RunStatus.EXEC, RunStatus.PAUSE, RunStatus.RDY, RunStatus.TERM)

    def read(self, runs: Path) -> bool:
        """Take in what it has logged since the last time; whether that was anything."""
        self.metrics = self.metrics or RunMetrics(runs / self.run_id)
        return self.metrics.refresh()

    @property
    def names(self) -> list[str]:
        """The names of its curves."""
        return self.metrics.names if self.metrics else []

    def series(self, metric: str) -> MetricSeries:
        """One curve, over restarts of the run."""
        return self.metrics.series(metric) if self.metrics else NO_POINTS


@dataclass
class Flight:
    """A trial whose runs have not all ended."""

    number: int
    runs: list[TrialRun]
    told: bool = False
    """Whether it is known what became of it; its last runs are just ending."""
    reported: int = 0
    """The last step at which it was looked at."""

    @property
    def ended(self) -> bool:
        return all(run.ended for run in self.runs)


class TrialRuns:
    """The runs that belong to one sweep."""

    def __init__(self, client: Client, sweep: str, news: SimpleQueue[Any]) -> None:
        """State changes of all runs come into `news` as `HistoryEntry`."""
        self._client = client
        self._sweep = sweep
        self._news = news
        self._closed = threading.Event()
        self._since = client.health().last_seq
        self._watcher = threading.Thread(target=self._watch, name="runs", daemon=True)
        self._watcher.start()

    def close(self) -> None:
        self._closed.set()
        self._client.close()
        self._watcher.join(5)

    def submit(
        self, number: int, place: int, template: Template, seed: int, params: Mapping[str, Any], name: str
    ) -> TrialRun:
        """A run for a trial. Called again for the same place in the same trial it is the same run."""
        config = again_config(deepcopy(dict(template.config)), self._sweep)
        request = config["metadata"]["worker"]
        request["config"] = {**with_params(request["config"], params), "seed": seed}
        config["run_name"] = name
        config["metadata"]["ui"] |= {"sweep": self._sweep, "trial": number}
        run = self._client.submit(config, request_id=f"{self._sweep}/{number}/{place}")
        return TrialRun(run.run_id, template.env_id, seed, run.status, run.outcome, run.reason)

    def find(self, run_id: str, env_id: str, seed: int) -> TrialRun:
        """A run that was submitted before; one that somebody has removed counts as ended."""
        try:
            run = self._client.get(run_id)
        except NotFoundError:
            return TrialRun(run_id, env_id, seed, RunStatus.TERM, "failed", _GONE)
        return TrialRun(run.run_id, env_id, seed, run.status, run.outcome, run.reason)

    def cancel(self, run_ids: Sequence[str], reason: str) -> None:
        """Ask runs to end; those that have ended meanwhile are passed over."""
        for run_id in run_ids:
            with suppress(ConflictError, NotFoundError):
                self._client.cancel(run_id, reason)

    def pause(self, run_id: str, paused: bool) -> None:
        """Stop a run's processes where they are, or let them go on; one that cannot follow is left alone."""
        with suppress(ConflictError, NotFoundError):
            (self._client.pause if paused else self._client.resume)(run_id)

    def live(self) -> Iterator[str]:
        """The ids of all live runs of this sweep, whoever knows of them."""
        query = RunQuery(
            statuses=sorted({*LIVE, RunStatus.FAULT}),
            filter=f"sweep={self._sweep}",
            fields=("run_id", "status"),
        )
        return (run.run_id for run in self._client.each(query))

    def _watch(self) -> None:
        while not self._closed.is_set():
            with suppress(UnavailableError, MosaicError):
                for entry in self._client.watch(since_seq=self._since):
                    if isinstance(entry, HistoryEntry):
                        self._since = entry.seq
                        self._news.put(entry)
            self._closed.wait(_RETRY_SECONDS)


def wait_for_news(news: SimpleQueue[Any], seconds: float) -> list[Any]:
    """What has come in; waits so long for the first."""
    found = []
    deadline = time.monotonic() + seconds
    with suppress(Empty):
        found.append(news.get(timeout=max(0.0, deadline - time.monotonic())))
        while True:
            found.append(news.get_nowait())
    return found


class Unpruned:
    """What stands in the place of a study where nothing is pruned; a file tells which runs were paused."""

    _folder: Path

    def report(self, number: int, value: float, step: int) -> bool:
        """Nothing is pruned, whatever it has reached."""
        return False

    def pruned_at(self, number: int) -> int | None:
        return None

    def mark_pruned(self, number: int, step: int) -> None:
        raise UserError("Nothing is pruned here.")

    def paused_runs(self) -> list[str]:
        """The runs that were paused with it."""
        try:
            return [str(one) for one in read_json(self._folder / _PAUSED)]
        except (OSError, ValueError, TypeError):
            return []

    def note_paused(self, runs: Sequence[str]) -> None:
        write_json(self._folder / _PAUSED, list(runs))

    def release(self) -> None:
        """Nobody waits for it."""
