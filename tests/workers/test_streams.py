"""Steps and episodes from a worker to its readers: all, in order, without holding anybody up."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import psutil
import pytest

from mosaic.client import Client, PublishedItem, RunRecord
from mosaic.contract.connection import SECRET_VARIABLE, WORKER_KEY, DaemonAddress
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.testing.worker_contract import LiveRuns, wait_for
from mosaic.worker.link import TrainerLink
from mosaic.worker.publisher import StepPublisher
from mosaic.worker.telemetry import Introduction

READER = """
import sys
from mosaic.client import Client
with Client.connect() as client:
    seen = 0
    for item in client.steps(sys.argv[1]):
        seen += 1 + item.dropped
        print(item.seq, seen, flush=True)
"""


@pytest.fixture
def runs(tiny_worker: None, var: Path) -> Iterator[LiveRuns]:
    with LiveRuns.open(var, "tiny") as runs:
        yield runs


def _publishing(steps: int, **options: Any) -> dict[str, Any]:
    return {"publish": True, "steps": steps, **options}


def _accounted(items: list[PublishedItem]) -> int:
    return sum(1 + item.dropped for item in items)


def _told(client: Client, run: RunRecord) -> int:
    """The last step that the training process has told in its log."""
    numbers = re.findall(rb"step=(\d+)", b"".join(client.logs(run.run_id)))
    return int(numbers[-1]) if numbers else 0


@contextmanager
def _link(runs: LiveRuns, run: RunRecord, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrainerLink]:
    """This process in the place of the run's worker: it shakes hands with the run's secret."""
    held = json.loads(runs.client.paths.run_secrets(run.run_id).read_text())
    monkeypatch.setenv(SECRET_VARIABLE, held["run_secret"])
    link = TrainerLink(Introduction(run.run_id, "test", "tiny"), runs.client.paths, "127.0.0.1:1")
    link.register()
    yield link
    link.close()


def test_a_reader_gets_every_step_and_episode_in_order(runs: LiveRuns) -> None:
    run = runs.submit(_publishing(2_500, episode_steps=100))
    steps = list(runs.client.steps(run.run_id))
    assert [item.seq for item in steps] == list(range(1, 2_501))
    assert [item.payload["step"] for item in steps] == list(range(1, 2_501))
    assert {item.dropped for item in steps} == {0}
    episodes = list(runs.client.episodes(run.run_id))
    assert [item.payload["episode"] for item in episodes] == list(range(1, 26))
    assert [item.seq for item in runs.client.steps(run.run_id, since_seq=2_498)] == [2_499, 2_500]
    assert runs.client.wait(run.run_id, timeout=60).outcome == "completed"


def test_a_worker_holds_back_while_nobody_reads(runs: LiveRuns) -> None:
    asked = time.monotonic()
    run = runs.started(_publishing(1_000_000, pause=0.002))
    wait_for(lambda: _told(runs.client, run) > 300, "the worker has made 300 steps")
    arrived = list(runs.client.steps(run.run_id, follow=False))
    assert len(arrived) <= 10 * (time.monotonic() - asked + 1)
    for item in runs.client.steps(run.run_id, since_seq=arrived[-1].seq if arrived else 0):
        # Somebody reads now: what was held back comes too, and then the new.
        assert item.dropped == 0
        if item.seq > 400:
            break


def test_a_reader_that_lost_the_daemon_goes_on_without_gap_or_double(runs: LiveRuns) -> None:
    # It goes on after the daemon is back, however long that takes: a worker's end waits a few seconds only.
    run = runs.started(_publishing(1_000_000, pause=0.005))
    seen = []
    for item in runs.client.steps(run.run_id):
        seen.append(item)
        if item.seq == 100:
            runs.kill_daemon()
        if item.seq == 600:
            break
    assert [item.seq for item in seen] == list(range(1, 601))
    assert {item.dropped for item in seen} == {0}


def test_a_stopped_reader_holds_up_nobody_and_is_told_what_it_missed(runs: LiveRuns) -> None:
    steps, padding = 20_000, 4_000
    run = runs.submit(_publishing(steps, padding=padding))
    command = [sys.executable, "-c", READER, run.run_id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        reader.send_signal(signal.SIGSTOP)
        daemon = psutil.Process(runs.client.health().pid)
        before = daemon.memory_info().rss
        ended = runs.client.wait(run.run_id, timeout=120)
        grown = daemon.memory_info().rss - before
        reader.send_signal(signal.SIGCONT)
        *_, last = reader.stdout
    assert ended.outcome == "completed"
    assert grown < steps * padding / 2, "the daemon keeps what nobody reads"
    assert last.split() == [str(steps), str(steps)], "what was dropped is not all told"


def test_what_the_worker_drops_is_counted(runs: LiveRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.started({"steps": 1_000_000, "pause": 0.05})
    with _link(runs, run, monkeypatch) as link:
        publisher = StepPublisher(link, kept_items=10)
        for step in range(100):
            publisher.publish({"step": step})
        assert publisher.dropped == 90, "without credits nothing may have been sent"
        link.listen(lambda wanted: None)
        publisher.close()
    arrived = list(runs.client.steps(run.run_id, follow=False))
    assert [item.payload["step"] for item in arrived] == list(range(90, 100))
    assert (arrived[0].dropped, _accounted(arrived)) == (90, 100)


def test_more_than_the_credits_arrives_as_they_come_back(
    runs: LiveRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.started({"steps": 1_000_000, "pause": 0.05})
    with _link(runs, run, monkeypatch) as link:
        link.listen(lambda wanted: None)
        publisher = StepPublisher(link, "episodes")
        for episode in range(9_000):
            publisher.publish({"episode": episode})
        publisher.close(seconds=60)
        assert publisher.dropped == 0
    arrived = list(runs.client.episodes(run.run_id, follow=False))
    assert [item.payload["episode"] for item in arrived] == list(range(9_000))


def test_a_new_daemon_gets_again_what_the_old_one_had(
    runs: LiveRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.started({"steps": 1_000_000, "pause": 0.05})
    with _link(runs, run, monkeypatch) as link:
        link.listen(lambda wanted: None)
        publisher = StepPublisher(link)
        for step in range(5):
            publisher.publish({"step": step})
        wait_for(lambda: list(runs.client.steps(run.run_id, follow=False)), "the first daemon has them")
        runs.kill_daemon()
        publisher.publish({"step": 5})
        read = list(islice(runs.client.steps(run.run_id), 6))
        publisher.close()
    assert [item.payload["step"] for item in read] == list(range(6))
    assert {item.dropped for item in read} == {0}


def test_the_newest_control_stream_replaces_the_older(
    runs: LiveRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.started({"steps": 1_000_000, "pause": 0.05})
    with _link(runs, run, monkeypatch) as link:
        address = DaemonAddress.read(runs.client.paths.daemon_file)
        assert address is not None
        metadata = (*address.metadata(), (WORKER_KEY, link._credential))
        request = pb.ControlStreamRequest(run_id=run.run_id)
        older = link.connection.stub.ControlStream(request, metadata=metadata)
        first = [next(older).WhichOneof("command") for _ in range(2)]
        assert first == ["max_rate_hz", "grant_steps"], "nobody has asked for a pause"
        newer = link.connection.stub.ControlStream(request, metadata=metadata)
        next(newer)
        assert list(older) == [], "it ends, without an error"
        newer.cancel()


def test_the_rate_is_lifted_while_somebody_reads(runs: LiveRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.started({"steps": 1_000_000, "pause": 0.05})
    with _link(runs, run, monkeypatch) as link:
        link.listen(lambda wanted: None)
        wait_for(lambda: link.allowance.rate_hz == 10.0, "nobody reads yet")
        publisher = StepPublisher(link)
        publisher.publish({"step": 1})
        reading = runs.client.steps(run.run_id)
        next(reading)
        wait_for(lambda: link.allowance.rate_hz == 0.0, "a reader lifts the limit")
        reading.close()
        wait_for(lambda: link.allowance.rate_hz == 10.0, "the limit is back")
        publisher.close()


def test_a_worker_publishes_only_with_its_own_session(
    runs: LiveRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.started({"steps": 1_000_000, "pause": 0.05})
    with _link(runs, run, monkeypatch) as link:
        items = [pb.Published(seq=1, payload_json="{}")]
        assert link.publish(link.connection, "steps", items)
        link._credential = "guess"
        assert not link.publish(link.connection, "steps", [pb.Published(seq=2, payload_json="{}")])
    assert [item.seq for item in runs.client.steps(run.run_id, follow=False)] == [1]
