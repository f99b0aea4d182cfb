"""Which runs start: in order, and small ones only where they delay nobody."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mosaic.contract.fsm import RunStatus
from mosaic.contract.machine import Machine
from mosaic.trainer.rows import RunRow
from mosaic.trainer.scheduler import need_of, next_starts

MACHINE = Machine(cpus=8, memory_mb=1000, gpus=(0, 1))


def row(number: int, status: RunStatus = RunStatus.INIT, **fields: Any) -> RunRow:
    defaults: dict[str, Any] = dict.fromkeys(RunRow.__dataclass_fields__)
    defaults |= {"position": number, "run_id": f"R{number}", "status": status, "priority": 0, "place": number}
    defaults |= {"cpus": 1, "memory_mb": 0, "gpus": 0, "gpus_mandatory": True, "gpu_ids": []}
    return RunRow(**(defaults | fields))


def started(live: list[RunRow]) -> list[str]:
    return [start.run.run_id for start in next_starts(live, MACHINE)[0]]


def test_runs_start_in_order_until_something_is_used_up() -> None:
    assert started([row(1, cpus=4), row(2, cpus=4), row(3)]) == ["R1", "R2"]


def test_a_small_run_does_not_pass_one_that_waits_for_the_same() -> None:
    live = [row(1, RunStatus.EXEC, cpus=6), row(2, cpus=4), row(3, cpus=1)]
    starts, waits = next_starts(live, MACHINE)
    assert starts == []
    assert waits == {
        "R2": "waits for 2 more CPUs, held by run R1",
        "R3": "waits behind 1 run in the queue",
    }


def test_a_small_run_fills_a_gap_that_the_waiting_one_does_not_need() -> None:
    live = [row(1, RunStatus.EXEC, gpus=2, gpu_ids=[0, 1]), row(2, cpus=4, gpus=1), row(3, cpus=3), row(4)]
    starts, waits = next_starts(live, MACHINE)
    assert [start.run.run_id for start in starts] == ["R3"]
    assert waits["R2"] == "waits for GPU 0 or 1, held by run R1"


def test_gpus_are_given_out_once() -> None:
    starts, _ = next_starts([row(1, gpus=1), row(2, gpus=1), row(3, gpus=1, gpus_mandatory=False)], MACHINE)
    assert [start.gpu_ids for start in starts] == [(0,), (1,), ()]


NEEDS = st.tuples(st.integers(1, 8), st.sampled_from([0, 100, 400, 900]), st.integers(0, 2))


@given(held=st.lists(NEEDS, max_size=4), waiting=st.lists(NEEDS, max_size=6))
def test_nothing_is_promised_twice_and_nobody_is_delayed(
    held: list[tuple[int, int, int]], waiting: list[tuple[int, int, int]]
) -> None:
    holders: list[RunRow] = []
    gpus = list(MACHINE.gpus)
    for number, (cpus, memory, wanted) in enumerate(held):
        fits = sum(run.cpus for run in holders) + cpus <= MACHINE.cpus
        fits = fits and sum(run.memory_mb for run in holders) + memory <= MACHINE.memory_mb
        if fits and wanted <= len(gpus):
            ids, gpus = gpus[:wanted], gpus[wanted:]
            holders.append(row(number, RunStatus.EXEC, cpus=cpus, memory_mb=memory, gpus=wanted, gpu_ids=ids))
    queue = [
        row(100 + number, cpus=cpus, memory_mb=memory, gpus=wanted)
        for number, (cpus, memory, wanted) in enumerate(waiting)
    ]
    starts, waits = next_starts([*holders, *queue], MACHINE)
    begun = [start.run for start in starts]
    looked_at = [run for run in queue if run in begun or run.run_id in waits]
    assert looked_at == queue[: len(looked_at)]
    assert not waits.keys() & {run.run_id for run in begun}
    if looked_at != queue:
        # The rest of a long queue is passed over only when there is nothing left to give.
        assert waits
        assert sum(run.cpus for run in [*holders, *begun]) == MACHINE.cpus
    assert sum(run.cpus for run in [*holders, *begun]) <= MACHINE.cpus
    assert sum(run.memory_mb for run in [*holders, *begun]) <= MACHINE.memory_mb
    given_out = [gpu for run in holders for gpu in run.gpu_ids] + [
        gpu for start in starts for gpu in start.gpu_ids
    ]
    assert len(given_out) == len(set(given_out))
    # Whoever waits lacks something now, and no later run that started holds any of what it lacks.
    free = (
        MACHINE.cpus - sum(run.cpus for run in holders),
        MACHINE.memory_mb - sum(run.memory_mb for run in holders),
        len(MACHINE.gpus) - sum(len(run.gpu_ids) for run in holders),
    )
    for index, run in enumerate(queue):
        if run.run_id not in waits:
            continue
        earlier = [need_of(other) for other in queue[:index] if other in begun]
        later = [need_of(other) for other in queue[index + 1 :] if other in begun]
        for kind, need in enumerate(need_of(run)):
            left = free[kind] - sum(amounts[kind] for amounts in earlier)
            taken = sum(amounts[kind] for amounts in later)
            assert taken == 0 or need <= left - taken
