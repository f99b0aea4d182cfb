"""Ways of a run through the daemon, with a daemon that dies at a named point of each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from fault_cases.site import SCRIPTS, Site, environment, script_config, wait_for, wait_until
from mosaic.client import Client
from mosaic.client.daemon import stop_daemon
from mosaic.contract.errors import ConflictError, NotFoundError
from mosaic.contract.process import ProcessIdentity

Scenario = Callable[["Crash"], str]


class Crash:
    """One kill: the site, and how to have a daemon that dies at the point."""

    def __init__(self, site: Site, client: Client, point: str) -> None:
        self.client = client
        self.point = point
        self._site = site
        self._doomed: ProcessIdentity | None = None

    def arm(self) -> None:
        """Replace the daemon by one that dies at the point."""
        stop_daemon(self._site.paths)
        with environment(MOSAIC_CRASH_POINT=self.point):
            self._doomed = ProcessIdentity.of(self._site.start().pid)

    def submit(self, **options: Any) -> str:
        restarts = options.pop("max_restarts", 0)
        config = script_config(SCRIPTS / "brief.py", params=options, extras={"wandb_api_key": "k" * 20})
        config["schedule"] = {"max_restarts": restarts}
        return self.client.submit(config).run_id

    def running(self) -> str:
        """A run that trains, under a daemon that does not die."""
        run_id = self.submit(seconds=600)
        wait_for(self.client, run_id, "EXEC")
        return run_id

    def cancel(self, run_id: str) -> None:
        # The call may have worked before the daemon died.
        with contextlib.suppress(ConflictError):
            self.client.cancel(run_id)

    def happened(self) -> bool:
        return self._doomed is not None and not self._doomed.alive()


def completes(crash: Crash) -> str:
    crash.arm()
    return crash.submit()


def faults_once(crash: Crash) -> str:
    crash.arm()
    return crash.submit(exit_code=5, max_restarts=1)


def paused(crash: Crash) -> str:
    run_id = crash.running()
    crash.arm()
    crash.client.pause(run_id)
    wait_until(lambda: crash.client.get(run_id).status == "PAUSE", "the run is paused")
    crash.client.resume(run_id)
    crash.cancel(run_id)
    return run_id


def resumed(crash: Crash) -> str:
    run_id = crash.running()
    crash.client.pause(run_id)
    crash.arm()
    crash.client.resume(run_id)
    wait_until(lambda: crash.client.get(run_id).status == "EXEC", "the run goes on")
    crash.cancel(run_id)
    return run_id


def cancelled(crash: Crash) -> str:
    run_id = crash.running()
    crash.arm()
    crash.cancel(run_id)
    return run_id


def cancelled_while_waiting(crash: Crash) -> str:
    holder = crash.running()
    run_id = crash.submit()
    crash.arm()
    crash.cancel(run_id)
    crash.cancel(holder)
    return run_id


def removed(crash: Crash) -> str:
    run_id = crash.client.wait(crash.submit(), timeout=60).run_id
    crash.arm()
    with contextlib.suppress(NotFoundError):
        crash.client.remove(run_id)
    return run_id


SCENARIOS: list[tuple[Scenario, list[str]]] = [
    (
        completes,
        [
            *("submit.checked", "submit.secrets", "submit.config", "submit.worker", "submit.files"),
            "submit.stored",
            *("add.written", "add.committed", "start.locked", "start.spawned", "move.written"),
            *("before.HSHK", "after.HSHK", "before.RDY", "after.RDY", "before.EXEC", "after.EXEC"),
            *("before.TERM", "after.TERM"),
        ],
    ),
    (faults_once, ["before.FAULT", "after.FAULT", "before.INIT", "after.INIT", "before.TERM", "after.TERM"]),
    (
        paused,
        [
            "update.written",
            "update.committed",
            "pause.recorded",
            "before.PAUSE",
            "after.PAUSE",
            "before.EXEC",
        ],
    ),
    (resumed, ["update.written", "pause.recorded", "before.EXEC", "after.EXEC", "move.committed"]),
    (
        cancelled,
        ["update.written", "stop.recorded", "stop.signalled", "move.written", "before.TERM", "after.TERM"],
    ),
    (cancelled_while_waiting, ["before.TERM", "move.written", "move.committed", "after.TERM"]),
    (removed, ["remove.files", "remove.written", "remove.committed"]),
]
PLANS = [(scenario, point) for scenario, points in SCENARIOS for point in points]
