"""`WorkerContract`: what every worker must do, as tests that a worker package inherits.

>>> class TestMyWorker(WorkerContract):
...     worker_type = "mine"
...
...     def short_config(self) -> dict[str, Any]:
...         return {"steps": 3}
...
...     # … and long_config, failing_config, wrong_config

They start a real daemon and real processes in a folder of their own, for each test anew.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest

from mosaic.client import Client, RunRecord
from mosaic.client.daemon import stop_daemon
from mosaic.contract.capabilities import WorkerCapabilities, find_worker
from mosaic.contract.connection import SECRET_VARIABLE
from mosaic.contract.errors import ConflictError, UserError
from mosaic.contract.events import FINAL_EVENTS, EventKind, LifecycleEvent, LifecycleReader
from mosaic.contract.fsm import LIVE
from mosaic.contract.paths import VAR_VARIABLE
from mosaic.contract.process import ProcessIdentity, process_state, tree_below

Answer = TypeVar("Answer")

SECONDS = 60.0
"""How long anything may take before a test gives up."""


class LiveRuns:
    """Submits worker configs of one worker type and knows what is to be seen of a run."""

    def __init__(self, client: Client, worker_type: str) -> None:
        self.client = client
        self._worker_type = worker_type

    @classmethod
    @contextmanager
    def open(cls, var: Path, worker_type: str) -> Iterator[LiveRuns]:
        """Start a daemon for `var`. At the end its live runs are cancelled and it is stopped."""
        with Client.connect(var) as client:
            runs = cls(client, worker_type)
            try:
                yield runs
            finally:
                for run in client.runs(sorted(LIVE)):
                    # It may just have ended by itself.
                    with suppress(ConflictError):
                        runs.cancel(run)
                stop_daemon(client.paths)

    def submit(self, config: Mapping[str, Any], **more: Any) -> RunRecord:
        """`more` stands beside the worker's config in that of the run."""
        worker = {"type": self._worker_type, "config": dict(config)}
        return self.client.submit({"run_name": "contract", "metadata": {"worker": worker}, **more})

    def started(self, config: Mapping[str, Any]) -> RunRecord:
        """A run once it trains."""
        return self.in_status(self.submit(config), "EXEC")

    def ended(self, config: Mapping[str, Any], **more: Any) -> RunRecord:
        """A run once it has ended by itself."""
        return self.client.wait(self.submit(config, **more).run_id, SECONDS)

    def in_status(self, run: RunRecord, status: str) -> RunRecord:
        def arrived() -> RunRecord | None:
            now = self.client.get(run.run_id)
            assert not now.ended, f"the run ended {now.outcome} ({now.reason}) and never was {status}"
            return now if now.status == status else None

        return wait_for(arrived, f"the run is {status}")

    def cancel(self, run: RunRecord) -> RunRecord:
        self.client.cancel(run.run_id)
        return self.client.wait(run.run_id, SECONDS)

    def kill_daemon(self) -> None:
        """As `kill -9` does; the client starts another at its next call."""
        os.kill(self.client.health().pid, signal.SIGKILL)

    def events(self, run: RunRecord) -> list[LifecycleEvent]:
        return LifecycleReader(self.client.paths.run(run.run_id).events).poll()

    def tree(self, run: RunRecord) -> list[ProcessIdentity]:
        """The supervisor and all processes below it."""
        assert run.supervisor_pid is not None, "a run that trains has a supervisor"
        supervisor = ProcessIdentity.of(run.supervisor_pid)
        tree = [supervisor, *tree_below(run.supervisor_pid)]
        return [one for one in tree if one is not None and one.alive()]

    def states(self, run: RunRecord) -> set[str | None]:
        """The kernel's letters for what the processes below the supervisor do."""
        assert run.supervisor_pid is not None, "a run that trains has a supervisor"
        return {process_state(one.pid) for one in tree_below(run.supervisor_pid)}


