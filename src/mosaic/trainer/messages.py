"""Rows of the registry as messages of the wire."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mosaic.contract.paths import VarPaths
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.trainer.engine import Engine
from mosaic.trainer.rows import RunRow, TransitionRow


def run_message(engine: Engine, run: RunRow, history: Sequence[TransitionRow] = ()) -> pb.Run:
    """What clients are told of a run."""
    paths: VarPaths = engine.paths
    return pb.Run(
        run_id=run.run_id,
        run_name=run.run_name,
        worker_type=run.worker_type,
        status=run.status,
        outcome=run.outcome or "",
        reason=engine.reason(run) or "",
        run_dir=str(paths.run(run.run_id).run_dir),
        tags=run.tags,
        submitted_at=run.submitted_at,
        started_at=run.started_at or 0.0,
        ended_at=run.ended_at or 0.0,
        exit_code=run.exit_code,
        supervisor_pid=run.supervisor_pid or 0,
        training_pid=run.training_pid or 0,
        config_json=json.dumps(run.config),
        headline_json=json.dumps(engine.headline(run)),
        worker_json=json.dumps(run.worker),
        priority=run.priority,
        place=run.place,
        gpus=run.gpu_ids,
        history=[transition_message(row) for row in history],
    )


def transition_message(row: TransitionRow) -> pb.Transition:
    return pb.Transition(
        seq=row.seq,
        run_id=row.run_id,
        status=row.status,
        outcome=row.outcome or "",
        reason=row.reason or "",
        at=row.at,
    )
