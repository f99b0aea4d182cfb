"""Restarts after faults, priorities, GPUs and memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import pytest

from mosaic.client import Client, RunRecord
from mosaic.contract.errors import ConflictError, UserError
from mosaic.contract.events import LifecycleReader
from support.runs import end, long_config, script_config, wait_for_status

CPUS = len(os.sched_getaffinity(0))


def test_a_faulted_run_starts_again_as_often_as_it_may(client: Client) -> None:
    config = script_config("steps.py", params={"exit_code": 5})
    config["schedule"] = {"max_restarts": 2}
    run = client.wait(client.submit(config).run_id, timeout=120)
    assert (run.outcome, run.exit_code) == ("failed", 5)
    once = ["INIT", "HSHK", "RDY", "EXEC", "FAULT"]
    assert [entry.status for entry in run.history] == once * 3 + ["TERM"]
    reasons = [entry.reason for entry in run.history if entry.status == "INIT"]
    assert reasons[1:] == [
        "restart 1 of 2 after: the script ended with exit code 5",
        "restart 2 of 2 after: the script ended with exit code 5",
    ]
    events = LifecycleReader(Path(run.run_dir) / "logs" / "events.jsonl").poll()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.event for event in events].count("run_started") == 3


def test_a_wrong_config_is_not_tried_again(client: Client) -> None:
    config = script_config("steps.py", params={"exit_code": 2})
    config["schedule"] = {"max_restarts": 2}
    run = client.wait(client.submit(config).run_id, timeout=60)
    assert [entry.status for entry in run.history].count("HSHK") == 1


def test_a_killed_supervisor_is_started_again_when_restarts_allow(client: Client) -> None:
    config = long_config()
    config["schedule"] = {"max_restarts": 1}
    run = wait_for_status(client, client.submit(config).run_id, "EXEC")
    assert run.supervisor_pid is not None
    os.kill(run.supervisor_pid, 9)
    for entry in client.watch(run.run_id, run.history[-1].seq, timeout=60):
        if getattr(entry, "status", "") == "HSHK":
            break
    again = wait_for_status(client, run.run_id, "EXEC")
    assert again.supervisor_pid != run.supervisor_pid
    end(client, again)


def test_higher_priority_starts_first_and_places_can_be_changed(client: Client) -> None:
    holder = client.submit(long_config(cpus=CPUS))
    low, mid, high = (client.submit(script_config("steps.py", cpus=CPUS)) for _ in range(3))
    client.reorder(high.run_id, priority=5)
    client.reorder(mid.run_id, before=low.run_id)
    end(client, holder)
    runs = [client.wait(run.run_id, timeout=60) for run in (high, mid, low)]
    starts = [next(entry.seq for entry in run.history if entry.status == "HSHK") for run in runs]
    assert starts == sorted(starts)
    with pytest.raises(ConflictError, match="only a waiting run has a place in the queue"):
        client.reorder(high.run_id, priority=1)


def test_a_run_gets_another_name_tags_and_notes_and_watchers_are_told(client: Client) -> None:
    run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    assert (run.tags, run.notes) == ([], "")
    updates = client.watch(run.run_id, run.history[-1].seq, headlines=True, timeout=60)
    told: list[RunRecord] = []
    listening = threading.Thread(target=lambda: told.append(cast("RunRecord", next(updates))))
    listening.start()
    while not told:
        # The stream tells of what comes after it was opened, and when that is nobody knows.
        client.label(run.run_id, "the best", ["night", "night", "#sweep"], "mind it")
        listening.join(0.2)
    cast("Generator[object, Any, None]", updates).close()
    assert (told[0].run_name, told[0].tags, told[0].notes) == (
        "the best",
        ["night", "sweep"],
        "mind it",
    )
    client.label(run.run_id, tags=["other"])
    again = client.get(run.run_id)
    assert (again.run_name, again.tags, again.notes) == ("the best", ["other"], "mind it")
    assert again.worker_config == run.worker_config
    with pytest.raises(UserError, match="cannot be a tag"):
        client.label(run.run_id, tags=["a,b"])
    with pytest.raises(UserError, match="1 to 200 characters"):
        client.label(run.run_id, name=" ")


def test_gpus_are_reserved_named_and_shown_to_the_run(var: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOSAIC_GPUS", "0,3")
    monkeypatch.setenv("MOSAIC_CPUS", "4")
    with Client.connect(var) as client:
        first = long_config()
        first["resources"]["gpus"] = {"requested": 2, "mandatory": True}
        second = script_config("steps.py")
        second["resources"]["gpus"] = {"requested": 1, "mandatory": True}
        run = wait_for_status(client, client.submit(first).run_id, "EXEC")
        assert run.gpus == [0, 3]
        environment = Path(f"/proc/{run.training_pid}/environ").read_bytes().split(b"\0")
        assert b"CUDA_VISIBLE_DEVICES=0,3" in environment
        waiting = client.get(client.submit(second).run_id)
        assert waiting.reason == f"waits for GPU 0 or 3, held by run {run.run_id}"
        # It needs a CPU only, of which enough are left for the one before it.
        filler = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
        assert filler.outcome == "completed"
        assert client.get(waiting.run_id).status == "INIT"
        end(client, run)
        assert client.wait(waiting.run_id, timeout=60).outcome == "completed"


def test_gpus_that_are_not_mandatory_fall_back_to_the_cpu(var: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOSAIC_GPUS", "")
    with Client.connect(var) as client:
        config = script_config("steps.py")
        config["resources"]["gpus"] = {"requested": 1, "mandatory": False}
        run = client.wait(client.submit(config).run_id, timeout=60)
        assert (run.outcome, run.gpus) == ("completed", [])
        config["resources"]["gpus"] = {"requested": 1, "mandatory": True}
        with pytest.raises(UserError, match=r"'resources.gpus.requested' is 1, but this machine has 0"):
            client.submit(config)


def test_memory_is_reserved(client: Client) -> None:
    memory = client.health().memory_mb
    first, second = long_config(), script_config("steps.py")
    first["resources"]["memory_mb"] = memory - 10
    second["resources"]["memory_mb"] = 100
    run = client.submit(first)
    waiting = client.get(client.submit(second).run_id)
    assert waiting.reason == f"waits for 90 MB more memory, held by run {run.run_id}"
    assert client.health().memory_mb_reserved == memory - 10
    end(client, run)
    assert client.wait(waiting.run_id, timeout=60).outcome == "completed"
    second["resources"]["memory_mb"] = memory + 1
    with pytest.raises(UserError, match=r"'resources.memory_mb' is"):
        client.submit(second)
