"""Databases of earlier releases open, and newer ones are refused without harm."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from mosaic.client import Client
from mosaic.contract.errors import StorageError
from mosaic.contract.fsm import RunStatus
from mosaic.contract.paths import VarPaths
from mosaic.trainer.registry import Registry
from mosaic.trainer.storage import STEPS, VERSION

STORED = sorted((Path(__file__).parent.parent / "data" / "databases").glob("v*.sqlite"))


def _paths(root: Path) -> VarPaths:
    paths = VarPaths(root)
    paths.make()
    return paths


def test_there_is_a_stored_database_of_every_version() -> None:
    assert [path.stem for path in STORED] == [f"v{version}" for version in range(1, VERSION + 1)]


@pytest.mark.parametrize("stored", STORED, ids=lambda path: path.stem)
def test_a_stored_database_opens_with_all_its_runs(stored: Path, tmp_path: Path) -> None:
    paths = _paths(tmp_path)
    shutil.copyfile(stored, paths.database)
    registry = Registry(paths)
    runs = {run.run_name: run for run in map(registry.get, registry.run_ids())}
    assert set(runs) == {"completed", "failed", "was running"}
    completed = runs["completed"]
    assert (completed.status, completed.outcome) == (RunStatus.TERM, "completed")
    assert completed.headline["mean_return"] == 42.5
    assert (completed.priority, completed.pause_wanted, completed.max_restarts) == (0, False, 0)
    history = [row.status for row in registry.history(0, completed.run_id)]
    assert history == ["INIT", "HSHK", "RDY", "EXEC", "TERM"]
    assert registry.get_meta("last_port") == "50055"
    registry.close()


@pytest.mark.parametrize("stored", STORED, ids=lambda path: path.stem)
def test_a_run_that_was_live_before_a_reboot_ends_as_failed(stored: Path, var: Path) -> None:
    paths = VarPaths(var)
    paths.make()
    shutil.copyfile(stored, paths.database)
    with Client.connect(var) as client:
        run = next(run for run in client.runs() if run.run_name == "was running")
        run = client.wait(run.run_id, timeout=30)
        assert run.outcome == "failed"
        assert "was removed before the run had ended" in str(run.reason)


def test_a_database_of_a_newer_release_is_refused_and_left_alone(tmp_path: Path) -> None:
    paths = _paths(tmp_path)
    path = paths.database
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(StorageError, match="use the newer release"):
        Registry(paths)
    assert path.read_bytes() == before


def test_an_interrupted_migration_leaves_the_old_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = _paths(tmp_path)
    shutil.copyfile(STORED[0], paths.database)
    broken = (*STEPS[:1], STEPS[1] + "SELECT * FROM no_such_table;")
    monkeypatch.setattr("mosaic.trainer.storage.STEPS", broken)
    with pytest.raises(StorageError, match="no_such_table"):
        Registry(paths)
    monkeypatch.undo()
    registry = Registry(paths)
    assert len(registry.run_ids()) == 3
    registry.close()
