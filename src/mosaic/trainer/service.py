"""TrainerService as clients see it: calls about runs, thin over the engine, and rows as messages."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Collection, Mapping, MutableSequence, Sequence
from dataclasses import fields
from typing import Any

from mosaic import __version__
from mosaic.contract.errors import UnavailableError, UserError
from mosaic.contract.fsm import Outcome, RunStatus
from mosaic.contract.outside import take_json
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.run_config import MOST_CONFIG_BYTES
from mosaic.contract.run_filter import BRIEF, RunQuery
from mosaic.trainer.doors import Context
from mosaic.trainer.engine import Engine
from mosaic.trainer.listing import COLUMNS, MOST_RUNS
from mosaic.trainer.rows import RunRow, TransitionRow
from mosaic.trainer.worker_service import WorkerService

_AS_STORED = (
    *("run_id", "run_name", "worker_type", "status", "outcome", "tags", "submitted_at", "started_at"),
    *("ended_at", "exit_code", "supervisor_pid", "training_pid", "priority", "place"),
)
"""What clients are told of a run as its row has it; a column without a value is a field without one."""


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


_PAUSE_SECONDS = 20.0


class TrainerService(WorkerService):
    """What clients can ask of the daemon; `WorkerService` has what workers can."""

    def __init__(self, engine: Engine, stop: asyncio.Event) -> None:
        super().__init__(engine, stop)
        self._started_at = time.monotonic()

    async def SubmitRun(self, request: pb.SubmitRunRequest, context: Context) -> pb.Run:
        payload = take_json(request.config_json, "The run config", MOST_CONFIG_BYTES)
        if not request.request_id:
            raise UserError("The submit has no request_id: give each run one of its own.")
        run = self._engine.submit(payload, request.request_id, dict(request.environment))
        return run_message(self._engine, run)

    async def CancelRun(self, request: pb.CancelRunRequest, context: Context) -> pb.Run:
        return run_message(self._engine, self._engine.cancel(request.run_id, request.reason))

    async def PauseRun(self, request: pb.PauseRunRequest, context: Context) -> pb.Run:
        return await self._pause(request.run_id, wanted=True)

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


def _query(request: pb.ListRunsRequest) -> RunQuery:
    """What a list is asked for; a UserError names what there is not."""
    _check_known("state", request.statuses, list(RunStatus))
    _check_known("outcome", request.outcomes, list(Outcome))
    _check_known("field of a listed run", request.fields, COLUMNS)
    if request.limit > MOST_RUNS:
        raise UserError(f"A page has at most {MOST_RUNS} runs, not {request.limit}: ask for several pages.")
    asked = {one.name: getattr(request, one.name) for one in fields(RunQuery)}
    lists = {name: list(value) for name, value in asked.items() if isinstance(value, MutableSequence)}
    before = request.ended_before if request.HasField("ended_before") else None
    return RunQuery(**(asked | lists | {"ended_before": before, "fields": lists["fields"] or BRIEF}))


def _check_known(what: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"'{name}' is not a known {what}: it is one of {', '.join(known)}.")
