"""A daemon of the test's own, and runs in it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from mosaic.client import Client, RunRecord
from mosaic.client.daemon import stop_daemon
from mosaic.contract.errors import ConflictError
from mosaic.contract.events import LifecycleEvent, LifecycleReader
from mosaic.contract.fsm import LIVE
from mosaic.contract.process import ProcessIdentity, descendants, process_state

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
        found = map(ProcessIdentity.of, [run.supervisor_pid, *descendants(run.supervisor_pid)])
        return [identity for identity in found if identity is not None]

    def states(self, run: RunRecord) -> set[str | None]:
        """The kernel's letters for what the processes below the supervisor do."""
        assert run.supervisor_pid is not None, "a run that trains has a supervisor"
        return {process_state(pid) for pid in descendants(run.supervisor_pid)}


def wait_for(look: Callable[[], Answer | None], what: str) -> Answer:
    """What `look` gives as soon as it gives something."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        answer = look()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"waited for {SECONDS:.0f} s: {what}")
