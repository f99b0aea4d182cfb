"""Rows of the registry as messages of the wire."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mosaic.contract.fsm import RunStatus
from mosaic.contract.paths import VarPaths
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.trainer.engine import Engine
from mosaic.trainer.listing import RunPage
from mosaic.trainer.rows import RunRow, TransitionRow


def run_message(engine: Engine, run: RunRow, history: Sequence[TransitionRow] = ()) -> pb.Run:
    """What clients are told of a run."""
    paths: VarPaths = engine.paths
    waits = run.status == RunStatus.INIT
    told = engine.waits_for(run.run_id, engine.registry.ahead(run)) if waits else None
    return pb.Run(
        run_id=run.run_id,
        run_name=run.run_name,
        worker_type=run.worker_type,
        status=run.status,
        outcome=run.outcome or "",
        reason=told or run.reason or "",
        run_dir=str(paths.run(run.run_id).run_dir),
        tags=run.tags,
        submitted_at=run.submitted_at,
        started_at=run.started_at or 0.0,
        ended_at=run.ended_at or 0.0,
        exit_code=run.exit_code,
        supervisor_pid=run.supervisor_pid or 0,
        training_pid=run.training_pid or 0,
        config_json=json.dumps(run.config),
        headline_json=json.dumps(engine.live_headline(run.run_id) or run.headline),
        worker_json=json.dumps(run.worker),
        priority=run.priority,
        place=run.place,
        gpus=run.gpu_ids,
        history=[transition_message(row) for row in history],
    )


def page_message(engine: Engine, page: RunPage) -> pb.ListRunsResponse:
    """A page of a list."""
    counts = [
        pb.StateCount(status=status, outcome=outcome or "", runs=runs)
        for (status, outcome), runs in page.counts.items()
    ]
    runs = [_listed(engine, run, page.ahead) for run in page.runs]
    return pb.ListRunsResponse(runs=runs, next_cursor=page.next_cursor, counts=counts)


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


def transition_message(row: TransitionRow) -> pb.Transition:
    return pb.Transition(
        seq=row.seq,
        run_id=row.run_id,
        status=row.status,
        outcome=row.outcome or "",
        reason=row.reason or "",
        at=row.at,
    )
