"""How fast earlier runs of the same kind were."""

from __future__ import annotations

from collections.abc import Iterable

from mosaic.client import RunRecord


def speed_of(runs: Iterable[RunRecord], algo: str, env_id: str) -> float | None:
    """Steps per second of the newest run that trained this algorithm there; None when there is none."""
    fitting = [
        run
        for run in runs
        if (run.worker_config.get("algo"), run.worker_config.get("env_id")) == (algo, env_id)
        and (run.worker_config.get("extras") or {}).get("mode", "train") == "train"
        and run.headline.get("sps")
    ]
    newest = max(fitting, key=lambda run: run.submitted_at, default=None)
    return None if newest is None else float(newest.headline["sps"])
