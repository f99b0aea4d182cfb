"""Run configs for the common cases, built and checked before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mosaic.contract.capabilities import WorkerCapabilities
from mosaic.contract.errors import UserError, closest
from mosaic.contract.workers import discover_workers


def worker_for(algo: str, worker_type: str | None = None) -> WorkerCapabilities:
    """The installed worker that knows `algo`; a path or dotted module goes to the first that takes it."""
    workers = [worker for name, worker in sorted(discover_workers().items()) if worker_type in (None, name)]
    if not workers:
        wanted = f"of type '{worker_type}' " if worker_type else ""
        raise UserError(f"No worker {wanted}is installed: run `./mosaic doctor`.")
    known: list[str] = []
    for worker in workers:
        catalog = worker.load_catalog()
        if catalog.knows(algo):
            return worker
        known += catalog.algorithms()
    raise UserError(
        f"'{algo}' is no known algorithm{closest(algo, known) or '.'} "
        f"Known: {', '.join(known)}; the path of a script or a dotted module will do as well."
    )


def train_config(
    algo: str,
    env_id: str,
    *,
    total_timesteps: int | None = None,
    seed: int | None = 1,
    params: Mapping[str, Any] | None = None,
    extras: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
    run_name: str | None = None,
    cpus: int = 1,
    python: str | None = None,
    worker_type: str | None = None,
    folder: Path | None = None,
) -> dict[str, Any]:
    """A run config that trains `algo` on `env_id`, checked by the worker that will run it.

    `folder` is the user's own (default: the current one): modules there can be imported by the run.
    """
    worker = worker_for(algo, worker_type)
    catalog = worker.load_catalog()
    folder = (folder or Path.cwd()).resolve()
    config: dict[str, Any] = {
        "run_id": "${RUN_ID}",
        "algo": algo,
        "env_id": env_id,
        "total_timesteps": total_timesteps or catalog.default_timesteps(algo),
        "seed": seed,
        "extras": {**(extras or {}), **({"algo_params": dict(params)} if params else {})},
    }
    checked = catalog.check(config, python, folder)
    return {
        "run_name": run_name or f"{Path(algo).stem}-{env_id}".replace("/", "-").replace(":", "-").lower(),
        "resources": {"cpus": cpus},
        "tags": list(tags),
        "metadata": {
            "worker": {"type": worker.worker_type, "python": python, "config": checked},
            "ui": {
                "python_path": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
            },
        },
    }
