"""Lifecycle events of a run, as every worker writes them."""

from mosaic.worker.telemetry import LifecycleEmitter

__all__ = ["LifecycleEmitter"]
