"""How busy this machine is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import psutil


@dataclass(frozen=True)
class Usage:
    """Shares of 1, and bytes. `gpus` has a share for each."""

    cpu: float
    memory_used: int
    memory_total: int
    gpus: tuple[float, ...]


def read_usage() -> Usage:
    """The load since this was last asked; in a task, as a GPU's driver may take its time."""
    memory = psutil.virtual_memory()
    return Usage(
        cpu=psutil.cpu_percent() / 100,
        memory_used=memory.total - memory.available,
        memory_total=memory.total,
        gpus=tuple(_gpu_loads()),
    )


def _gpu_loads() -> list[float]:
    nvml = _nvml()
    if nvml is None:
        return []
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(at) for at in range(nvml.nvmlDeviceGetCount())]
        return [nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100 for handle in handles]
    except nvml.NVMLError:
        return []


@cache
def _nvml() -> Any:
    """The library of the driver; None where there is none."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:
        return None
    return pynvml
