"""What `--json` prints of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosaic.analytics.artifacts import Artifact
    from mosaic.client import HistoryEntry, RunHeadline, RunRecord

_PLAIN = ("run_id", "run_name", "status", "outcome", "reason", "run_dir", "worker_type", "tags", "priority")
_TIMES = ("submitted_at", "started_at", "ended_at", "exit_code")
_WORKER = ("algo", "env_id", "seed", "total_timesteps")


def run_json(run: RunRecord) -> dict[str, Any]:
    """A run in a list."""
    asked = run.worker_config
    return {
        **{name: getattr(run, name) for name in _PLAIN},
        **{name: asked.get(name) for name in _WORKER},
        **{name: getattr(run, name) for name in _TIMES},
        "headline": run.headline,
    }


def full_run_json(run: RunRecord, files: Sequence[Artifact]) -> dict[str, Any]:
    """Everything about one run."""
    history = [
        {name: getattr(entry, name) for name in ("seq", "status", "outcome", "at", "reason")}
        for entry in run.history
    ]
    return {
        **run_json(run),
        "history": history,
        "supervisor_pid": run.supervisor_pid,
        "training_pid": run.training_pid,
        "worker": run.worker,
        "config": run.config,
        "files": [asdict(file) for file in files],
    }


def update_json(update: HistoryEntry | RunHeadline) -> dict[str, Any]:
    """One line of `watch --json`: a state change has `status`, a new headline has `headline`."""
    return asdict(update)
