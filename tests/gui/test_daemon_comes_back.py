"""The daemon dies under the open window: the window says so, finds it again and misses nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from gym_gui.app import Desktop
from mosaic.client import Client
from mosaic.contract.connection import DaemonAddress
from mosaic.contract.paths import VarPaths
from support.runs import long_config, script_config
from support.window import Driver


def daemon_pid(var: Path) -> int:
    address = DaemonAddress.read(VarPaths(var).daemon_file)
    assert address is not None
    return address.pid


def test_a_killed_daemon_is_shown_and_found_again_and_runs_go_on(driver: Driver, var: Path) -> None:
    window, states = driver.window, list[str]()
    driver.desktop.link.state_changed.connect(states.append)
    run = driver.submit(long_config())
    driver.until_state("Running")
    killed = daemon_pid(var)
    os.kill(killed, signal.SIGKILL)
    driver.until(lambda: "connecting" in states)
    driver.until(lambda: states[-1] == "alive")
    assert daemon_pid(var) != killed
    driver.until(lambda: window.status.daemon.text() == "Daemon on this machine")
    assert driver.until_state("Running").run_id == run.run_id
    window.actions_on_runs.do("cancel", run, [run])
    driver.until_state("Cancelled")


def test_what_happens_while_the_daemon_is_away_is_not_missed(driver: Driver, var: Path) -> None:
    driver.submit(script_config("steps.py", steps=20, params={"pause": 0.1}))
    driver.until_state("Running", "Completed")
    for _ in range(2):
        os.kill(daemon_pid(var), signal.SIGKILL)
        before = daemon_pid(var)
        driver.until(lambda before=before: daemon_pid(var) != before)
    driver.until_state("Completed")


def test_a_window_opened_without_a_daemon_starts_one(var: Path, driver: Driver) -> None:
    assert driver.desktop.link.state == "alive"
    with Client.connect(var) as client:
        assert client.health().pid == daemon_pid(var)


def test_a_daemon_that_cannot_start_is_told_with_the_reason(
    var: Path, desktop: Desktop, qtbot: object
) -> None:
    driver = Driver(desktop, qtbot)  # type: ignore[arg-type]
    driver.until(lambda: desktop.link.state == "alive")
    database = VarPaths(var).database
    kept = database.read_bytes()
    for file in database.parent.glob("trainer.sqlite*"):
        file.unlink()
    database.mkdir()
    # Only now: the next daemon is there within half a second.
    os.kill(daemon_pid(var), signal.SIGKILL)
    driver.until(lambda: desktop.link.state == "unreachable")
    assert desktop.link.reason
    # The window hears of it a turn of its event loop later.
    driver.until(lambda: desktop.window.status.daemon.text().startswith("Daemon unreachable"))
    driver.until(lambda: desktop.window.empty.title.text() == "The daemon cannot be reached")
    database.rmdir()
    database.write_bytes(kept)
    driver.until(lambda: desktop.link.state == "alive")
