"""Sweeps: a search for good parameters, as a run of its own whose trials are ordinary runs.

The daemon starts and watches it like any run. Whoever wants to read what a sweep has found asks
`mosaic.sweeps.study`, which needs neither Optuna nor the sweep's database; all that needs Optuna imports
`mosaic.sweeps.storage`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mosaic.contract.capabilities import ParamSchema, WorkerCapabilities

__all__ = ["CATALOG", "WORKER_TYPE", "get_worker_metadata"]

WORKER_TYPE = "sweep"


def get_worker_metadata() -> WorkerCapabilities:
    """The descriptor behind the `mosaic.workers` entry point."""
    return WorkerCapabilities(
        worker_type=WORKER_TYPE,
        display_name="Sweep",
        cli_module="mosaic.sweeps.worker",
        catalog="mosaic.sweeps:CATALOG",
        forms={"sweep": "gym_gui.ui.widgets.sweep_form:SweepForm"},
        waits_for_others=True,
    )


class SweepCatalog:
    """The `WorkerCatalog` of sweeps: a sweep that `sweep_config` has made. It trains nothing by itself."""

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
        # Lists of what can be trained ask every worker, and need none of this.
        from mosaic.sweeps.configs import check_config

        return check_config(config)


CATALOG = SweepCatalog()
