"""The CleanRL worker keeps the contract of workers."""

from __future__ import annotations

from typing import Any

from mosaic.testing.worker_contract import WorkerContract
from support.runs import SCRIPTS


def _config(script: str, **params: Any) -> dict[str, Any]:
    return {
        "algo": str(SCRIPTS / script),
        "env_id": "None-v0",
        "total_timesteps": 3,
        "extras": {"algo_params": params},
    }


class TestCleanRLWorker(WorkerContract):
    worker_type = "cleanrl"
    long_processes = 5

    def short_config(self) -> dict[str, Any]:
        return _config("steps.py")

    def long_config(self) -> dict[str, Any]:
        return _config("has_children.py")

    def failing_config(self) -> dict[str, Any]:
        return _config("crashes.py")

    def wrong_config(self) -> dict[str, Any]:
        return _config("steps.py") | {"algo": "no_such_algorithm"}
