"""Sweeps: a search for good parameters, as a run of its own whose trials are ordinary runs.

The daemon starts and watches it like any run. Whoever wants to read what a sweep has found asks
`mosaic.sweeps.study`, which needs neither Optuna nor the sweep's database; all that needs Optuna imports
`mosaic.sweeps.storage`.
"""

from __future__ import annotations

from mosaic.contract.capabilities import WorkerCapabilities

__all__ = ["WORKER_TYPE", "get_worker_metadata"]

WORKER_TYPE = "sweep"


def get_worker_metadata() -> WorkerCapabilities:
    """The descriptor behind the `mosaic.workers` entry point."""
    return WorkerCapabilities(
        worker_type=WORKER_TYPE,
        display_name="Sweep",
        cli_module="mosaic.sweeps.worker",
        catalog="mosaic.sweeps.catalog:CATALOG",
        forms={"sweep": "gym_gui.ui.widgets.sweep_form:SweepForm"},
        waits_for_others=True,
    )
