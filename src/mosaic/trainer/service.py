"""TrainerService, thin over the engine: what clients can ask, what workers tell, and rows as messages."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableSequence, Sequence
from contextlib import ExitStack
from dataclasses import fields
from functools import partialmethod
from pathlib import Path
from typing import Any, TypeVar

from mosaic import __version__
from mosaic.analytics.event_files import EventReader, ScalarChunk
from mosaic.contract.connection import WORKER_KEY
from mosaic.contract.errors import UnavailableError, UserError
from mosaic.contract.fsm import Outcome, RunStatus
from mosaic.contract.outside import take_json
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc
from mosaic.contract.run_config import MOST_CONFIG_BYTES
from mosaic.contract.run_filter import BRIEF, RunQuery
from mosaic.trainer.broker import Subscriber
from mosaic.trainer.doors import Context, ForbiddenError
from mosaic.trainer.engine import Engine
from mosaic.trainer.listing import COLUMNS, MOST_RUNS
from mosaic.trainer.rows import RunRow, TransitionRow

_PAUSE_SECONDS = 20.0
_METRICS_SECONDS = 2.0
_LOGS_SECONDS = 0.3
"""A followed file is looked at this often, and at each heartbeat."""
_CHUNK_BYTES = 256 * 1024
_RECORDS = 20_000
_INTRODUCTION = (
    *("worker_id", "worker_kind", "proto_version", "schema_id", "schema_version"),
    *("supports_pause", "supports_checkpoint"),
)
_AS_STORED = (
    *("run_id", "run_name", "worker_type", "status", "outcome", "tags", "submitted_at", "started_at"),
    *("ended_at", "exit_code", "supervisor_pid", "training_pid", "priority", "place"),
)
"""What clients are told of a run as its row has it; a column without a value is a field without one."""

Found = TypeVar("Found")


def run_message(engine: Engine, run: RunRow, history: Sequence[TransitionRow] = ()) -> pb.Run:
    """What clients are told of a run."""
    waits = run.status == RunStatus.INIT
    told = engine.waits_for(run.run_id, engine.registry.ahead(run)) if waits else None
    return pb.Run(
        **{name: getattr(run, name) for name in _AS_STORED},
        reason=told or run.reason,
        run_dir=str(engine.paths.run(run.run_id).run_dir),
        config_json=json.dumps(run.config),
        headline_json=json.dumps(engine.live_headline(run.run_id) or run.headline),
        worker_json=json.dumps(run.worker),
        gpus=run.gpu_ids,
        history=[pb.Transition(**vars(row)) for row in history],
    )


def _listed(engine: Engine, run: dict[str, Any], ahead: Mapping[str, int]) -> pb.Run:
    """A run with those of its fields that were asked for. What is JSON in the database goes as it is."""
    run_id, ended = run["run_id"], run["status"] == RunStatus.TERM
    if "run_dir" in run:
        run["run_dir"] = str(engine.paths.run(run_id).run_dir)
    for name in ("tags", "gpus"):
        if name in run:
            run[name] = json.loads(run[name])
    if "reason" in run and run["status"] == RunStatus.INIT:
        run["reason"] = engine.waits_for(run_id, ahead.get(run_id, 0)) or run["reason"]
    newest = None if ended or "headline_json" not in run else engine.live_headline(run_id)
    if newest is not None:
        run["headline_json"] = json.dumps(newest)
    return pb.Run(**{name: value for name, value in run.items() if value is not None})


def _chunk(chunk: ScalarChunk) -> pb.MetricChunk:
    series = [
        pb.Series(tag=tag, steps=one.steps, wall_times=one.wall_times, values=one.values)
        for tag, one in chunk.series.items()
    ]
    return pb.MetricChunk(source=chunk.source, purge_from=chunk.purge_from, series=series)


def _read(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            # No file is so long, and some file systems refuse the place.
            if offset > file.seek(0, os.SEEK_END):
                return b""
            file.seek(offset)
            return file.read(_CHUNK_BYTES)
    except FileNotFoundError:
        return b""


class TrainerService(pb_grpc.TrainerServiceServicer):
    """The calls of clients, then those of supervisors, each with the run's secret or its session token."""

    def __init__(self, engine: Engine, stop: asyncio.Event) -> None:
        self._engine = engine
        self._stop = stop
        self._started_at = time.monotonic()

    async def SubmitRun(self, request: pb.SubmitRunRequest, context: Context) -> pb.Run:
        payload = take_json(request.config_json, "The run config", MOST_CONFIG_BYTES)
        if not request.request_id:
            raise UserError("The submit has no request_id: give each run a unique one.")
        run = self._engine.submit(payload, request.request_id, dict(request.environment))
        return run_message(self._engine, run)

    async def CancelRun(self, request: pb.CancelRunRequest, context: Context) -> pb.Run:
        return run_message(self._engine, self._engine.cancel(request.run_id, request.reason))

    async def _pause(
        self, wanted: bool, request: pb.PauseRunRequest | pb.ResumeRunRequest, context: Context
    ) -> pb.Run:
        engine = self._engine
        run = engine.registry.resolve(request.run_id)
        other = RunStatus.EXEC if wanted else RunStatus.PAUSE
        deadline = time.monotonic() + _PAUSE_SECONDS
        with engine.broker.subscribe(run.run_id) as subscriber:
            engine.pause(run.run_id, wanted)
            while engine.registry.get(run.run_id).status == other and time.monotonic() < deadline:
                await subscriber.wait(deadline - time.monotonic())
        return run_message(engine, engine.registry.get(run.run_id))

    PauseRun = partialmethod(_pause, True)
    ResumeRun = partialmethod(_pause, False)

    async def ReorderRun(self, request: pb.ReorderRunRequest, context: Context) -> pb.Run:
        priority = request.priority if request.HasField("priority") else None
        run = self._engine.reorder(request.run_id, priority, request.before_run_id)
        return run_message(self._engine, run)

    async def LabelRun(self, request: pb.LabelRunRequest, context: Context) -> pb.Run:
        labelled = self._engine.label(
            request.run_id,
            request.run_name if request.HasField("run_name") else None,
            list(request.tags.tags) if request.HasField("tags") else None,
            request.notes if request.HasField("notes") else None,
        )
        return run_message(self._engine, labelled)

    async def GetRun(self, request: pb.GetRunRequest, context: Context) -> pb.Run:
        run = self._engine.registry.resolve(request.run_id)
        return run_message(self._engine, run, self._engine.registry.history(0, run.run_id))

    async def ListRuns(self, request: pb.ListRunsRequest, context: Context) -> pb.ListRunsResponse:
        page = await self._engine.listing.page(_query(request))
        counts = [
            pb.StateCount(status=status, outcome=outcome or "", runs=runs)
            for (status, outcome), runs in page.counts.items()
        ]
        runs = [_listed(self._engine, run, page.ahead) for run in page.runs]
        return pb.ListRunsResponse(runs=runs, next_cursor=page.next_cursor, counts=counts)

    async def DeleteRun(self, request: pb.DeleteRunRequest, context: Context) -> pb.DeleteRunResponse:
        return pb.DeleteRunResponse(freed_bytes=await self._engine.remove(request.run_id))

    async def AdoptRun(self, request: pb.AdoptRunRequest, context: Context) -> pb.Run:
        return run_message(self._engine, await self._engine.adopt(request.run_id))

    async def GetHealth(self, request: pb.GetHealthRequest, context: Context) -> pb.Health:
        engine, machine = self._engine, self._engine.machine
        holders = engine.registry.holders()
        return pb.Health(
            version=__version__,
            pid=os.getpid(),
            uptime_seconds=time.monotonic() - self._started_at,
            live_runs=len(holders),
            waiting_runs=engine.registry.count_waiting(),
            cpus=machine.cpus,
            cpus_reserved=sum(run.cpus for run in holders),
            memory_mb=machine.memory_mb,
            memory_mb_reserved=sum(run.memory_mb for run in holders),
            gpus=len(machine.gpus),
            gpus_reserved=sum(len(run.gpu_ids) for run in holders),
            last_seq=engine.registry.last_seq(),
            disk_free_bytes=shutil.disk_usage(engine.paths.root).free,
            problems=engine.lifecycle.storage.problems(),
            notices=engine.registry.notices(),
        )

    async def Shutdown(self, request: pb.ShutdownRequest, context: Context) -> pb.ShutdownResponse:
        self._stop.set()
        return pb.ShutdownResponse()

    async def WatchRuns(self, request: pb.WatchRunsRequest, context: Context) -> AsyncIterator[pb.RunUpdate]:
        run_id = self._engine.registry.resolve(request.run_id).run_id if request.run_id else ""
        seen = request.since_seq
        with self._engine.broker.subscribe(run_id) as subscriber:
            while not self._stop.is_set():
                rows = self._engine.registry.history(seen, run_id)
                for row in rows:
                    seen = row.seq
                    yield pb.RunUpdate(transition=pb.Transition(**vars(row)))
                if request.headlines:
                    headlines, changed = subscriber.take()
                    for about, headline in headlines.items():
                        message = pb.Headline(run_id=about, headline_json=json.dumps(headline))
                        yield pb.RunUpdate(headline=message)
                    for about in changed:
                        run = self._engine.registry.known(about)
                        if run is None:
                            yield pb.RunUpdate(removed=about)
                        else:
                            yield pb.RunUpdate(run=run_message(self._engine, run))
                # A long history comes in parts, and is waited for when there is no more of it.
                if not rows:
                    await subscriber.wait()
        raise UnavailableError("The daemon is stopping.")

    async def RegisterWorker(
        self, request: pb.RegisterWorkerRequest, context: Context
    ) -> pb.RegisterWorkerResponse:
        details = take_json(request.details_json or "{}", "'details_json'", MOST_CONFIG_BYTES)
        worker = {name: getattr(request, name) for name in _INTRODUCTION} | {"details": details}
        token = self._engine.register(request.run_id, _credential(context), worker)
        if token is None:
            raise ForbiddenError("This is not the worker of that run.")
        self._engine.published.begin(request.run_id)
        return pb.RegisterWorkerResponse(session_token=token)

    async def Heartbeat(self, request: pb.HeartbeatRequest, context: Context) -> pb.HeartbeatResponse:
        self._check(request.run_id, context)
        self._engine.hear(request.run_id)
        return pb.HeartbeatResponse()

    async def ControlStream(
        self, request: pb.ControlStreamRequest, context: Context
    ) -> AsyncIterator[pb.ControlMessage]:
        self._check(request.run_id, context)
        control = self._engine.control
        with control.connect(request.run_id) as channel:
            run = self._engine.registry.get(request.run_id)
            if run.pause_wanted != (run.status == RunStatus.PAUSE):
                # A wish that was lost with a connection. One that is met is not repeated: a run that others
                # have stopped meanwhile would go on.
                channel.tell(pause=run.pause_wanted)
            while True:
                messages = await channel.messages()
                if self._stop.is_set():
                    raise UnavailableError("The daemon is stopping.")
                if not control.is_current(request.run_id, channel):
                    return
                for message in messages:
                    yield message

    async def _stream_published(
        self, stream: str, request: pb.StreamPublishedRequest, context: Context
    ) -> AsyncIterator[pb.PublishedBatch]:
        """Items after the cursor, as far as they are kept; with `follow` until the run has ended."""
        engine, seen = self._engine, request.since_seq
        run_id = engine.registry.resolve(request.run_id).run_id
        ring = engine.published.ring(run_id, stream)

        async def look() -> pb.PublishedBatch | None:
            nonlocal seen
            batch = ring.since(seen)
            seen = batch.items[-1].seq if batch is not None else seen
            return batch

        with ExitStack() as stack:
            subscriber = stack.enter_context(engine.broker.subscribe(run_id))
            stack.enter_context(engine.published.reading(run_id, subscriber))
            if request.follow:
                # One glance is not a reason for a worker to hurry.
                stack.enter_context(engine.control.reading(run_id))
            async for batch in self._follow(subscriber, request.follow, look):
                yield batch

    StreamRunSteps = partialmethod(_stream_published, "steps")
    StreamRunEpisodes = partialmethod(_stream_published, "episodes")

    async def StreamMetrics(
        self, request: pb.StreamMetricsRequest, context: Context
    ) -> AsyncIterator[pb.MetricBatch]:
        """Scalars from the cursor on; with `follow` until the run has ended."""
        run_id = self._engine.registry.resolve(request.run_id).run_id
        reader = EventReader(self._engine.paths.run(run_id).run_dir, cursor=request.cursor or None)

        async def look() -> pb.MetricBatch | None:
            chunks = await asyncio.to_thread(reader.poll, _RECORDS)
            return pb.MetricBatch(chunks=map(_chunk, chunks), cursor=reader.cursor()) if chunks else None

        with self._engine.broker.subscribe(run_id) as subscriber:
            async for batch in self._follow(subscriber, request.follow, look, _METRICS_SECONDS):
                yield batch

    async def StreamLogs(self, request: pb.StreamLogsRequest, context: Context) -> AsyncIterator[pb.LogChunk]:
        """Bytes of a log from the offset on; with `follow` until the run has ended."""
        run_id, offset = self._engine.registry.resolve(request.run_id).run_id, request.offset
        known = self._engine.paths.run_logs(run_id)
        if request.stream not in known:
            raise UserError(f"'{request.stream}' is not a log of a run: it is one of {', '.join(known)}.")

        async def look() -> pb.LogChunk | None:
            nonlocal offset
            data = _read(known[request.stream], offset)
            offset += len(data)
            return pb.LogChunk(data=data, offset=offset) if data else None

        with self._engine.broker.subscribe(run_id) as subscriber:
            async for chunk in self._follow(subscriber, request.follow, look, _LOGS_SECONDS):
                yield chunk

    async def _follow(
        self,
        subscriber: Subscriber,
        follow: bool,
        look: Callable[[], Awaitable[Found | None]],
        seconds: float | None = None,
    ) -> AsyncIterator[Found]:
        """What `look` finds, until it finds nothing more; with `follow` until the run has ended as well.

        It looks when the run has news, and every so many seconds.
        """
        while True:
            # Asked first: what was written before the end is found after it.
            ended = self._engine.registry.get(subscriber.run_id).status == RunStatus.TERM
            found = await look()
            if found is not None:
                yield found
            elif ended or not follow:
                return
            else:
                await subscriber.wait(seconds)
            if self._stop.is_set():
                raise UnavailableError("The daemon is stopping.")

    async def _publish(
        self, stream: str, requests: AsyncIterator[pb.PublishRequest], context: Context
    ) -> pb.PublishResponse:
        accepted, checked = 0, ""
        async for request in requests:
            if request.run_id != checked:
                self._check(request.run_id, context)
                checked = request.run_id
            for item in request.items:
                take_json(item.payload_json, "'payload_json'", MOST_CONFIG_BYTES)
            accepted += self._engine.published.add(request.run_id, stream, request.items)
            # Credits come back at once: a reader that lags loses items of its own, it holds up no worker.
            self._engine.control.tell(request.run_id, credits=len(request.items))
        return pb.PublishResponse(accepted=accepted)

    PublishRunSteps = partialmethod(_publish, "steps")
    PublishRunEpisodes = partialmethod(_publish, "episodes")

    def _check(self, run_id: str, context: Context) -> None:
        if not self._engine.is_session(run_id, _credential(context)):
            raise ForbiddenError("The session token is not this run's.")


def _credential(context: Context) -> str:
    return str(dict(context.invocation_metadata() or ()).get(WORKER_KEY, ""))


def _query(request: pb.ListRunsRequest) -> RunQuery:
    """What a list is asked for; a UserError names what there is not."""
    _check_known("state", request.statuses, list(RunStatus))
    _check_known("outcome", request.outcomes, list(Outcome))
    _check_known("field of a listed run", request.fields, list(COLUMNS))
    if request.limit > MOST_RUNS:
        raise UserError(f"A page has at most {MOST_RUNS} runs, not {request.limit}: ask for several pages.")
    asked = {one.name: getattr(request, one.name) for one in fields(RunQuery)}
    lists = {name: list(value) for name, value in asked.items() if isinstance(value, MutableSequence)}
    before = request.ended_before if request.HasField("ended_before") else None
    return RunQuery(**(asked | lists | {"ended_before": before, "fields": lists["fields"] or BRIEF}))


def _check_known(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"'{name}' is not a known {what}: it is one of {', '.join(known)}.")
