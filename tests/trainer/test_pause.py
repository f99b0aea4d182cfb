"""Pause stops every process of a run, and nothing else."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from mosaic.client import Client, RunRecord
from mosaic.contract.errors import ConflictError
from mosaic.contract.process import process_state, tree_below
from support.runs import end, long_config, script_config, wait_for_status


def _states(run: RunRecord) -> set[str | None]:
    assert run.training_pid is not None
    return {
        process_state(pid) for pid in [run.training_pid, *(one.pid for one in tree_below(run.training_pid))]
    }


def _steps(client: Client, run: RunRecord) -> int:
    return b"".join(client.logs(run.run_id)).count(b"step=")


def test_a_paused_run_stands_still_and_goes_on_where_it_was(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    paused = client.pause(run.run_id)
    assert (paused.status, paused.reason) == ("PAUSE", "paused by the user")
    assert _states(run) == {"T"}
    before = _steps(client, run)
    time.sleep(0.3)
    assert _steps(client, run) == before
    resumed = client.resume(run.run_id)
    assert resumed.status == "EXEC"
    assert "T" not in _states(run)
    end(client, run)
    statuses = [entry.status for entry in client.get(run.run_id).history]
    assert statuses == ["INIT", "HSHK", "RDY", "EXEC", "PAUSE", "EXEC", "TERM"]


def test_children_of_the_script_are_paused_too(client: Client) -> None:
    run = wait_for_status(client, client.submit(script_config("has_children.py")).run_id, "EXEC")
    told = b""
    for chunk in client.logs(run.run_id, follow=True):
        told += chunk
        if told.count(b"child=") == 3:
            break
    children = [int(pid) for pid in re.findall(rb"child=(\d+)", told)]
    client.pause(run.run_id)
    assert {process_state(pid) for pid in children} == {"T"}
    client.resume(run.run_id)
    assert "T" not in {process_state(pid) for pid in children}
    end(client, run)


def test_a_paused_run_is_still_paused_after_a_kill_of_the_daemon(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    client.pause(run.run_id)
    os.kill(client.health().pid, 9)
    again = client.get(run.run_id)
    assert (again.status, again.supervisor_pid) == ("PAUSE", run.supervisor_pid)
    assert _states(run) == {"T"}
    assert client.resume(run.run_id).status == "EXEC"
    end(client, run)


def _send(run: RunRecord, number: signal.Signals) -> None:
    assert run.training_pid is not None
    for pid in [run.training_pid, *(one.pid for one in tree_below(run.training_pid))]:
        os.kill(pid, number)


def test_a_paused_run_that_others_continue_completes(client: Client) -> None:
    config = script_config("steps.py", steps=10, params={"pause": 0.05})
    run = wait_for_status(client, client.submit(config).run_id, "EXEC")
    client.pause(run.run_id)
    _send(run, signal.SIGCONT)
    run = client.wait(run.run_id, timeout=60)
    assert (run.outcome, run.exit_code) == ("completed", 0), run.reason
    assert [entry.status for entry in run.history][-4:] == ["EXEC", "PAUSE", "EXEC", "TERM"]


def test_a_run_that_others_stop_is_paused_and_can_be_resumed_here(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    _send(run, signal.SIGSTOP)
    assert wait_for_status(client, run.run_id, "PAUSE").reason == "stopped from outside"
    assert client.resume(run.run_id).status == "EXEC"
    assert "T" not in _states(run)
    assert client.pause(run.run_id).status == "PAUSE"
    _send(run, signal.SIGCONT)
    wait_for_status(client, run.run_id, "EXEC")
    # The second time, though nobody has taken the wish for the first one back.
    assert client.pause(run.run_id).status == "PAUSE"
    assert _states(run) == {"T"}
    end(client, run)


def test_a_run_stopped_with_its_supervisor_is_paused_and_can_be_cancelled(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    assert run.supervisor_pid is not None
    os.kill(run.supervisor_pid, signal.SIGSTOP)
    _send(run, signal.SIGSTOP)
    assert wait_for_status(client, run.run_id, "PAUSE").reason == "stopped from outside"
    end(client, run)
    run = client.get(run.run_id)
    assert (run.outcome, (Path(run.run_dir) / "analytics.json").is_file()) == ("cancelled", True)


def test_a_paused_run_can_be_cancelled(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    client.pause(run.run_id)
    end(client, run)
    assert client.get(run.run_id).outcome == "cancelled"


def test_only_a_run_that_trains_can_be_paused(client: Client) -> None:
    run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    with pytest.raises(ConflictError, match="is TERM: only a run that trains can be paused"):
        client.pause(run.run_id)


def test_paused_time_does_not_count_against_the_limit(client: Client) -> None:
    config = long_config()
    config["schedule"] = {"max_wallclock_minutes": 1 / 60}
    run = wait_for_status(client, client.submit(config).run_id, "EXEC")
    client.pause(run.run_id)
    time.sleep(1.5)
    assert client.get(run.run_id).status == "PAUSE"
    client.resume(run.run_id)
    run = client.wait(run.run_id, timeout=60)
    assert run.outcome == "timed_out"
    assert "reached its time limit of 0.0166667 minutes" in str(run.reason)
    assert (Path(run.run_dir) / "analytics.json").is_file()
