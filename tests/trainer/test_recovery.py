"""The daemon dies; runs do not."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from mosaic.client import Client
from mosaic.client.daemon import find_daemon, stop_daemon
from mosaic.contract.events import LifecycleReader
from mosaic.contract.paths import VarPaths
from mosaic.contract.process import ProcessIdentity
from support.runs import end, long_config, script_config, wait_for_status


def test_a_run_goes_on_when_the_daemon_is_killed(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    os.kill(client.health().pid, 9)
    again = client.get(run.run_id)
    assert (again.status, again.supervisor_pid) == ("EXEC", run.supervisor_pid)
    assert [entry.seq for entry in again.history] == [entry.seq for entry in run.history]
    end(client, again)
    statuses = [entry.status for entry in client.get(run.run_id).history]
    assert statuses == ["INIT", "HSHK", "RDY", "EXEC", "TERM"]


def test_a_run_that_ends_while_no_daemon_lives_is_judged_by_its_events(client: Client) -> None:
    config = script_config("steps.py", steps=20, params={"pause": 0.05})
    run = wait_for_status(client, client.submit(config).run_id, "EXEC")
    assert run.supervisor_pid is not None
    supervisor = ProcessIdentity.of(run.supervisor_pid)
    os.kill(client.health().pid, 9)
    while supervisor is not None and supervisor.alive():
        os.sched_yield()
    run = client.wait(run.run_id, timeout=60)
    assert (run.outcome, run.exit_code) == ("completed", 0)
    assert [entry.status for entry in run.history] == ["INIT", "HSHK", "RDY", "EXEC", "TERM"]


def test_queued_runs_start_after_a_restart(client: Client) -> None:
    cpus = len(os.sched_getaffinity(0))
    first = client.submit(long_config(cpus=cpus))
    second = client.submit(script_config("steps.py"))
    wait_for_status(client, first.run_id, "EXEC")
    stop_daemon(client.paths)
    assert find_daemon(client.paths) is None
    end(client, first)
    assert client.wait(second.run_id, timeout=60).outcome == "completed"


def test_a_killed_supervisor_takes_its_training_process_with_it(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    assert run.supervisor_pid is not None
    assert run.training_pid is not None
    training = ProcessIdentity.of(run.training_pid)
    assert training is not None
    os.kill(run.supervisor_pid, 9)
    run = client.wait(run.run_id, timeout=60)
    assert run.outcome == "failed"
    assert "killed by SIGKILL" in str(run.reason)
    assert not training.alive()


@pytest.mark.parametrize("daemon_lives", [True, False])
def test_a_killed_supervisor_leaves_no_child_however_that_hides(client: Client, daemon_lives: bool) -> None:
    run = wait_for_status(client, client.submit(script_config("hides.py")).run_id, "EXEC")
    assert run.supervisor_pid is not None
    hidden: list[psutil.Process] = []
    while len(hidden) < 2:
        with contextlib.suppress(psutil.Error):
            below = psutil.Process(run.supervisor_pid).children(recursive=True)
            hidden = [one for one in below if one.name() == "sleep" and not one.environ()]
    if not daemon_lives:
        os.kill(client.health().pid, 9)
    os.kill(run.supervisor_pid, 9)
    assert client.wait(run.run_id, timeout=60).outcome == "failed"
    left = [one for one in hidden if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    for one in left:
        one.kill()
    assert not left


def test_a_daemon_started_by_a_run_is_not_swept_with_it(client: Client, tmp_path: Path) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    lock = client.paths.run(run.run_id).lock
    (tmp_path / "other").mkdir()
    # What a client inside of the run would do.
    code = "import sys; from pathlib import Path; from mosaic.contract.process import *; "
    code += "wear_mark(family_mark(Path(sys.argv[1]))); from mosaic.client import Client; "
    code += "print(Client.connect(Path(sys.argv[2])).health().pid)"
    asked = [sys.executable, "-c", code, str(lock), str(tmp_path / "other")]
    other = ProcessIdentity.of(int(subprocess.check_output(asked)))
    assert other is not None
    assert run.supervisor_pid is not None
    os.kill(run.supervisor_pid, 9)
    assert client.wait(run.run_id, timeout=60).outcome == "failed"
    assert other.alive()
    stop_daemon(VarPaths(tmp_path / "other"))


def test_heartbeats_go_to_the_restarted_daemon(client: Client) -> None:
    run = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    events = LifecycleReader(Path(run.run_dir) / "logs" / "events.jsonl")
    os.kill(client.health().pid, 9)
    before = client.health().pid
    end(client, run)
    assert client.health().pid == before
    assert [event.event for event in events.poll()][-1] == "run_cancelled"


def test_a_long_history_is_replayed_to_its_end(client: Client) -> None:
    run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    stop_daemon(client.paths)
    last = 2_500
    with closing(sqlite3.connect(client.paths.database)) as database, database:
        rows = [(run.run_id, "EXEC", 0.0)] * (last - len(run.history))
        database.executemany("INSERT INTO transitions (run_id, status, at) VALUES (?, ?, ?)", rows)
    seen = []
    for entry in client.watch(timeout=60):
        seen.append(entry.seq)  # type: ignore[union-attr]
        if seen[-1] == last:
            break
    assert seen == list(range(1, last + 1))


@pytest.mark.parametrize("what", ["config", "worker", "secret", "half of a config", "half of a secret"])
def test_files_of_an_interrupted_submit_are_swept(client: Client, what: str) -> None:
    paths = client.paths
    left = {
        "config": paths.run_config("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        "worker": paths.worker_config("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        "secret": paths.run_secrets("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        "half of a config": paths.configs / ".config-01ARZ3NDEKTSV4RRFFQ69G5FAV.json.x1y2z3",
        "half of a secret": paths.secrets / ".01ARZ3NDEKTSV4RRFFQ69G5FAV.json.x1y2z3",
    }[what]
    run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    left.write_text("{}")
    stop_daemon(paths)
    assert client.get(run.run_id).outcome == "completed"
    assert not left.exists()
    assert paths.run_config(run.run_id).exists()
