"""TrainerService as workers see it, and what clients follow: metrics, logs and what workers publish."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from mosaic.analytics.event_files import EventReader, ScalarChunk
from mosaic.contract.connection import WORKER_KEY
from mosaic.contract.errors import UnavailableError, UserError
from mosaic.contract.fsm import RunStatus
from mosaic.contract.outside import take_json
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc
from mosaic.contract.run_config import MOST_CONFIG_BYTES
from mosaic.trainer.broker import Subscriber
from mosaic.trainer.doors import Context, ForbiddenError
from mosaic.trainer.engine import Engine

_METRICS_SECONDS = 2.0
_LOGS_SECONDS = 0.3
"""A followed file is looked at this often, and at each heartbeat."""
_CHUNK_BYTES = 256 * 1024
_RECORDS = 20_000

Found = TypeVar("Found")


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


_INTRODUCTION = (
    *("worker_id", "worker_kind", "proto_version", "schema_id", "schema_version"),
    *("supports_pause", "supports_checkpoint"),
)


class WorkerService(pb_grpc.TrainerServiceServicer):
    """The calls of supervisors, each with the run's secret or its session token."""

    def __init__(self, engine: Engine, stop: asyncio.Event) -> None:
        self._engine = engine
        self._stop = stop

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

    async def PublishRunSteps(
        self, requests: AsyncIterator[pb.PublishRequest], context: Context
    ) -> pb.PublishResponse:
        return await self._publish("steps", requests, context)

    async def PublishRunEpisodes(
        self, requests: AsyncIterator[pb.PublishRequest], context: Context
    ) -> pb.PublishResponse:
        return await self._publish("episodes", requests, context)

    async def StreamRunSteps(
        self, request: pb.StreamPublishedRequest, context: Context
    ) -> AsyncIterator[pb.PublishedBatch]:
        async for batch in self._stream_published("steps", request):
            yield batch

    async def StreamRunEpisodes(
        self, request: pb.StreamPublishedRequest, context: Context
    ) -> AsyncIterator[pb.PublishedBatch]:
        async for batch in self._stream_published("episodes", request):
            yield batch

    async def _stream_published(
        self, stream: str, request: pb.StreamPublishedRequest
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

    def _check(self, run_id: str, context: Context) -> None:
        if not self._engine.is_session(run_id, _credential(context)):
            raise ForbiddenError("The session token is not this run's.")


def _credential(context: Context) -> str:
    return str(dict(context.invocation_metadata() or ()).get(WORKER_KEY, ""))
