"""The queue: in order, as CPUs allow."""

from __future__ import annotations

import os

import pytest

from mosaic.client import Client
from mosaic.contract.errors import UserError
from support.runs import end, long_config, script_config, wait_for_status

CPUS = len(os.sched_getaffinity(0))


def test_runs_start_in_order_as_cpus_allow_and_say_what_they_wait_for(client: Client) -> None:
    first = client.submit(long_config(cpus=CPUS))
    second = client.submit(script_config("steps.py", cpus=CPUS))
    third = client.submit(script_config("steps.py", cpus=1))
    wait_for_status(client, first.run_id, "EXEC")
    second, third = client.get(second.run_id), client.get(third.run_id)
    assert (second.status, third.status) == ("INIT", "INIT")
    assert first.run_id in str(second.reason)
    assert third.reason == "waits behind 1 run in the queue"
    end(client, first)
    second, third = client.wait(second.run_id, timeout=60), client.wait(third.run_id, timeout=60)
    assert (second.outcome, third.outcome) == ("completed", "completed")
    started = {run.run_id: run.history[1].seq for run in (second, third)}
    assert started[second.run_id] < started[third.run_id]


def test_a_waiting_run_is_cancelled_at_once_and_never_starts(client: Client) -> None:
    first = client.submit(long_config(cpus=CPUS))
    second = client.submit(script_config("steps.py"))
    cancelled = client.cancel(second.run_id)
    assert (cancelled.status, cancelled.outcome) == ("TERM", "cancelled")
    assert [entry.status for entry in client.get(second.run_id).history] == ["INIT", "TERM"]
    end(client, first)


def test_more_cpus_than_the_machine_has_are_refused(client: Client) -> None:
    with pytest.raises(UserError, match=f"'resources.cpus' is {CPUS + 1}, but this machine has {CPUS}"):
        client.submit(script_config("steps.py", cpus=CPUS + 1))
    assert client.runs() == []
