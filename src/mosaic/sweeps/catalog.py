"""What the sweep worker takes: a sweep that `sweep_config` has made. It trains nothing by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mosaic.contract.capabilities import ParamSchema
from mosaic.contract.errors import UserError
from mosaic.sweeps import WORKER_TYPE
from mosaic.sweeps.spec import SweepSpec

_KEYS = ("run_id", "sweep", "continues")
RESTARTS = 1000
"""A sweep is started again after every crash of it: to go on costs nothing."""
FIRST = 1000
"""The priority of sweeps: they take no CPU, and wait for nobody."""


def check_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A worker's config, as it is; UserError when it is not one of a sweep."""
    for name in config:
        if name not in _KEYS:
            raise UserError(
                f"A sweep's config has no '{name}': write a sweep file, and run `mosaic sweep FILE`."
            )
    try:
        SweepSpec.from_json(config["sweep"])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise UserError(
            f"This is not the config of a sweep ({type(error).__name__}: {error}): write a sweep file, and run "
            "`mosaic sweep FILE`."
        ) from error
    return dict(config)


def sweep_config(spec: SweepSpec, continues: str = "") -> dict[str, Any]:
    """The config of the run that is the sweep, to be submitted; `continues` is an earlier sweep."""
    worker: dict[str, Any] = {"run_id": "${RUN_ID}", "sweep": spec.as_json()}
    if continues:
        worker["continues"] = continues
    ui = dict(spec.templates[0].config["metadata"]["ui"])
    if spec.notes:
        ui["notes"] = spec.notes
    return {
        "run_name": spec.title,
        "resources": {"cpus": 0},
        "schedule": {"max_restarts": RESTARTS, "priority": FIRST},
        "tags": list(spec.tags),
        "metadata": {"worker": {"type": WORKER_TYPE, "config": worker}, "ui": ui},
    }


class SweepCatalog:
    """The `WorkerCatalog` of sweeps."""

    def algorithms(self) -> list[str]:
        return []

    def knows(self, algo: str) -> bool:
        return False

    def parameters(self, algo: str) -> Sequence[ParamSchema]:
        return ()

    def default_timesteps(self, algo: str) -> int | None:
        return None

    def environments(self) -> Sequence[str]:
        return ()

    def check(self, config: Mapping[str, Any], python: str | None, folder: Path | None) -> dict[str, Any]:
        return check_config(config)


CATALOG = SweepCatalog()
