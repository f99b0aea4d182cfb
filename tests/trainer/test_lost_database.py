"""The run database is lost, emptied or damaged; the runs are not."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import RunMosaic
from mosaic.client import Client, RunRecord
from mosaic.client.daemon import stop_daemon
from mosaic.contract.paths import VarPaths
from support.runs import end, long_config, script_config, wait_for_status


def _remove(paths: VarPaths) -> None:
    for file in paths.trainer.glob("trainer.sqlite*"):
        file.unlink()


def _remove_main_file(paths: VarPaths) -> None:
    paths.database.unlink()


def _cut_to_nothing(paths: VarPaths) -> None:
    os.truncate(paths.database, 0)


def _cut_in_half(paths: VarPaths) -> None:
    os.truncate(paths.database, paths.database.stat().st_size // 8192 * 4096)


def _overwrite_pages(paths: VarPaths) -> None:
    with closing(sqlite3.connect(paths.database)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with paths.database.open("rb+") as file:
        for page in range(1, paths.database.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(os.urandom(4096))


def _fill_with_something_else(paths: VarPaths) -> None:
    paths.database.write_text("this is not SQLite, whatever its name says " * 300)


def _delete_rows(paths: VarPaths) -> None:
    with closing(sqlite3.connect(paths.database)) as database, database:
        database.execute("DELETE FROM runs")
        database.execute("DELETE FROM transitions")


def _drop_a_table(paths: VarPaths) -> None:
    with closing(sqlite3.connect(paths.database)) as database, database:
        database.execute("DROP TABLE transitions")


def _garble_a_row(paths: VarPaths) -> None:
    with closing(sqlite3.connect(paths.database)) as database, database:
        database.execute("UPDATE runs SET config = substr(config, 1, 40)")


LOSSES: list[Callable[[VarPaths], None]] = [
    _remove,
    _remove_main_file,
    _cut_to_nothing,
    _cut_in_half,
    _overwrite_pages,
    _fill_with_something_else,
    _delete_rows,
    _drop_a_table,
    _garble_a_row,
]
"""Each may happen at rest."""
LIVE_LOSSES = [_remove, _remove_main_file, _cut_to_nothing, _overwrite_pages, _garble_a_row]
"""Each may happen while a daemon has the file open."""


def _told(client: Client, *runs: RunRecord) -> list[RunRecord]:
    """Runs as a client sees them, but for their numbers in the database and for what changes all the time."""
    found = [client.get(run.run_id) for run in runs]
    return [
        replace(
            run,
            place=0,
            headline=run.headline if run.ended else {},
            history=[replace(entry, seq=0) for entry in run.history],
        )
        for run in found
    ]


def _some_runs(client: Client) -> list[RunRecord]:
    """One that has ended and was labelled, one that trains on all CPUs, two that wait in another order."""
    ended = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    client.label(ended.run_id, "renamed", ["kept", "too"], "as noted")
    live = wait_for_status(client, client.submit(long_config(cpus=client.health().cpus)).run_id, "EXEC")
    later, first = (client.submit(script_config("steps.py")) for _ in range(2))
    client.reorder(first.run_id, before=later.run_id)
    return [ended, live, first, later]


def _queue(client: Client) -> list[str]:
    waiting = sorted(client.runs(["INIT"]), key=lambda run: (-run.priority, run.place))
    return [run.run_id for run in waiting]


def test_a_database_that_was_lost_at_rest_is_rebuilt_as_it_was(client: Client) -> None:
    runs = _some_runs(client)
    before, queue = _told(client, *runs), _queue(client)
    listed = [run.run_id for run in client.runs()]
    assert before[0].tags == ["kept", "too"]
    for lose in LOSSES:
        stop_daemon(client.paths)
        lose(client.paths)
        assert _told(client, *runs) == before, lose.__name__
        assert _queue(client) == queue == [runs[2].run_id, runs[3].run_id], lose.__name__
        assert [run.run_id for run in client.runs()] == listed, lose.__name__
        (notice,) = client.health().notices
        assert "4 runs rebuilt from files, 3 of them live or waiting." in notice, lose.__name__
    end(client, *runs[:0:-1])


@pytest.mark.parametrize("lose", LIVE_LOSSES)
def test_a_database_that_is_lost_under_a_live_daemon_is_rebuilt_by_it(
    client: Client, lose: Callable[[VarPaths], None]
) -> None:
    ended = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    live = wait_for_status(client, client.submit(long_config()).run_id, "EXEC")
    before, daemon, seen = _told(client, ended, live), client.health().pid, client.health().last_seq
    lose(client.paths)
    assert client.pause(live.run_id).status == "PAUSE", "its session is still known"
    client.resume(live.run_id)
    assert _told(client, ended)[0] == before[0]
    assert client.health().pid == daemon
    watched = list(client.watch(since_seq=seen, timeout=1))
    assert [entry.status for entry in watched] == ["PAUSE", "EXEC"]  # type: ignore[union-attr]
    end(client, live)
    # What the daemon has written since is in the file that is there.
    stop_daemon(client.paths)
    again = client.get(live.run_id)
    assert (again.outcome, client.get(ended.run_id).outcome) == ("cancelled", "completed")
    assert client.health().notices
    assert [entry.status for entry in again.history] == [
        "INIT",
        "HSHK",
        "RDY",
        "EXEC",
        "PAUSE",
        "EXEC",
        "TERM",
    ]


def test_runs_of_an_earlier_release_are_rebuilt_from_configs_and_events(client: Client) -> None:
    completed = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    failed = client.wait(client.submit(script_config("crashes.py")).run_id, timeout=60)
    config = long_config(cpus=client.health().cpus)
    cancelled = wait_for_status(client, client.submit(config).run_id, "EXEC")
    end(client, cancelled)
    removed = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    client.remove(removed.run_id)
    live = wait_for_status(client, client.submit(config).run_id, "EXEC")
    waiting = client.submit(config)
    stop_daemon(client.paths)
    for record in client.paths.configs.glob("record-*.json"):
        record.unlink()
    # Somebody made room by hand.
    shutil.rmtree(client.paths.run(failed.run_id).run_dir)
    _remove(client.paths)
    found = {run.run_id: run for run in client.runs()}
    assert set(found) == {run.run_id for run in (completed, failed, cancelled, live, waiting)}
    told = {run_id: (run.status, run.outcome) for run_id, run in found.items()}
    assert told[completed.run_id] == ("TERM", "completed")
    assert told[failed.run_id] == ("TERM", "failed")
    assert found[failed.run_id].reason == failed.reason
    assert told[cancelled.run_id] == ("TERM", "cancelled")
    assert (told[live.run_id], found[live.run_id].supervisor_pid) == (("EXEC", None), live.supervisor_pid)
    assert told[waiting.run_id] == ("INIT", None)
    states = [entry.status for entry in client.get(completed.run_id).history]
    assert states == ["INIT", "HSHK", "RDY", "EXEC", "TERM"]
    assert abs(found[completed.run_id].submitted_at - completed.submitted_at) < 1
    assert "the history of 5 runs is incomplete" in client.health().notices[0]
    end(client, waiting, live)


def test_a_folder_alone_is_shown_and_one_that_tells_nothing_is_named_and_left(
    client: Client, run_mosaic: RunMosaic
) -> None:
    run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    stop_daemon(client.paths)
    silent = client.paths.runs / "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    (silent / "checkpoints").mkdir(parents=True)
    garbled = client.paths.run_config(silent.name)
    garbled.write_text("{ garbled")
    _remove(client.paths)
    for kind in ("config", "worker", "record"):
        (client.paths.configs / f"{kind}-{run.run_id}.json").unlink()
    (shown,) = client.runs()
    assert (shown.run_id, shown.outcome) == (run.run_id, "completed")
    assert shown.worker_config["env_id"] == "None-v0"
    (notice,) = client.health().notices
    assert notice.endswith(f"not rebuilt, and their files left where they are: {silent.name}.")
    assert silent.is_dir()
    assert garbled.exists(), "nothing is swept that is not known to be of no use"
    assert notice in " ".join(run_mosaic("daemon", "status").stdout.split())
    doctor = json.loads(run_mosaic("doctor", "--json").stdout)
    told = {check["name"]: (check["ok"], check["detail"]) for check in doctor["checks"]}
    assert told["note"] == (True, notice)
    assert told["run database"][1].startswith("sound; 1 runs")


@pytest.mark.parametrize("lose", [_cut_to_nothing, _overwrite_pages, _fill_with_something_else])
def test_doctor_tells_what_is_wrong_with_the_database_and_changes_nothing(
    client: Client, run_mosaic: RunMosaic, lose: Callable[[VarPaths], None]
) -> None:
    run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    stop_daemon(client.paths)

    def look() -> tuple[int, dict[str, object]]:
        done = run_mosaic("doctor", "--json", check=False)
        (found,) = [one for one in json.loads(done.stdout)["checks"] if one["name"] == "run database"]
        return done.returncode, found

    code, found = look()
    assert (code, found["ok"]) == (0, True)
    lose(client.paths)
    left = sorted(client.paths.trainer.iterdir())
    code, found = look()
    assert (code, found["ok"]) == (1, False)
    assert str(found["detail"]).startswith(("damaged (", "lost, but 1 runs"))
    assert sorted(client.paths.trainer.iterdir()) == left
    # What it advises helps.
    run_mosaic("daemon", "stop")
    assert run.run_id in run_mosaic("runs", "--json").stdout
    assert look()[1]["ok"] is True


def test_a_damaged_database_is_kept_under_another_name(client: Client) -> None:
    client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    stop_daemon(client.paths)
    _overwrite_pages(client.paths)
    damaged = client.paths.database.read_bytes()
    assert len(client.runs()) == 1
    (aside,) = client.paths.trainer.glob("trainer.sqlite.damaged-*[0-9]")
    assert aside.read_bytes() == damaged


def test_what_a_half_made_database_left_is_not_taken_for_one(client: Client) -> None:
    run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    stop_daemon(client.paths)
    half: Path = client.paths.trainer / "trainer.sqlite.new"
    _remove(client.paths)
    half.write_bytes(b"half of one")
    assert client.get(run.run_id).outcome == "completed"
    assert not half.exists()


def test_a_new_folder_has_nothing_to_tell(client: Client) -> None:
    assert (client.runs(), client.health().notices, client.health().last_seq) == ([], [], 0)
