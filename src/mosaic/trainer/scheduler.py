"""Which waiting runs start now: in order; small ones fill gaps only where they delay nobody."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mosaic.contract.fsm import STARTED
from mosaic.contract.machine import Machine
from mosaic.trainer.rows import QueuedRun


@dataclass(frozen=True)
class Start:
    """A run that may start, with the GPUs it gets."""

    run: QueuedRun
    gpu_ids: tuple[int, ...]


def need_of(run: QueuedRun) -> tuple[int, int, int]:
    """CPUs, memory and GPUs that a run must have before it starts."""
    # GPUs that are not mandatory are taken when they are free, and never waited for.
    return run.cpus, run.memory_mb, run.gpus if run.gpus_mandatory else 0


def next_starts(live: Iterable[QueuedRun], machine: Machine) -> tuple[list[Start], dict[str, str]]:
    """The runs to start, and what the others wait for. `live` has the holders first, then the queue.

    When no CPU is left, the rest of the queue is not looked at: it waits behind those that were.
    """
    free_gpus = list(machine.gpus)
    free = [machine.cpus, machine.memory_mb, len(free_gpus)]
    holding: list[Start] = []
    starts: list[Start] = []
    waits: dict[str, str] = {}
    # The most of each that a waiting run needs: nobody who comes later may bring it out of reach.
    most_waited_for: Sequence[int] = (0, 0, 0)
    for run in live:
        need = need_of(run)
        if run.status in STARTED:
            gpu_ids = tuple(run.gpu_ids)
        elif not _fits(need, free) or _would_delay(need, most_waited_for, free):
            waits[run.run_id] = behind(len(waits)) if waits else _lack(need, free, holding)
            most_waited_for = tuple(map(max, need, most_waited_for))
            if free[0] <= 0:
                break
            continue
        else:
            gpu_ids = tuple(free_gpus[: run.gpus])
            starts.append(Start(run, gpu_ids))
        holding.append(Start(run, gpu_ids))
        free_gpus = [gpu for gpu in free_gpus if gpu not in gpu_ids]
        free = [free[0] - need[0], free[1] - need[1], len(free_gpus)]
    return starts, waits


def _fits(need: Sequence[int], free: Sequence[int]) -> bool:
    return all(wanted <= left for wanted, left in zip(need, free, strict=True))


def _would_delay(need: Sequence[int], waited_for: Sequence[int], free: Sequence[int]) -> bool:
    """Whether a run takes anything that an earlier one lacks, or would lack then."""
    return any(
        wanted > 0 and earlier > left - wanted
        for wanted, earlier, left in zip(need, waited_for, free, strict=True)
    )


def behind(waiting: int) -> str:
    """What a run says that others wait before."""
    return f"waits behind {'1 run' if waiting == 1 else f'{waiting} runs'} in the queue"


def _lack(need: Sequence[int], free: Sequence[int], holding: Sequence[Start]) -> str:
    """What the first waiting run lacks, and who holds it."""
    cpus, memory, gpus = (wanted - left for wanted, left in zip(need, free, strict=True))
    if gpus > 0:
        held = [start for start in holding if start.gpu_ids]
        numbers = sorted(gpu for start in held for gpu in start.gpu_ids)
        return f"waits for GPU {' or '.join(map(str, numbers))}, held by {_names(held)}"
    if cpus > 0:
        return f"waits for {cpus} more CPU{'s' * (cpus > 1)}, held by {_names(holding)}"
    held = [start for start in holding if start.run.memory_mb]
    return f"waits for {memory:,} MB more memory, held by {_names(held)}"


def _names(holding: Sequence[Start]) -> str:
    named = ", ".join(start.run.run_id for start in holding[:3])
    return f"run{'s' * (len(holding) > 1)} {named}" + (" and others" if len(holding) > 3 else "")
