"""Pause, resume and the queue, as a user sees them, against a real daemon."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mosaic.client import Client
from mosaic.contract.process import process_state
from support.runs import end, long_config, wait_for_status

if TYPE_CHECKING:
    from conftest import RunMosaic


@pytest.fixture
def small(var: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A daemon that has two CPUs and one GPU to give."""
    monkeypatch.setenv("MOSAIC_CPUS", "2")
    monkeypatch.setenv("MOSAIC_GPUS", "0")
    with Client.connect(var) as client:
        yield client


def parsed(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_a_run_is_paused_and_resumed(small: Client, run_mosaic: RunMosaic) -> None:
    run = wait_for_status(small, small.submit(long_config()).run_id, "EXEC")
    assert run.training_pid is not None
    waiting = small.submit(long_config(cpus=2))

    assert f"{run.run_id} is paused" in run_mosaic("pause", run.run_id[:14]).stdout
    assert process_state(run.training_pid) == "T"
    (again,) = parsed(run_mosaic("pause", run.run_id, "--json"))
    assert (again["run_id"], again["status"]) == (run.run_id, "PAUSE")
    assert "paused by the user" in run_mosaic("show", run.run_id).stdout

    assert f"{run.run_id} continues where it was" in run_mosaic("resume", run.run_id).stdout
    assert process_state(run.training_pid) != "T"
    assert "was not paused" in run_mosaic("resume", run.run_id).stdout

    refused = run_mosaic("pause", run.run_id, waiting.run_id, check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert f"Run {waiting.run_id} is waiting: only a run that trains can be paused" in refused.stderr
    assert small.get(run.run_id).status == "EXEC"
    end(small, small.get(run.run_id), waiting)


def test_runs_are_tagged_named_and_noted(small: Client, run_mosaic: RunMosaic) -> None:
    run = small.submit(long_config())
    end(small, run)
    told = run_mosaic("tag", run.run_id, "--add", "night", "--add", "#sweep", "--notes", "mind it").stdout
    assert told.startswith(run.run_id) and told.endswith("#night  #sweep  mind it\n")
    (known,) = parsed(run_mosaic("tag", "last", "--remove", "night", "--name", "The best", "--json"))
    assert (known["run_name"], known["tags"], known["notes"]) == ("The best", ["sweep"], "mind it")
    shown = run_mosaic("show", "last").stdout
    assert "sweep" in shown and "mind it" in shown
    refused = run_mosaic("tag", "last", "--add", "a,b", check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_the_queue_is_shown_and_reordered(small: Client, run_mosaic: RunMosaic) -> None:
    holding = long_config()
    holding["resources"] |= {"memory_mb": 64, "gpus": 1}
    holder = wait_for_status(small, small.submit(holding).run_id, "EXEC")
    first, second, third = (small.submit(long_config(cpus=2, seed=seed)) for seed in (11, 12, 13))
    short = {run.run_id: f"seed {run.worker_config['seed']}" for run in (first, second, third)}

    def order(*words: str) -> list[str]:
        return [short[run["run_id"]] for run in parsed(run_mosaic("queue", *words, "--json"))["waiting"]]

    queue = parsed(run_mosaic("queue", "--json"))
    (live,) = queue["live"]
    assert (live["run_id"], live["cpus"], live["memory_mb"], live["gpus"]) == (holder.run_id, 1, 64, [0])
    assert queue["cpus"] == {"reserved": 1, "total": 2}
    assert queue["gpus"] == {"reserved": 1, "total": 1}
    assert queue["memory_mb"]["reserved"] == 64
    assert queue["waiting"][0]["waits_for"] == f"waits for 1 more CPU, held by run {holder.run_id}"

    assert order(third.run_id, "--before", second.run_id) == ["seed 11", "seed 13", "seed 12"]
    assert order(second.run_id, "--first") == ["seed 12", "seed 11", "seed 13"]
    assert order(third.run_id, "--priority", "7") == ["seed 13", "seed 12", "seed 11"]
    assert order(second.run_id, "--priority", "-7") == ["seed 13", "seed 11", "seed 12"]
    assert order(third.run_id, "--first") == ["seed 13", "seed 11", "seed 12"]

    lines = [line.rstrip() for line in run_mosaic("queue", env={"COLUMNS": "80"}).stdout.splitlines()]
    shown = "\n".join(lines)
    assert max(map(len, lines)) <= 80
    assert "1 CPU, 64 MB, GPU 0" in shown
    assert "for 1 more CPU, held by run" in shown
    assert "behind 2 runs in the queue" in shown
    assert "1 of 2 CPUs" in lines[-1]
    assert [seed for line in lines for seed in short.values() if seed in line] == [
        "seed 13",
        "seed 11",
        "seed 12",
    ]

    refused = run_mosaic("queue", holder.run_id, "--first", check=False)
    assert (refused.returncode, "is training: only a waiting run" in refused.stderr) == (1, True)
    itself = run_mosaic("queue", first.run_id, "--before", first.run_id, check=False)
    assert (itself.returncode, "cannot be placed before itself" in itself.stderr) == (2, True)

    status = run_mosaic("daemon", "status").stdout
    for part in ("1 live, 3 waiting", "1 of 2 reserved", "64 of ", "1 of 1 reserved"):
        assert part in status
    health = parsed(run_mosaic("doctor", "--json"))["checks"]
    assert any("1 live, 3 waiting; 1 of 2 CPUs" in check["detail"] for check in health)
    cancelled = run_mosaic("cancel", "--all").stdout.splitlines()
    assert sorted(cancelled) == sorted(f"{run.run_id} cancelled" for run in (first, second, third, holder))
    assert [entry.status for entry in small.get(third.run_id).history] == ["INIT", "TERM"]
    assert "There is no waiting or live run" in run_mosaic("cancel", "--all").stdout


def test_without_runs_the_queue_says_so(run_mosaic: RunMosaic) -> None:
    assert "There is no live or waiting run" in run_mosaic("queue").stdout


def test_a_dry_run_asks_the_daemon_what_it_may_hand_out(small: Client, run_mosaic: RunMosaic) -> None:
    words = ("train", "ppo", "CartPole-v1", "--cpus", "3", "--dry-run")
    refused = run_mosaic(*words, check=False, env={"MOSAIC_CPUS": "8"})
    assert (refused.returncode, refused.stderr) == (
        2,
        "mosaic: 'resources.cpus' is 3, but this machine has 2.\n",
    )
