"""Records of runs for tests of models; runs that really train are made by a daemon."""

from __future__ import annotations

from typing import Any

from mosaic.client import RunRecord
from support.records import plain_record


def record(run_id: str = "01RUN", **values: Any) -> RunRecord:
    """A run that trains ppo on CartPole-v1; `config` is what its worker was asked."""
    asked = {
        "run_id": run_id,
        "algo": "ppo",
        "env_id": "CartPole-v1",
        "total_timesteps": 1000,
        "seed": 1,
        "extras": {},
        **values.pop("asked", {}),
    }
    worker = {"type": "cleanrl", "module": None, "python": None, "config": asked}
    config = {
        "run_name": "ppo-cartpole-v1",
        "resources": {"cpus": 1, "memory_mb": None, "gpus": {"requested": 0, "mandatory": False}},
        "artifacts": {"tensorboard": {"enabled": True}, "wandb": {"enabled": False}},
        "schedule": {"max_wallclock_minutes": None, "max_restarts": 0, "priority": 0},
        "tags": [],
        "metadata": {"worker": worker, "ui": {"python_path": "/work"}},
    }
    plain: dict[str, Any] = {
        "run_name": "ppo-cartpole-v1",
        "status": "EXEC",
        "run_dir": f"/var/{run_id}",
        "submitted_at": 1000.0,
        "started_at": 1001.0,
    }
    return plain_record(run_id, config=config, **{**plain, **values})
