"""Which waiting runs start now: in order, small ones filling gaps only where they delay nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mosaic.contract.errors import UserError
from mosaic.contract.fsm import STARTED, RunStatus
from mosaic.contract.run_config import Resources
from mosaic.trainer.machine import Machine
from mosaic.trainer.rows import RunRow


@dataclass(frozen=True)
class Start:
    """A run that may start, with the GPUs it gets."""

    run: RunRow
    gpu_ids: tuple[int, ...]


@dataclass(frozen=True)
class Need:
    """What a run must have before it starts."""

    cpus: int
    memory_mb: int
    gpus: int

    @classmethod
    def of(cls, run: RunRow) -> Need:
        # GPUs that are not mandatory are taken when they are free, and never waited for.
        return cls(run.cpus, run.memory_mb, run.gpus if run.gpus_mandatory else 0)

    def amounts(self) -> tuple[int, int, int]:
        return self.cpus, self.memory_mb, self.gpus


def check_possible(resources: Resources, machine: Machine) -> None:
    """Refuse what this machine could never give."""
    if resources.cpus > machine.cpus:
        raise UserError(f"'resources.cpus' is {resources.cpus}, but this machine has {machine.cpus}.")
    if (resources.memory_mb or 0) > machine.memory_mb:
        raise UserError(
            f"'resources.memory_mb' is {resources.memory_mb}, but this machine has {machine.memory_mb}."
        )
    gpus = resources.gpus
    if gpus.mandatory and gpus.requested > len(machine.gpus):
        raise UserError(
            f"'resources.gpus.requested' is {gpus.requested}, but this machine has {len(machine.gpus)}; "
            "with 'mandatory' false the run falls back to the CPU."
        )


def next_starts(live: Sequence[RunRow], machine: Machine) -> tuple[list[Start], dict[str, str]]:
    """The runs to start, and for each of the others what it waits for. `live` is in queue order."""
    holders = [run for run in live if run.status in STARTED]
    taken = {gpu for run in holders for gpu in run.gpu_ids}
    free_gpus = [gpu for gpu in machine.gpus if gpu not in taken]
    free = [
        machine.cpus - sum(run.cpus for run in holders),
        machine.memory_mb - sum(run.memory_mb for run in holders),
        len(free_gpus),
    ]
    starts: list[Start] = []
    blocked: list[RunRow] = []
    waits: dict[str, str] = {}
    for run in (run for run in live if run.status == RunStatus.INIT):
        need = Need.of(run).amounts()
        fits = all(wanted <= left for wanted, left in zip(need, free, strict=True))
        if not fits or any(_would_delay(need, Need.of(other).amounts(), free) for other in blocked):
            first = not blocked
            waits[run.run_id] = _lack(need, free, machine, holders, starts) if first else _behind(blocked)
            blocked.append(run)
            continue
        gpu_ids = tuple(free_gpus[: run.gpus])
        free_gpus = free_gpus[len(gpu_ids) :]
        free = [free[0] - need[0], free[1] - need[1], len(free_gpus)]
        starts.append(Start(run, gpu_ids))
    return starts, waits


def _would_delay(need: Sequence[int], earlier: Sequence[int], free: Sequence[int]) -> bool:
    """Whether a run takes anything that an earlier one lacks, or would lack then."""
    return any(
        wanted > 0 and (first > left or first > left - wanted)
        for wanted, first, left in zip(need, earlier, free, strict=True)
    )


def _behind(blocked: Sequence[RunRow]) -> str:
    return f"waits behind {'1 run' if len(blocked) == 1 else f'{len(blocked)} runs'} in the queue"


def _lack(
    need: Sequence[int],
    free: Sequence[int],
    machine: Machine,
    holders: Sequence[RunRow],
    starts: Sequence[Start],
) -> str:
    """What the first waiting run lacks, and who holds it."""
    holding = [*(Start(run, tuple(run.gpu_ids)) for run in holders), *starts]
    cpus, memory, gpus = (wanted - left for wanted, left in zip(need, free, strict=True))
    if gpus > 0:
        held = [start for start in holding if start.gpu_ids]
        numbers = sorted(gpu for start in held for gpu in start.gpu_ids)
        return f"waits for GPU {_or(numbers)}, held by {_names(held)}"
    if cpus > 0:
        return f"waits for {cpus} more CPU{'s' * (cpus > 1)}, held by {_names(holding)}"
    held = [start for start in holding if start.run.memory_mb]
    return f"waits for {memory:,} MB more memory, held by {_names(held)}"


def _or(numbers: Sequence[int]) -> str:
    return " or ".join(map(str, numbers))


def _names(holding: Sequence[Start]) -> str:
    named = ", ".join(start.run.run_id for start in holding[:3])
    return f"run{'s' * (len(holding) > 1)} {named}" + (" and others" if len(holding) > 3 else "")
