"""What this machine has to give to runs."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

import psutil

from mosaic.contract.errors import UserError
from mosaic.contract.process import memory_limit
from mosaic.contract.run_config import Resources
from mosaic.contract.variables import list_variable, whole_variable

CPUS_VARIABLE = "MOSAIC_CPUS"
GPUS_VARIABLE = "MOSAIC_GPUS"


@dataclass(frozen=True)
class Machine:
    """CPUs, memory and GPUs that may be reserved."""

    cpus: int
    memory_mb: int
    gpus: tuple[int, ...]

    @classmethod
    def detect(cls) -> Machine:
        """All that the process may use; $MOSAIC_CPUS and $MOSAIC_GPUS (`0,2`) hand out other amounts."""
        gpus = list_variable(GPUS_VARIABLE)
        return cls(
            cpus=whole_variable(CPUS_VARIABLE, len(os.sched_getaffinity(0)), least=1),
            memory_mb=min(psutil.virtual_memory().total, memory_limit()) // 2**20,
            gpus=_find_gpus() if gpus is None else gpus,
        )


def check_possible(resources: Resources, machine: Machine) -> None:
    """Refuse what this machine could never give."""
    for name in ("cpus", "memory_mb"):
        wanted, there = getattr(resources, name) or 0, getattr(machine, name)
        if wanted > there:
            raise UserError(f"'resources.{name}' is {wanted}, but this machine has {there}.")
    gpus = resources.gpus
    if gpus.mandatory and gpus.requested > len(machine.gpus):
        raise UserError(
            f"'resources.gpus.requested' is {gpus.requested}, but this machine has {len(machine.gpus)}; "
            "with 'mandatory' false the run falls back to the CPU."
        )


def _find_gpus() -> tuple[int, ...]:
    """The GPUs that NVML finds; none where there is no NVIDIA driver."""
    import pynvml

    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        try:
            return tuple(range(pynvml.nvmlDeviceGetCount()))
        finally:
            pynvml.nvmlShutdown()
    return ()
