"""TrainerService: the daemon's calls, thin over the engine."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import grpc

from mosaic import __version__
from mosaic.contract.connection import WORKER_KEY
from mosaic.contract.errors import (
    ConflictError,
    MosaicError,
    NotFoundError,
    StorageError,
    UnavailableError,
    UserError,
)
from mosaic.contract.fsm import STARTED, RunStatus
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc
from mosaic.trainer import log, streams
from mosaic.trainer.engine import Engine
from mosaic.trainer.log import Code
from mosaic.trainer.messages import run_message, transition_message

Context: TypeAlias = grpc.aio.ServicerContext
Answer = TypeVar("Answer")

_CODES: dict[type[MosaicError], grpc.StatusCode] = {
    NotFoundError: grpc.StatusCode.NOT_FOUND,
    UserError: grpc.StatusCode.INVALID_ARGUMENT,
    ConflictError: grpc.StatusCode.FAILED_PRECONDITION,
    StorageError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    UnavailableError: grpc.StatusCode.UNAVAILABLE,
}


async def _abort(context: Context, error: MosaicError) -> None:
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), grpc.StatusCode.INTERNAL)
    log.info(Code.CALL_REFUSED, f"{code.name}: {error}")
    await context.abort(code, str(error))


def _unary(method: Callable[..., Awaitable[Answer]]) -> Callable[..., Awaitable[Answer]]:
    """Our errors as status codes; any other is logged with its traceback."""

    @functools.wraps(method)
    async def guarded(self: TrainerService, request: Any, context: Context) -> Answer:
        self.touched_at = time.monotonic()
        try:
            return await method(self, request, context)
        except MosaicError as error:
            await _abort(context, error)
        except grpc.aio.AbortError:
            raise
        except Exception:
            log.exception(Code.CALL_FAILED, method.__name__)
            await context.abort(grpc.StatusCode.INTERNAL, "The daemon's log has the details.")
        raise AssertionError("abort raises")

    return guarded


class TrainerService(pb_grpc.TrainerServiceServicer):
    """What clients and workers can ask of the daemon."""

    def __init__(self, engine: Engine, stop: asyncio.Event) -> None:
        self._engine = engine
        self._stop = stop
        self._started_at = self.touched_at = time.monotonic()

    @_unary
    async def SubmitRun(self, request: pb.SubmitRunRequest, context: Context) -> pb.Run:
        try:
            payload = json.loads(request.config_json)
        except ValueError as error:
            raise UserError(f"The run config is not JSON: {error}.") from error
        if not request.request_id:
            raise UserError("The submit has no request_id: give each run one of its own.")
        return run_message(self._engine, self._engine.submit(payload, request.request_id))

    @_unary
    async def CancelRun(self, request: pb.CancelRunRequest, context: Context) -> pb.Run:
        run = self._engine.registry.resolve(request.run_id)
        return run_message(self._engine, self._engine.cancel(run.run_id, request.reason))

    @_unary
    async def GetRun(self, request: pb.GetRunRequest, context: Context) -> pb.Run:
        run = self._engine.registry.resolve(request.run_id)
        return run_message(self._engine, run, self._engine.registry.history(0, run.run_id))

    @_unary
    async def ListRuns(self, request: pb.ListRunsRequest, context: Context) -> pb.ListRunsResponse:
        rows = self._engine.registry.find(request.statuses, request.tags, request.limit)
        return pb.ListRunsResponse(runs=[run_message(self._engine, row) for row in rows])

    @_unary
    async def DeleteRun(self, request: pb.DeleteRunRequest, context: Context) -> pb.DeleteRunResponse:
        run = self._engine.registry.resolve(request.run_id)
        return pb.DeleteRunResponse(freed_bytes=await self._engine.remove(run.run_id))

    @_unary
    async def RegisterWorker(
        self, request: pb.RegisterWorkerRequest, context: Context
    ) -> pb.RegisterWorkerResponse:
        fields = ("worker_id", "worker_kind", "proto_version", "schema_id", "schema_version")
        worker = {name: getattr(request, name) for name in fields}
        worker |= {
            "supports_pause": request.supports_pause,
            "supports_checkpoint": request.supports_checkpoint,
            "details": json.loads(request.details_json or "{}"),
        }
        token = self._engine.register(request.run_id, _worker_credential(context), worker)
        if token is None:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "This is not the worker of that run.")
        return pb.RegisterWorkerResponse(session_token=token)

    @_unary
    async def Heartbeat(self, request: pb.HeartbeatRequest, context: Context) -> pb.HeartbeatResponse:
        if not self._engine.heartbeat(request.run_id, _worker_credential(context)):
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "The session token is not this run's.")
        return pb.HeartbeatResponse()

    @_unary
    async def GetHealth(self, request: pb.GetHealthRequest, context: Context) -> pb.Health:
        engine = self._engine
        live = engine.registry.live()
        return pb.Health(
            version=__version__,
            pid=os.getpid(),
            uptime_seconds=time.monotonic() - self._started_at,
            live_runs=sum(run.status in STARTED for run in live),
            waiting_runs=sum(run.status == RunStatus.INIT for run in live),
            cpus=engine.cpus,
            cpus_reserved=sum(run.cpus for run in live if run.status in STARTED),
            last_seq=engine.registry.last_seq(),
            disk_free_bytes=shutil.disk_usage(engine.paths.root).free,
        )

    @_unary
    async def Shutdown(self, request: pb.ShutdownRequest, context: Context) -> pb.ShutdownResponse:
        self._stop.set()
        return pb.ShutdownResponse()

    async def WatchRuns(self, request: pb.WatchRunsRequest, context: Context) -> AsyncIterator[pb.RunUpdate]:
        run_id, seen = request.run_id, request.since_seq
        with self._engine.broker.subscribe(run_id) as subscriber:
            while not self._stop.is_set():
                for row in self._engine.registry.history(seen, run_id):
                    seen = row.seq
                    yield pb.RunUpdate(transition=transition_message(row))
                if request.headlines:
                    for about, headline in subscriber.take_headlines().items():
                        message = pb.Headline(run_id=about, headline_json=json.dumps(headline))
                        yield pb.RunUpdate(headline=message)
                await subscriber.wait()
        await context.abort(grpc.StatusCode.UNAVAILABLE, "The daemon is stopping.")

    async def StreamMetrics(
        self, request: pb.StreamMetricsRequest, context: Context
    ) -> AsyncIterator[pb.MetricBatch]:
        try:
            async for batch in streams.metrics(self._engine, request, self._stop):
                yield batch
        except MosaicError as error:
            await _abort(context, error)

    async def StreamLogs(self, request: pb.StreamLogsRequest, context: Context) -> AsyncIterator[pb.LogChunk]:
        try:
            async for chunk in streams.logs(self._engine, request, self._stop):
                yield chunk
        except MosaicError as error:
            await _abort(context, error)


def _worker_credential(context: Context) -> str:
    return str(dict(context.invocation_metadata() or ()).get(WORKER_KEY, ""))
