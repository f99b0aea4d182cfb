"""TrainerService as clients see it: calls about runs, thin over the engine."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Collection, Sequence

from mosaic import __version__
from mosaic.contract.errors import UnavailableError, UserError
from mosaic.contract.fsm import Outcome, RunStatus
from mosaic.contract.outside import take_json
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.run_config import MOST_CONFIG_BYTES
from mosaic.trainer import streams
from mosaic.trainer.calls import Context, streaming, unary
from mosaic.trainer.engine import Engine
from mosaic.trainer.listing import COLUMNS, MOST_RUNS, USUAL_FIELDS, RunQuery
from mosaic.trainer.messages import page_message, run_message, transition_message
from mosaic.trainer.worker_service import WorkerService

_PAUSE_SECONDS = 20.0


class TrainerService(WorkerService):
    """What clients can ask of the daemon; `WorkerService` has what workers can."""

    def __init__(self, engine: Engine, stop: asyncio.Event) -> None:
        super().__init__(engine, stop)
        self._started_at = time.monotonic()

    @unary
    async def SubmitRun(self, request: pb.SubmitRunRequest, context: Context) -> pb.Run:
        payload = take_json(request.config_json, "The run config", MOST_CONFIG_BYTES)
        if not request.request_id:
            raise UserError("The submit has no request_id: give each run one of its own.")
        run = self._engine.submit(payload, request.request_id, dict(request.environment))
        return run_message(self._engine, run)

    @unary
    async def CancelRun(self, request: pb.CancelRunRequest, context: Context) -> pb.Run:
        run = self._engine.registry.resolve(request.run_id)
        return run_message(self._engine, self._engine.cancel(run.run_id, request.reason))

    @unary
    async def PauseRun(self, request: pb.PauseRunRequest, context: Context) -> pb.Run:
        return await self._pause(request.run_id, wanted=True)

    @unary
    async def ResumeRun(self, request: pb.ResumeRunRequest, context: Context) -> pb.Run:
        return await self._pause(request.run_id, wanted=False)

    async def _pause(self, prefix: str, wanted: bool) -> pb.Run:
        engine = self._engine
        run = engine.registry.resolve(prefix)
        other = RunStatus.EXEC if wanted else RunStatus.PAUSE
        deadline = time.monotonic() + _PAUSE_SECONDS
        with engine.broker.subscribe(run.run_id) as subscriber:
            engine.pause(run.run_id, wanted)
            while engine.registry.get(run.run_id).status == other and time.monotonic() < deadline:
                await subscriber.wait(deadline - time.monotonic())
        return run_message(engine, engine.registry.get(run.run_id))

    @unary
    async def ReorderRun(self, request: pb.ReorderRunRequest, context: Context) -> pb.Run:
        run = self._engine.registry.resolve(request.run_id)
        priority = request.priority if request.HasField("priority") else None
        return run_message(self._engine, self._engine.reorder(run.run_id, priority, request.before_run_id))

    @unary
    async def LabelRun(self, request: pb.LabelRunRequest, context: Context) -> pb.Run:
        run = self._engine.registry.resolve(request.run_id)
        labelled = self._engine.label(
            run.run_id,
            request.run_name if request.HasField("run_name") else None,
            list(request.tags.tags) if request.HasField("tags") else None,
            request.notes if request.HasField("notes") else None,
        )
        return run_message(self._engine, labelled)

    @unary
    async def GetRun(self, request: pb.GetRunRequest, context: Context) -> pb.Run:
        run = self._engine.registry.resolve(request.run_id)
        return run_message(self._engine, run, self._engine.registry.history(0, run.run_id))

    @unary
    async def ListRuns(self, request: pb.ListRunsRequest, context: Context) -> pb.ListRunsResponse:
        return page_message(self._engine, await self._engine.listing.page(_query(request)))

    @unary
    async def DeleteRun(self, request: pb.DeleteRunRequest, context: Context) -> pb.DeleteRunResponse:
        run = self._engine.registry.resolve(request.run_id)
        return pb.DeleteRunResponse(freed_bytes=await self._engine.remove(run.run_id))

    @unary
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

    @unary
    async def Shutdown(self, request: pb.ShutdownRequest, context: Context) -> pb.ShutdownResponse:
        self._stop.set()
        return pb.ShutdownResponse()

    @streaming
    async def WatchRuns(self, request: pb.WatchRunsRequest, context: Context) -> AsyncIterator[pb.RunUpdate]:
        run_id = self._engine.registry.resolve(request.run_id).run_id if request.run_id else ""
        seen = request.since_seq
        with self._engine.broker.subscribe(run_id) as subscriber:
            while not self._stop.is_set():
                rows = self._engine.registry.history(seen, run_id)
                for row in rows:
                    seen = row.seq
                    yield pb.RunUpdate(transition=transition_message(row))
                if request.headlines:
                    for about, headline in subscriber.take_headlines().items():
                        message = pb.Headline(run_id=about, headline_json=json.dumps(headline))
                        yield pb.RunUpdate(headline=message)
                    for about in subscriber.take_changed():
                        run = self._engine.registry.known(about)
                        if run is None:
                            yield pb.RunUpdate(removed=about)
                        else:
                            yield pb.RunUpdate(run=run_message(self._engine, run))
                # A long history comes in parts, and is waited for when there is no more of it.
                if not rows:
                    await subscriber.wait()
        raise UnavailableError("The daemon is stopping.")

    @streaming
    async def StreamMetrics(
        self, request: pb.StreamMetricsRequest, context: Context
    ) -> AsyncIterator[pb.MetricBatch]:
        async for batch in streams.metrics(self._engine, request, self._stop):
            yield batch

    @streaming
    async def StreamLogs(self, request: pb.StreamLogsRequest, context: Context) -> AsyncIterator[pb.LogChunk]:
        async for chunk in streams.logs(self._engine, request, self._stop):
            yield chunk


def _query(request: pb.ListRunsRequest) -> RunQuery:
    """What a list is asked for; a UserError names what there is not."""
    _check_known("state", request.statuses, list(RunStatus))
    _check_known("outcome", request.outcomes, list(Outcome))
    _check_known("field of a listed run", request.fields, COLUMNS)
    if request.limit > MOST_RUNS:
        raise UserError(f"A page has at most {MOST_RUNS} runs, not {request.limit}: ask for several pages.")
    return RunQuery(
        statuses=list(request.statuses),
        outcomes=list(request.outcomes),
        tags=list(request.tags),
        without_tags=list(request.without_tags),
        algo=request.algo,
        env_id=request.env_id,
        run_ids=list(request.run_ids),
        ended_before=request.ended_before if request.HasField("ended_before") else None,
        filter=request.filter,
        order_by=request.order_by,
        ascending=request.ascending,
        fields=list(request.fields) or USUAL_FIELDS,
        limit=request.limit,
        cursor=request.cursor,
        count=request.count,
    )


def _check_known(what: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"'{name}' is not a known {what}: it is one of {', '.join(known)}.")
