"""TrainerService as workers see it: handshake, heartbeats, control, and what they publish."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from mosaic.contract.connection import WORKER_KEY
from mosaic.contract.errors import UnavailableError
from mosaic.contract.fsm import RunStatus
from mosaic.contract.outside import take_json
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc
from mosaic.contract.run_config import MOST_CONFIG_BYTES
from mosaic.trainer import streams
from mosaic.trainer.calls import Context, ForbiddenError, streaming, unary
from mosaic.trainer.engine import Engine

_INTRODUCTION = (
    *("worker_id", "worker_kind", "proto_version", "schema_id", "schema_version"),
    *("supports_pause", "supports_checkpoint"),
)


class WorkerService(pb_grpc.TrainerServiceServicer):
    """The calls of supervisors, each with the run's secret or its session token."""

    def __init__(self, engine: Engine, stop: asyncio.Event) -> None:
        self._engine = engine
        self._stop = stop
        self.touched_at = time.monotonic()

    @unary
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

    @unary
    async def Heartbeat(self, request: pb.HeartbeatRequest, context: Context) -> pb.HeartbeatResponse:
        self._check(request.run_id, context)
        self._engine.hear(request.run_id)
        return pb.HeartbeatResponse()

    @streaming
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
                channel.pause(run.pause_wanted)
            while True:
                messages = await channel.messages()
                if self._stop.is_set():
                    raise UnavailableError("The daemon is stopping.")
                if not control.is_current(request.run_id, channel):
                    return
                for message in messages:
                    yield message

    @unary
    async def PublishRunSteps(
        self, requests: AsyncIterator[pb.PublishRequest], context: Context
    ) -> pb.PublishResponse:
        return await self._publish("steps", requests, context)

    @unary
    async def PublishRunEpisodes(
        self, requests: AsyncIterator[pb.PublishRequest], context: Context
    ) -> pb.PublishResponse:
        return await self._publish("episodes", requests, context)

    @streaming
    async def StreamRunSteps(
        self, request: pb.StreamPublishedRequest, context: Context
    ) -> AsyncIterator[pb.PublishedBatch]:
        async for batch in streams.published(self._engine, "steps", request, self._stop):
            yield batch

    @streaming
    async def StreamRunEpisodes(
        self, request: pb.StreamPublishedRequest, context: Context
    ) -> AsyncIterator[pb.PublishedBatch]:
        async for batch in streams.published(self._engine, "episodes", request, self._stop):
            yield batch

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
            self._engine.control.grant(request.run_id, len(request.items))
        return pb.PublishResponse(accepted=accepted)

    def _check(self, run_id: str, context: Context) -> None:
        if not self._engine.is_session(run_id, _credential(context)):
            raise ForbiddenError("The session token is not this run's.")


def _credential(context: Context) -> str:
    return str(dict(context.invocation_metadata() or ()).get(WORKER_KEY, ""))
