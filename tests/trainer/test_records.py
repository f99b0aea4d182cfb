"""A run's record: its row and state changes in a file, and the registry that is rebuilt from such files."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ulid import ULID

from mosaic.contract.atomic import write_json
from mosaic.contract.events import EventKind, LifecycleEvent
from mosaic.contract.fsm import Outcome, RunStatus
from mosaic.contract.paths import VarPaths
from mosaic.contract.run_config import TrainRunConfig
from mosaic.trainer.registry import Registry
from mosaic.trainer.rows import RunRow
from mosaic.trainer.storage import remove_database

STORED = sorted((Path(__file__).parent.parent / "data" / "databases").glob("v*.sqlite"))
CONFIG = TrainRunConfig.model_validate(
    {"run_name": "some", "tags": ["one"], "metadata": {"worker": {"type": "tiny"}, "ui": {"notes": "first"}}}
)


@pytest.fixture
def paths(tmp_path: Path) -> VarPaths:
    made = VarPaths(tmp_path / "var")
    made.make()
    return made


@pytest.fixture
def registry(paths: VarPaths) -> Iterator[Registry]:
    opened = Registry(paths)
    yield opened
    opened.close()


def _add(registry: Registry, paths: VarPaths) -> RunRow:
    run_id = str(ULID())
    write_json(paths.run_config(run_id), CONFIG.as_json())
    return registry.add(run_id, f"request of {run_id}", CONFIG, "waits for its turn")


def _lose(registry: Registry, paths: VarPaths) -> None:
    remove_database(paths.database)
    assert registry.mend()


def _plain(run: RunRow) -> RunRow:
    """Without its numbers; a config of an older release gets what it lacks."""
    config = TrainRunConfig.model_validate(run.config).as_json()
    return replace(run, position=0, place=0.0, config=config)


def _change_in_many_ways(registry: Registry, paths: VarPaths) -> RunRow:
    run = _add(registry, paths)
    registry.move(run.run_id, RunStatus.HSHK, supervisor_pid=1, supervisor_start=2, gpu_ids=[0])
    registry.move(run.run_id, RunStatus.RDY, worker={"worker_id": "w"}, session_hash="abc")
    registry.move(run.run_id, RunStatus.EXEC, training_pid=3)
    notes = {**run.config, "metadata": {**run.config["metadata"], "ui": {"notes": "second"}}}
    registry.update(run.run_id, run_name="other", tags=["two", "ä"], config=notes, stop_reason="\x1b[31m")
    registry.move(
        run.run_id,
        RunStatus.TERM,
        "timed out",
        Outcome.TIMED_OUT,
        headline={"nan": 0.5},
        ended_at=time.time(),
    )
    return registry.get(run.run_id)


def test_every_column_and_state_change_comes_back(registry: Registry, paths: VarPaths) -> None:
    run = _change_in_many_ways(registry, paths)
    history = registry.history(0, run.run_id)
    _lose(registry, paths)
    assert registry.get(run.run_id) == run
    assert registry.history(0, run.run_id) == history, "with the numbers that watchers know"
    assert registry.by_request(run.request_id) == run


def test_what_comes_after_a_rebuild_is_new_to_every_watcher(registry: Registry, paths: VarPaths) -> None:
    run, removed = _add(registry, paths), _change_in_many_ways(registry, paths)
    seen = registry.last_seq()
    registry.remove(removed.run_id)
    paths.run_config(removed.run_id).unlink()
    _lose(registry, paths)
    registry.move(run.run_id, RunStatus.HSHK)
    assert [entry.status for entry in registry.history(seen)] == ["HSHK"]
    # And once more, with the numbers as they are now.
    seen = registry.last_seq()
    _lose(registry, paths)
    registry.move(run.run_id, RunStatus.RDY)
    assert [entry.status for entry in registry.history(seen)] == ["RDY"]


def test_the_queue_keeps_its_order(registry: Registry, paths: VarPaths) -> None:
    runs = [_add(registry, paths) for _ in range(4)]
    registry.update(runs[2].run_id, priority=5)
    registry.place_before(runs[3].run_id, runs[0].run_id)
    registry.remove(runs[1].run_id)
    paths.run_config(runs[1].run_id).unlink()
    before = [run.run_id for run in registry.queue()]
    assert before == [runs[number].run_id for number in (2, 3, 0)]
    for _ in range(2):
        _lose(registry, paths)
        assert [run.run_id for run in registry.queue()] == before
    later = _add(registry, paths)
    assert [run.run_id for run in registry.queue()][-1] == later.run_id


@pytest.mark.parametrize("older", ["empty", "with one of two"])
def test_runs_that_a_database_lacks_are_added(
    registry: Registry, paths: VarPaths, tmp_path: Path, older: str
) -> None:
    first = _add(registry, paths) if older != "empty" else None
    registry.close()
    shutil.copyfile(paths.database, tmp_path / "older")
    again = Registry(paths)
    second = _add(again, paths)
    again.close()
    shutil.copyfile(tmp_path / "older", paths.database)
    again = Registry(paths)
    assert again.run_ids() == {run.run_id for run in (first, second) if run is not None}
    assert again.get(second.run_id) == second
    assert "1 run rebuilt from files" in again.notices()[0]
    again.close()


def test_a_config_of_an_interrupted_submit_is_not_a_run_unless_the_database_is_lost(paths: VarPaths) -> None:
    Registry(paths).close()
    run_id = str(ULID())
    write_json(paths.run_config(run_id), CONFIG.as_json())
    registry = Registry(paths)
    assert registry.run_ids() == set()
    _lose(registry, paths)
    assert registry.run_ids() == {run_id}
    registry.close()


@pytest.mark.parametrize("stored", STORED, ids=lambda path: path.stem)
def test_runs_of_an_older_database_get_their_records(stored: Path, paths: VarPaths) -> None:
    shutil.copyfile(stored, paths.database)
    registry = Registry(paths)
    before = {run.run_id: _plain(run) for run in list(map(registry.get, registry.run_ids()))}
    assert not registry.mend()
    for run in before.values():
        write_json(paths.run_config(run.run_id), run.config)
    _lose(registry, paths)
    assert {run.run_id: _plain(run) for run in list(map(registry.get, registry.run_ids()))} == before
    registry.close()


def test_a_record_that_cannot_be_written_now_is_written_later(registry: Registry, paths: VarPaths) -> None:
    run = _add(registry, paths)
    record = paths.run_record(run.run_id)
    record.unlink()
    (record / "in the way").mkdir(parents=True)
    registry.move(run.run_id, RunStatus.HSHK)
    shutil.rmtree(record)
    registry.mend()
    assert json.loads(record.read_bytes())["row"]["status"] == "HSHK"


def _garbled() -> list[Any]:
    whole = {"format": 1, "row": {"status": "EXEC", "cpus": 1}, "notes": None, "history": []}
    change = {"seq": 1, "run_id": "x", "status": "INIT", "outcome": None, "reason": None, "at": 0.0}
    return [
        *(None, 7, [], {}, {"row": {}}, {"row": [], "notes": None, "history": []}, whole),
        {**whole, "history": [change]},
        {**whole, "history": "INIT"},
        {**whole, "row": {"status": "LOST"}},
        {**whole, "row": {"cpus": "many", "tags": 5}},
        {**whole, "row": {"submitted_at": {}, "headline": []}},
    ]


@pytest.mark.parametrize("record", _garbled(), ids=lambda record: json.dumps(record)[:60])
def test_a_garbled_record_is_none(registry: Registry, paths: VarPaths, record: Any) -> None:
    run = _add(registry, paths)
    paths.run_record(run.run_id).write_text(json.dumps(record))
    paths.run_secrets(run.run_id).write_text("{}")
    _lose(registry, paths)
    found = registry.get(run.run_id)
    assert (found.status, found.run_name, found.tags) == ("INIT", "some", ["one"])
    assert [row.status for row in registry.history(0, run.run_id)] == ["INIT"]
    assert "the history of 1 run is incomplete" in registry.notices()[0]


@pytest.mark.parametrize("bytes_left", [0, 1, 200])
def test_a_cut_record_is_none(registry: Registry, paths: VarPaths, bytes_left: int) -> None:
    run = _change_in_many_ways(registry, paths)
    record = paths.run_record(run.run_id)
    record.write_bytes(record.read_bytes()[:bytes_left])
    _lose(registry, paths)
    found = registry.get(run.run_id)
    assert (found.status, found.outcome) == ("TERM", "failed")
    assert found.reason == "it has ended; its outcome was lost with the run database"


def test_a_record_that_is_behind_the_events_is_brought_up_to_them(
    registry: Registry, paths: VarPaths
) -> None:
    run = _add(registry, paths)
    events = paths.run(run.run_id).events
    events.parent.mkdir(parents=True)
    started = LifecycleEvent(EventKind.RUN_STARTED, run.run_id, 1, 5.0, {"training_pid": 77})
    events.write_bytes(started.to_line())
    _lose(registry, paths)
    found = registry.get(run.run_id)
    assert (found.status, found.training_pid, found.started_at) == ("EXEC", 77, 5.0)
    assert [row.status for row in registry.history(0, run.run_id)] == ["INIT", "HSHK", "RDY", "EXEC"]
