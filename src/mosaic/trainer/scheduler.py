"""Which waiting runs start now: in order, as the CPUs allow."""

from __future__ import annotations

from collections.abc import Sequence

from mosaic.contract.fsm import STARTED, RunStatus
from mosaic.trainer.registry import RunRow


def next_starts(live: Sequence[RunRow], cpus: int) -> tuple[list[RunRow], dict[str, str]]:
    """The runs to start, and for each of the others what it waits for. `live` is in queue order."""
    holders = [run for run in live if run.status in STARTED]
    waiting = [run for run in live if run.status == RunStatus.INIT]
    free = cpus - sum(run.cpus for run in holders)
    starts: list[RunRow] = []
    for index, run in enumerate(waiting):
        if run.cpus > free:
            return starts, _explain(waiting[index:], free, [*holders, *starts])
        free -= run.cpus
        starts.append(run)
    return starts, {}


def _explain(waiting: Sequence[RunRow], free: int, holders: Sequence[RunRow]) -> dict[str, str]:
    first = waiting[0]
    named = ", ".join(run.run_id for run in holders[:3]) + (" and others" if len(holders) > 3 else "")
    lacking = f"waits for {first.cpus - free} more CPU{'s' * (first.cpus - free > 1)}, held by run {named}"
    reasons = {first.run_id: lacking}
    for place, run in enumerate(waiting[1:], start=1):
        runs = "1 run" if place == 1 else f"{place} runs"
        reasons[run.run_id] = f"waits behind {runs} in the queue"
    return reasons