def wait_for(look: Callable[[], Answer | None], what: str) -> Answer:
    """What `look` gives as soon as it gives something."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        answer = look()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"waited for {SECONDS:.0f} s: {what}")


_RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
_SECRET = "not-for-any-file-0123456789abcdef"


class WorkerContract(ABC):
    """Inherit it in a test class and say which worker it is about. All configs are worker configs."""

    worker_type: ClassVar[str]
    long_processes: ClassVar[int] = 2
    """How many processes a run of `long_config` has at least, with its supervisor."""

    @abstractmethod
    def short_config(self) -> dict[str, Any]:
        """Ends by itself within seconds, and well."""

    @abstractmethod
    def long_config(self) -> dict[str, Any]:
        """Trains until it is ended, best with processes of its own."""

    @abstractmethod
    def failing_config(self) -> dict[str, Any]:
        """Accepted and started; its training process then fails."""

    @abstractmethod
    def wrong_config(self) -> dict[str, Any]:
        """Nothing that could be started."""

    @pytest.fixture
    def runs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveRuns]:
        """Runs of this worker, in a daemon of the test's own."""
        var = tmp_path / "var"
        monkeypatch.setenv(VAR_VARIABLE, str(var))
        with LiveRuns.open(var, self.worker_type) as runs:
            yield runs

    def _long_run(self, runs: LiveRuns) -> RunRecord:
        """A run of `long_config` with all its processes: training is one of its own, below the supervisor."""
        run = runs.started(self.long_config())
        wait_for(
            lambda: len(runs.tree(run)) >= self.long_processes, f"it has {self.long_processes} processes"
        )
        return run

    def test_the_entry_point_gives_a_complete_descriptor(self) -> None:
        worker = find_worker(self.worker_type)
        assert isinstance(worker, WorkerCapabilities)
        assert worker.worker_type == self.worker_type
        for name in ("display_name", "cli_module"):
            assert getattr(worker, name), f"the descriptor's {name} is empty"
        assert worker.catalog, "without a catalog no config can be checked before it is started"
        assert worker.load_catalog().algorithms()

    def test_a_short_run_completes_and_leaves_events_and_manifest(self, runs: LiveRuns) -> None:
        run = runs.ended(self.short_config())
        assert [entry.status for entry in run.history] == ["INIT", "HSHK", "RDY", "EXEC", "TERM"]
        assert (run.outcome, run.exit_code) == ("completed", 0)
        assert run.worker["worker_kind"] == self.worker_type
        assert run.worker["worker_id"]
        events = runs.events(run)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert {event.run_id for event in events} == {run.run_id}
        assert events[0].event == EventKind.RUN_STARTED
        assert [event.event for event in events if event.event in FINAL_EVENTS] == [EventKind.RUN_COMPLETED]
        assert events[-1].event == EventKind.RUN_COMPLETED
        manifest = json.loads(runs.client.paths.run(run.run_id).manifest.read_text())
        assert manifest["run_id"] == run.run_id
        assert events[-1].payload["manifest"] == manifest

    def test_a_live_run_beats(self, runs: LiveRuns) -> None:
        run = self._long_run(runs)
        wait_for(
            lambda: [event for event in runs.events(run) if event.event == EventKind.HEARTBEAT],
            "the event file has a heartbeat",
        )

    def test_a_failing_script_is_a_fault_with_its_cause(self, runs: LiveRuns) -> None:
        run = runs.ended(self.failing_config())
        assert [entry.status for entry in run.history][-3:] == ["EXEC", "FAULT", "TERM"]
        assert run.outcome == "failed"
        assert run.exit_code not in (0, None)
        assert run.reason
        last = runs.events(run)[-1]
        assert (last.event, last.payload["cause"]) == (EventKind.RUN_FAILED, run.reason)

    def test_a_wrong_config_is_refused_in_one_line(self, runs: LiveRuns, tmp_path: Path) -> None:
        try:
            run = runs.ended(self.wrong_config())
        except UserError as error:
            assert str(error).strip()
            assert "\n" not in str(error).strip()
        else:
            assert (run.outcome, run.exit_code) == ("failed", UserError.exit_code)
        config = tmp_path / "wrong.json"
        config.write_text(json.dumps({**self.wrong_config(), "run_id": _RUN_ID}))
        module = find_worker(self.worker_type).cli_module
        command = [sys.executable, "-m", module, "--config", str(config), "--grpc"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == UserError.exit_code
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1, done.stderr

    def test_cancelling_ends_every_process(self, runs: LiveRuns) -> None:
        run = self._long_run(runs)
        processes = runs.tree(run)
        assert run.training_pid in [process.pid for process in processes]
        assert runs.cancel(run).outcome == "cancelled"
        assert not [process for process in processes if process.alive()]
        assert runs.events(run)[-1].event == EventKind.RUN_CANCELLED

    def test_a_pause_stops_the_whole_tree_until_it_is_resumed(self, runs: LiveRuns) -> None:
        run = self._long_run(runs)
        assert runs.client.pause(run.run_id).status == "PAUSE"
        assert runs.states(run) == {"T"}
        beat = runs.events(run)[-1]
        assert (beat.event, beat.payload["phase"]) == (EventKind.HEARTBEAT, "paused")
        assert runs.client.resume(run.run_id).status == "EXEC"
        assert "T" not in runs.states(run)

    def test_a_run_and_its_session_survive_the_daemon(self, runs: LiveRuns) -> None:
        run = self._long_run(runs)
        runs.kill_daemon()
        again = runs.client.get(run.run_id)
        assert (again.status, again.supervisor_pid) == ("EXEC", run.supervisor_pid)
        # Only a worker whose session token is still good hears this.
        assert runs.client.pause(run.run_id).status == "PAUSE"
        assert runs.client.resume(run.run_id).status == "EXEC"
        ended = runs.cancel(run)
        assert [entry.status for entry in ended.history].count("HSHK") == 1
        said = [event.event for event in runs.events(run)]
        assert said.count(EventKind.RUN_STARTED) == 1
        assert said[-1] == EventKind.RUN_CANCELLED

    def test_nothing_outlives_a_killed_supervisor(self, runs: LiveRuns) -> None:
        run = self._long_run(runs)
        processes = runs.tree(run)
        training = ProcessIdentity.of(run.training_pid or 0)
        assert training is not None, "`run_started` names the training process"
        # Without a daemon, so that it cannot help.
        runs.kill_daemon()
        os.kill(processes[0].pid, signal.SIGKILL)
        wait_for(lambda: not training.alive(), "the training process has ended with its supervisor")
        ended = runs.client.wait(run.run_id, SECONDS)
        assert ended.outcome == "failed"
        wait_for(lambda: not any(process.alive() for process in processes), "its children have ended too")

    def test_the_runs_secret_stays_with_the_supervisor(self, runs: LiveRuns) -> None:
        run = self._long_run(runs)
        supervisor, *below = runs.tree(run)
        assert SECRET_VARIABLE.encode() in _environment(supervisor.pid)
        for process in below:
            assert SECRET_VARIABLE.encode() not in _environment(process.pid)

    def test_a_secret_of_the_config_is_in_no_file(self, runs: LiveRuns) -> None:
        variables = {"SERVICE_API_KEY": _SECRET}
        run = runs.ended(self.short_config(), environment=variables, secrets=["SERVICE_API_KEY"])
        assert run.outcome == "completed", run.reason
        files = [path for path in runs.client.paths.root.rglob("*") if path.is_file()]
        assert [path for path in files if _SECRET.encode() in path.read_bytes()] == []


def _environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()
