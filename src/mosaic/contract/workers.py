"""Finding the installed workers."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from mosaic.contract.capabilities import WorkerCapabilities
from mosaic.contract.errors import NotFoundError, closest

ENTRY_POINT_GROUP = "mosaic.workers"

_log = logging.getLogger(__name__)


@cache
def discover_workers() -> Mapping[str, WorkerCapabilities]:
    """Every installed worker by its type. A broken one is logged and left out."""
    found: dict[str, WorkerCapabilities] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            capabilities = point.load()()
        except Exception:
            _log.exception("worker %s cannot be loaded", point.name)
            continue
        if isinstance(capabilities, WorkerCapabilities):
            found[capabilities.worker_type] = capabilities
        else:
            _log.error("worker %s gives %r instead of WorkerCapabilities", point.name, type(capabilities))
    return found


def find_worker(worker_type: str) -> WorkerCapabilities:
    """The worker of this type, or an error that names the nearest one."""
    workers = discover_workers()
    if worker_type not in workers:
        raise NotFoundError(
            f"No worker of type '{worker_type}' is installed{closest(worker_type, workers) or '.'} "
            f"Installed: {', '.join(sorted(workers)) or 'none'}."
        )
    return workers[worker_type]


def parameter_defaults(worker_type: str, algo: str) -> dict[str, Any]:
    """The defaults of an algorithm's parameters; none where nobody knows them. Catalogs load slowly."""
    try:
        worker = find_worker(worker_type)
    except NotFoundError:
        return {}
    parameters = worker.load_catalog().parameters(algo) if worker.catalog else ()
    return {one.name: one.default for one in parameters if not one.runtime_only}
