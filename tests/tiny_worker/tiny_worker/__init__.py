"""The smallest complete worker: it counts steps. Laid out as an installed distribution, for tests."""

from mosaic.contract.capabilities import WorkerCapabilities

__all__ = ["get_worker_metadata"]


def get_worker_metadata() -> WorkerCapabilities:
    """The descriptor behind the `mosaic.workers` entry point."""
    return WorkerCapabilities(
        worker_type="tiny",
        display_name="Tiny Worker",
        cli_module="tiny_worker.cli",
        requires_live_telemetry=True,
        catalog="tiny_worker.catalog:CATALOG",
    )
