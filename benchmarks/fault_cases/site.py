"""A var folder with a daemon that can be killed, and what of its runs is still on the machine."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from mosaic.client import Client, HistoryEntry, train_config
from mosaic.client.daemon import find_daemon, start_daemon, stop_daemon
from mosaic.contract.connection import DaemonAddress
from mosaic.contract.events import LifecycleReader
from mosaic.contract.paths import VAR_VARIABLE, VarPaths
from mosaic.contract.process import ProcessIdentity

BENCHMARKS = Path(__file__).parents[1]
SCRIPTS = BENCHMARKS / "fault_scripts"
RUN_MARK = "MOSAIC_RUN_ID="


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Variables for the daemons and runs that are started inside the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class Site:
    """One var folder. Its daemon is started and killed by hand."""

    def __init__(self, var: Path) -> None:
        self.paths = VarPaths(var.resolve())
        self._clients: list[Client] = []

    def __enter__(self) -> Site:
        return self

    def __exit__(self, *_: object) -> None:
        """End what is left, also after an error."""
        try:
            client = self.client()
            for run in client.runs(["INIT", "HSHK", "RDY", "EXEC", "PAUSE"]):
                client.cancel(run.run_id)
            for run in client.runs(["INIT", "HSHK", "RDY", "EXEC", "PAUSE"]):
                client.wait(run.run_id, timeout=60)
        finally:
            for opened in self._clients:
                opened.close()
            stop_daemon(self.paths)

    def client(self) -> Client:
        """A client, closed with the site; it starts a daemon when none runs."""
        client = Client.connect(self.paths.root)
        self._clients.append(client)
        return client

    def start(self) -> DaemonAddress:
        return start_daemon(self.paths)

    def daemon(self) -> ProcessIdentity:
        address = find_daemon(self.paths)
        identity = ProcessIdentity.of(address.pid) if address else None
        assert identity is not None, "no daemon runs"
        return identity

    def kill(self) -> None:
        """`kill -9` the daemon."""
        daemon = self.daemon()
        daemon.send(signal.SIGKILL)
        wait_until(lambda: not daemon.alive(), "the killed daemon is gone")

    def processes(self, run_id: str = "") -> list[int]:
        """Every process that belongs to a run (to any, without an id), wherever it hangs in the tree."""
        return processes_with(f"{RUN_MARK}{run_id}", f"{VAR_VARIABLE}={self.paths.root}")

    def events(self, run_id: str) -> list[str]:
        """The kinds of a run's lifecycle events; their numbers must be without gap or double."""
        events = LifecycleReader(self.paths.run(run_id).events).poll()
        numbers = [event.seq for event in events]
        assert numbers == list(range(1, len(events) + 1)), f"events of {run_id} are numbered {numbers}"
        return [str(event.event) for event in events]


def processes_with(*marks: str) -> list[int]:
    """Processes that have all of `marks` in their environment, apart from this one and zombies."""
    found = []
    for pid in psutil.pids():
        try:
            told = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if (
            all(mark.encode() in told for mark in marks)
            and pid != os.getpid()
            and ProcessIdentity.of(pid) is not None
        ):
            found.append(pid)
    return found


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {seconds:g} s it is still not so that {what}")
        time.sleep(0.01)


def wait_for(client: Client, run_id: str, *statuses: str, seconds: float = 60) -> None:
    """Until the run is in one of `statuses`, or has ended."""
    wait_until(
        lambda: client.get(run_id).status in (*statuses, "TERM"),
        f"{run_id} is {' or '.join(statuses)}",
        seconds,
    )


def take_history(client: Client, since: int) -> list[HistoryEntry]:
    """Every state change after `since`, as a watcher sees them."""
    last = client.health().last_seq
    taken: list[HistoryEntry] = []
    if last > since:
        for entry in client.watch(since_seq=since, timeout=60):
            assert isinstance(entry, HistoryEntry)
            taken.append(entry)
            if entry.seq >= last:
                break
    return taken


def script_config(script: Path, steps: int = 1_000_000, **options: Any) -> dict[str, Any]:
    """A run of a script that needs no torch; `params` become its flags."""
    return train_config(str(script), "None-v0", total_timesteps=steps, folder=SCRIPTS, **options)
