"""Records of runs that no daemon has."""

from __future__ import annotations

from typing import Any

from mosaic.client import RunRecord


def plain_record(run_id: str, **values: Any) -> RunRecord:
    """A run about which nothing is known but what is given here."""
    plain: dict[str, Any] = {
        "run_name": "run",
        "worker_type": "cleanrl",
        "status": "TERM",
        "outcome": None,
        "reason": None,
        "run_dir": f"/nowhere/{run_id}",
        "tags": [],
        "submitted_at": 0.0,
        "started_at": None,
        "ended_at": None,
        "exit_code": None,
        "supervisor_pid": None,
        "training_pid": None,
        "priority": 0,
        "place": 0.0,
        "gpus": [],
        "config": {},
        "headline": {},
        "worker": {},
    }
    return RunRecord(run_id=run_id, **{**plain, **values})
