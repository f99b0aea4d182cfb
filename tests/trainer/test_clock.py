"""The time of day jumps, as it does when a machine learns it late; what runs have worked does not."""

from __future__ import annotations

import json
import os
import sqlite3
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mosaic.client import Client
from mosaic.client.daemon import stop_daemon
from mosaic.trainer.registry import Registry
from support.runs import end, long_config, script_config, wait_for_status

DAY = 86_400.0
_CLOCK = """
    import os, time
    told, path = time.time, os.environ["TEST_CLOCK"]

    def jumped():
        with open(path) as file:
            return told() + float(file.read() or 0)

    time.time = jumped
"""


@pytest.fixture
def jump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], None]]:
    """Moves the time of day in the daemons and supervisors that are started from now on."""
    place, offset = tmp_path / "clock", tmp_path / "offset"
    place.mkdir()
    (place / "sitecustomize.py").write_text(textwrap.dedent(_CLOCK))
    offset.write_text("0")
    monkeypatch.setenv("TEST_CLOCK", str(offset))
    monkeypatch.setenv("PYTHONPATH", str(place))
    yield lambda seconds: (offset.write_text(str(seconds)), None)[1]


def _limited(minutes: float) -> dict[str, object]:
    config = long_config()
    config["schedule"] = {"max_wallclock_minutes": minutes}
    return config


def test_a_day_that_passes_at_once_ends_no_run(jump: Callable[[float], None], client: Client) -> None:
    run = wait_for_status(client, client.submit(_limited(60)).run_id, "EXEC")
    jump(DAY)
    client.pause(run.run_id)
    client.resume(run.run_id)
    os.kill(client.health().pid, 9)
    assert client.get(run.run_id).status == "EXEC"
    client.pause(run.run_id)
    assert client.resume(run.run_id).status == "EXEC"
    assert client.get(run.run_id).history[-1].at > run.history[-1].at + DAY / 2
    end(client, run)


def test_a_day_that_comes_again_frees_no_run(jump: Callable[[float], None], client: Client) -> None:
    run = wait_for_status(client, client.submit(_limited(0.05)).run_id, "EXEC")
    jump(-DAY)
    os.kill(client.health().pid, 9)
    ended = client.wait(run.run_id, timeout=60)
    assert (ended.outcome, ended.reason) == ("timed_out", "reached its time limit of 0.05 minutes")
    manifest = json.loads((Path(run.run_dir) / "analytics.json").read_text())
    assert manifest["duration_seconds"] > 0


def test_what_a_run_has_worked_counts_after_a_loss_of_power(client: Client) -> None:
    run = wait_for_status(client, client.submit(_limited(0.05)).run_id, "EXEC")
    stop_daemon(client.paths)
    with closing(sqlite3.connect(client.paths.database)) as database, database:
        # As after a loss of power, with what was stored last.
        database.execute("UPDATE runs SET worked_seconds = 100, boot_id = 'another'")
    registry = Registry(client.paths)
    assert registry.get(run.run_id).worked() == 100
    registry.close()
    assert client.wait(run.run_id, timeout=60).outcome == "timed_out"


def test_a_restart_goes_on_counting(client: Client) -> None:
    config = script_config("steps.py", steps=20, params={"pause": 0.05, "exit_code": 3})
    config["schedule"] = {"max_wallclock_minutes": 60, "max_restarts": 1}
    run = client.wait(client.submit(config).run_id, timeout=60)
    stop_daemon(client.paths)
    registry = Registry(client.paths)
    assert registry.get(run.run_id).worked() >= 2 * 20 * 0.05
    registry.close()
