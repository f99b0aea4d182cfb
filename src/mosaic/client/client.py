"""`Client`: everything a program can ask of the trainer daemon."""

from __future__ import annotations

import json
import os
import time
import uuid
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.analytics.artifacts import Artifact, list_artifacts
from mosaic.analytics.event_files import ScalarChunk, Series
from mosaic.client.connection import Connection, Listener
from mosaic.client.daemon import start_notice
from mosaic.client.records import (
    HealthRecord,
    HistoryEntry,
    PublishedItem,
    RunHeadline,
    RunPage,
    RunRecord,
    RunRemoved,
)
from mosaic.contract.errors import NotFoundError
from mosaic.contract.paths import VarPaths, choose_var
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.run_config import config_text
from mosaic.contract.run_filter import WHOLE, RunQuery
from mosaic.contract.secrets import callers_variables, lift_secrets

if TYPE_CHECKING:
    from mosaic.analytics.store import RunMetrics

_PAGE = 1000


class Client:
    """The daemon of one var folder, started when none runs, found again when it restarts."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    def connect(
        cls, var: Path | None = None, listener: Listener | None = None, make: bool = True, guest: bool = False
    ) -> Client:
        """Connect to the daemon of `var`; without it to that of `$MOSAIC_VAR` or the usual place.

        `listener` is told False when the daemon is lost and looked for, True when it is found. With `make`
        false a folder in which no run ever was is a NotFoundError: who only wants to read makes nothing.
        A `guest`, which is itself a run of the daemon, starts only one that was killed: one that somebody has
        stopped stays so (its calls are UnavailableErrors), and one of another version is not replaced.
        """
        paths = VarPaths(choose_var(var))
        if not make and not paths.used:
            raise NotFoundError(f"There is no run yet in {paths.root}: `mosaic train` starts the first.")
        return cls(Connection(paths, listener, guest))

    @property
    def paths(self) -> VarPaths:
        return self._connection.paths

    @property
    def start_notice(self) -> str:
        """What the daemon had to mend when this process started it, in words; mostly nothing."""
        return start_notice(self.paths)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(
        self,
        config: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
        request_id: str = "",
    ) -> RunRecord:
        """Queue a run. A submit repeated after a lost connection makes one run, not two; with a `request_id`
        of the caller's own that holds for all that are made with it, for as long as there is the run.

        The run takes `WANDB_*`, `HF_*`, `CUDA_VISIBLE_DEVICES`, `MUJOCO_GL`, proxies and what the config
        refers to by `@env:NAME` from `environment`, else from this process; others stand in the config.
        """
        caller = os.environ if environment is None else environment
        lifted = lift_secrets(config, caller)
        request = pb.SubmitRunRequest(
            config_json=config_text(lifted.config),
            request_id=request_id or uuid.uuid4().hex,
            environment=callers_variables(caller) | lifted.values,
        )
        return self._run("SubmitRun", request)

    def _run(self, method: str, request: Any) -> RunRecord:
        return RunRecord.from_message(self._connection.call(method, request))

    def get(self, run_id: str) -> RunRecord:
        """A run with its history. The beginning of an id is enough when it fits one run."""
        return self._run("GetRun", pb.GetRunRequest(run_id=run_id))

    def runs(
        self, statuses: Sequence[str] = (), tags: Sequence[str] = (), limit: int = 0, filter: str = ""
    ) -> list[RunRecord]:
        """Runs, newest first: those with all of `tags`, any of `statuses`, and all that `filter` says.

        They come whole but for their history; `each` gives more choice, and is lighter where there are many.
        """
        query = RunQuery(statuses=statuses, tags=tags, filter=filter, fields=WHOLE)
        return list(islice(self.each(query, limit), limit or None))

    def each(self, query: RunQuery, limit: int = 0) -> Iterator[RunRecord]:
        """Every run of a list, or the first `limit`, asked for page by page."""
        cursor, left = "", limit
        while True:
            page = self.page(query, min(left, _PAGE) if limit else _PAGE, cursor)
            yield from page.runs
            cursor, left = page.cursor, left - len(page.runs)
            if not cursor or (limit and left <= 0):
                return

    def page(self, query: RunQuery, limit: int, cursor: str = "", count: bool = False) -> RunPage:
        """One page of at most `limit` runs, of which there may be 1,000; with `count` how many there are."""
        request = pb.ListRunsRequest(**vars(replace(query, limit=limit, cursor=cursor, count=count)))
        return RunPage.from_message(self._connection.call("ListRuns", request))

    def cancel(self, run_id: str, reason: str = "") -> RunRecord:
        """Ask a run to end. It ends soon after; `wait` tells when."""
        return self._run("CancelRun", pb.CancelRunRequest(run_id=run_id, reason=reason))

    def pause(self, run_id: str) -> RunRecord:
        """Stop a run's processes where they are; they keep what is reserved for them."""
        return self._run("PauseRun", pb.PauseRunRequest(run_id=run_id))

    def resume(self, run_id: str) -> RunRecord:
        """Let a paused run go on."""
        return self._run("ResumeRun", pb.ResumeRunRequest(run_id=run_id))

    def reorder(self, run_id: str, priority: int | None = None, before: str = "") -> RunRecord:
        """Give a waiting run a priority (the higher starts first), or the place before another run."""
        request = pb.ReorderRunRequest(run_id=run_id, priority=priority, before_run_id=before)
        return self._run("ReorderRun", request)

    def label(
        self,
        run_id: str,
        name: str | None = None,
        tags: Sequence[str] | None = None,
        notes: str | None = None,
    ) -> RunRecord:
        """Give a run another name, other tags, other notes; what is None stays as it is."""
        listed = None if tags is None else pb.TagList(tags=tags)
        request = pb.LabelRunRequest(run_id=run_id, run_name=name, tags=listed, notes=notes)
        return self._run("LabelRun", request)

    def remove(self, run_id: str) -> int:
        """Forget an ended run and remove its folder; gives the bytes freed."""
        return int(self._connection.call("DeleteRun", pb.DeleteRunRequest(run_id=run_id)).freed_bytes)

    def adopt(self, run_id: str) -> RunRecord:
        """Have an ended run taken in whose files were laid ready: what an import ends with."""
        return self._run("AdoptRun", pb.AdoptRunRequest(run_id=run_id))

    def health(self) -> HealthRecord:
        answer = self._connection.call("GetHealth", pb.GetHealthRequest())
        return HealthRecord.from_message(self._connection.address.address, answer)

    def watch(
        self, run_id: str = "", since_seq: int = 0, headlines: bool = False, timeout: float | None = None
    ) -> Iterator[HistoryEntry | RunHeadline | RunRecord | RunRemoved]:
        """State changes after `since_seq`, over restarts of the daemon.

        With `headlines` also the newest numbers, and runs that got another name, tag, note or place, or were
        removed.
        """
        seen = since_seq
        updates = self._connection.stream(
            "WatchRuns",
            lambda: pb.WatchRunsRequest(since_seq=seen, run_id=run_id, headlines=headlines),
            timeout,
        )
        for update in updates:
            if update.HasField("transition"):
                seen = update.transition.seq
                yield HistoryEntry.from_message(update.transition)
            elif update.HasField("run"):
                yield RunRecord.from_message(update.run)
            elif update.HasField("removed"):
                yield RunRemoved(update.removed)
            else:
                yield RunHeadline(update.headline.run_id, json.loads(update.headline.headline_json))

    def wait(self, run_id: str, timeout: float | None = None) -> RunRecord:
        """Block until the run has ended."""
        deadline = None if timeout is None else time.monotonic() + timeout
        run = self.get(run_id)
        while not run.ended:
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                raise TimeoutError(f"Run {run.run_id} is still {run.status} after {timeout:g} s.")
            for _ in self.watch(run.run_id, run.history[-1].seq, timeout=remaining):
                break
            run = self.get(run.run_id)
        return run

    def metrics(self, run_id: str) -> RunMetrics:
        """Everything that the run has measured so far; its `refresh` takes in what comes later."""
        # It needs numpy, which most who use a client do not.
        from mosaic.analytics.store import RunMetrics

        return RunMetrics.open(Path(self.get(run_id).run_dir))

    def follow_metrics(self, run_id: str, follow: bool = True) -> Iterator[ScalarChunk]:
        """Scalars as they are written; ends when the run has ended and all was read."""
        cursor = ""
        batches = self._connection.stream(
            "StreamMetrics", lambda: pb.StreamMetricsRequest(run_id=run_id, cursor=cursor, follow=follow)
        )
        for batch in batches:
            cursor = batch.cursor
            yield from map(_chunk, batch.chunks)

    def steps(self, run_id: str, since_seq: int = 0, follow: bool = True) -> Iterator[PublishedItem]:
        """Steps that the worker publishes, after `since_seq`; ends when the run has ended and all was read.

        The daemon keeps the newest only: `dropped` of an item tells how many are missing before it.
        """
        return self._published("StreamRunSteps", run_id, since_seq, follow)

    def episodes(self, run_id: str, since_seq: int = 0, follow: bool = True) -> Iterator[PublishedItem]:
        """Episodes that the worker publishes, in the manner of `steps`."""
        return self._published("StreamRunEpisodes", run_id, since_seq, follow)

    def _published(self, method: str, run_id: str, since_seq: int, follow: bool) -> Iterator[PublishedItem]:
        seen = since_seq
        batches = self._connection.stream(
            method, lambda: pb.StreamPublishedRequest(run_id=run_id, since_seq=seen, follow=follow)
        )
        for batch in batches:
            for message in batch.items:
                item = PublishedItem.from_message(message, seen)
                seen = item.seq
                yield item

    def logs(
        self, run_id: str, stream: str = "stdout", follow: bool = False, offset: int = 0
    ) -> Iterator[bytes]:
        """A log of the run from `offset` on: `stdout`, `stderr`, `events` or `supervisor`."""
        at = offset
        chunks = self._connection.stream(
            "StreamLogs",
            lambda: pb.StreamLogsRequest(run_id=run_id, stream=stream, offset=at, follow=follow),
        )
        for chunk in chunks:
            at = chunk.offset
            yield chunk.data

    def artifacts(self, run_id: str) -> list[Artifact]:
        """The files that the run has left so far."""
        return list_artifacts(Path(self.get(run_id).run_dir))


def _chunk(message: pb.MetricChunk) -> ScalarChunk:
    series = {
        one.tag: Series(array("q", one.steps), array("d", one.wall_times), array("d", one.values))
        for one in message.series
    }
    return ScalarChunk(message.source, message.purge_from if message.HasField("purge_from") else None, series)
