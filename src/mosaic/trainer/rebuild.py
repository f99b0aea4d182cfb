"""Runs by their own files: what the registry is rebuilt from when its database is lost.

Each run has a record beside its config: its row and its state changes, written whenever they change. A run
without one, of an earlier release, is told from its config, its events and whether its secrets still wait.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from ulid import ULID

from mosaic.contract.atomic import sync_folder, write_atomic
from mosaic.contract.errors import UserError
from mosaic.contract.events import FINAL_EVENTS, EventKind, LifecycleReader, tail_events
from mosaic.contract.fsm import Outcome, RunStatus
from mosaic.contract.paths import VarPaths
from mosaic.contract.run_config import TrainRunConfig
from mosaic.trainer import log
from mosaic.trainer.log import Code, reach
from mosaic.trainer.rows import RunRow, TransitionRow, insert, new_row, with_notes
from mosaic.trainer.supervisors import lock_is_held

_RUN_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_FORMAT = 1
_TOLD_EVERY = 200
_ROW = TypeAdapter(RunRow)
_HISTORY = TypeAdapter(list[TransitionRow])
_OUTCOMES = {
    EventKind.RUN_COMPLETED: Outcome.COMPLETED,
    EventKind.RUN_CANCELLED: Outcome.CANCELLED,
    EventKind.RUN_FAILED: Outcome.FAILED,
}
_NOT_STARTED = (RunStatus.INIT, RunStatus.HSHK, RunStatus.RDY)


@dataclass(frozen=True)
class FoundRun:
    """A run as its files tell it. State changes that no file has a number for have the number 0."""

    row: RunRow
    history: tuple[TransitionRow, ...]
    whole: bool
    """Whether its record was there; else pauses, restarts and reasons may be missing."""


def write_record(paths: VarPaths, run: RunRow, history: Iterable[TransitionRow]) -> None:
    """Keep a run's row and its state changes aside. The config is there already, but for its notes.

    Not synced: that a record is older than its row matters only when the database is lost as well.
    """
    columns = {name: value for name, value in vars(run).items() if name != "config"}
    record = {"format": _FORMAT, "row": columns, "notes": run.config["metadata"]["ui"].get("notes")}
    record["history"] = [vars(row) for row in history]
    text = json.dumps(record, indent=1, ensure_ascii=False)
    write_atomic(paths.run_record(run.run_id), text.encode() + b"\n", mode=0o600, sync=False)


def is_run_id(text: str) -> bool:
    return _RUN_ID.fullmatch(text) is not None


def runs_beside(paths: VarPaths, kind: str) -> set[str]:
    """The runs that have a file of this kind beside their folders: config, worker or record."""
    names = (name.removeprefix(f"{kind}-") for name in _names(paths.configs) if name.startswith(f"{kind}-"))
    return _ids(name.removesuffix(".json") for name in names)


def runs_with_files(paths: VarPaths, lost: bool) -> set[str]:
    """The runs that the registry must know, by their files.

    A config alone, beside a sound database, is left from an interrupted submit. Of a database that was `lost`
    it is a run that waited; and the folder of a run tells something also without its config.
    """
    configs, folders = runs_beside(paths, "config"), _ids(_names(paths.runs))
    if lost:
        return configs | folders
    return configs & (runs_beside(paths, "record") | folders | _ids(_names(paths.kept_logs(""))))


def has_begun(paths: VarPaths, run_id: str) -> bool:
    """Whether a run was accepted, by what it has left: an interrupted submit leaves none of these."""
    begun = (paths.run_record(run_id), paths.run(run_id).run_dir, paths.kept_logs(run_id))
    return any(path.exists() for path in begun)


def find_run(paths: VarPaths, run_id: str) -> FoundRun | None:
    """The run as its files tell it; None when they tell too little."""
    config = _config(paths, run_id)
    if config is None:
        return None
    submitted_at = ULID.from_str(run_id).timestamp
    base = new_row(run_id, f"rebuilt-{run_id}", config, "waits for its turn", submitted_at)
    recorded = _read_record(paths.run_record(run_id), base)
    if recorded is not None:
        return _advance(paths, recorded)
    accepted = TransitionRow(0, run_id, RunStatus.INIT, None, base.reason, submitted_at)
    found = _advance(paths, FoundRun(base, (accepted,), whole=False))
    run = paths.run(run_id)
    lives = paths.run_secrets(run_id).exists() or (run.lock.exists() and lock_is_held(run))
    return found if lives else _end(paths, found)


def check_staged(paths: VarPaths, run_id: str) -> None:
    """Raise UserError when what was laid ready is not all that there is of an ended run."""
    pieces = {piece.stem: piece for piece, _ in paths.staged(run_id).pieces(paths)}
    try:
        config = TrainRunConfig.model_validate(_read_json(pieces["config"]))
    except ValidationError as error:
        raise UserError(f"The config of run {run_id} is not valid: {error.errors()[0]['msg']}.") from error
    base = new_row(run_id, f"imported-{run_id}", config, "", ULID.from_str(run_id).timestamp)
    found = _read_record(pieces["record"], base)
    if found is None or found.row.status != RunStatus.TERM or not pieces["folder"].is_dir():
        raise UserError(f"The files of run {run_id} are not those of an ended run.")


def place_staged(paths: VarPaths, run_id: str) -> bool:
    """Move the files of an imported run to their places; whether there were any, and all of them.

    After a crash in between it continues where it was: what is moved is no longer there.
    """
    staged = paths.staged(run_id)
    if not staged.mark.exists():
        return False
    for piece, place in staged.pieces(paths):
        if piece.exists():
            if piece.is_dir() and place != paths.run(run_id).run_dir:
                # What an earlier run of this id has printed, which was removed.
                shutil.rmtree(place, ignore_errors=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            piece.replace(place)
            sync_folder(place.parent)
        reach(f"adopt.{piece.stem}")
    shutil.rmtree(staged.folder, ignore_errors=True)
    return True


def settle_imports(paths: VarPaths) -> None:
    """At the start: bring imports to their end that were complete, and remove what is left of others."""
    for run_id in _names(paths.imports):
        try:
            if not is_run_id(run_id) or not _can_be_placed(paths, run_id) or not place_staged(paths, run_id):
                with paths.staged(run_id).lock.open("a") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(paths.staged(run_id).folder, ignore_errors=True)
        except BlockingIOError:
            # Somebody is at it.
            continue
        except OSError as error:
            log.warning(Code.STORAGE_FAILED, f"an import cannot be brought to its end: {error}", run_id)


def _can_be_placed(paths: VarPaths, run_id: str) -> bool:
    """Whether what is marked as complete is an ended run that is not there yet."""
    staged = paths.staged(run_id)
    if not staged.mark.exists() or not staged.has_folder:
        # Without its folder it was placed by half.
        return staged.mark.exists()
    try:
        check_staged(paths, run_id)
    except UserError as error:
        log.warning(Code.STORAGE_FAILED, f"an import is dropped: {error}", run_id)
        return False
    return not paths.run(run_id).run_dir.exists()


def adopt(connection: sqlite3.Connection, paths: VarPaths, run_id: str) -> None:
    """Add a run that has files and no row, within a transaction."""
    found = find_run(paths, run_id)
    if found is None:
        raise UserError(f"The files of run {run_id} do not say what it was.")
    _insert(connection, [found])


def restore(
    connection: sqlite3.Connection, paths: VarPaths, lost: bool, tell: Callable[[str], None]
) -> str | None:
    """Add the runs that have files and no row, within a transaction; gives in words what was added."""
    known = {run_id for (run_id,) in connection.execute("SELECT run_id FROM runs")}
    missing = sorted(runs_with_files(paths, lost) - known)
    if not missing:
        return None
    found, hopeless = list[FoundRun](), list[str]()
    for number, run_id in enumerate(missing):
        if number % _TOLD_EVERY == 0:
            tell(f"rebuilds the run database ({number:,} of {len(missing):,} runs)")
        try:
            one = find_run(paths, run_id)
        except OSError:
            one = None
        if one is None:
            hopeless.append(run_id)
        else:
            found.append(one)
    _insert(connection, found)
    return _summary(found, hopeless)


def _insert(connection: sqlite3.Connection, found: Sequence[FoundRun]) -> None:
    """Rows in the order in which the runs were submitted; waiting ones keep their order in the queue."""
    (last,) = connection.execute("SELECT coalesce(max(position), 0) FROM runs").fetchone()
    ordered = sorted(found, key=lambda one: (one.row.submitted_at, one.row.position))
    positions = {one.row.run_id: last + number for number, one in enumerate(ordered, start=1)}
    waiting = [one.row for one in ordered if one.row.status == RunStatus.INIT]
    queue = sorted(waiting, key=lambda row: (row.place, row.position))
    places = {row.run_id: positions[other.run_id] for row, other in zip(queue, waiting, strict=True)}
    unnumbered = list[TransitionRow]()
    for one in ordered:
        run_id = one.row.run_id
        row = replace(one.row, position=positions[run_id], place=float(places.get(run_id, positions[run_id])))
        insert(connection, vars(row))
        unnumbered += [change for change in one.history if not _keeps_number(connection, change)]
    # Who watches must see as new what comes now, also where the numbers of removed runs are forgotten.
    (used,) = connection.execute("SELECT coalesce(max(seq), 0) FROM transitions").fetchone()
    connection.execute("DELETE FROM sqlite_sequence WHERE name = 'transitions'")
    connection.execute("INSERT INTO sqlite_sequence VALUES ('transitions', ?)", [max(used, int(time.time()))])
    for change in sorted(unnumbered, key=lambda change: change.at):
        connection.execute("INSERT INTO transitions VALUES (NULL, ?, ?, ?, ?, ?)", astuple(change)[1:])


def _keeps_number(connection: sqlite3.Connection, change: TransitionRow) -> bool:
    """Add a state change under the number that watchers know; False when it has none or that is taken."""
    if not change.seq:
        return False
    query = "INSERT OR IGNORE INTO transitions VALUES (?, ?, ?, ?, ?, ?)"
    return connection.execute(query, astuple(change)).rowcount == 1


def _summary(found: Sequence[FoundRun], hopeless: Sequence[str]) -> str:
    def runs(number: int) -> str:
        return "1 run" if number == 1 else f"{number:,} runs"

    told = f"{runs(len(found))} rebuilt from files"
    live = sum(one.row.status != RunStatus.TERM for one in found)
    if live:
        told += f", {live:,} of them live or waiting"
    partly = sum(not one.whole for one in found)
    if partly:
        told += f"; the history of {runs(partly)} is incomplete"
    if hopeless:
        named = ", ".join(hopeless[:3]) + (" and others" if len(hopeless) > 3 else "")
        told += f"; not rebuilt, and their files left where they are: {named}"
    return told


def _names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


def _ids(names: Iterable[str]) -> set[str]:
    return {name for name in names if is_run_id(name)}


def _read_record(path: Path, base: RunRow) -> FoundRun | None:
    """The record of a run; columns that it does not know are those of `base`."""
    record = _read_json(path)
    try:
        known = vars(base).keys() - {"config", "run_id"}
        told = {name: value for name, value in record["row"].items() if name in known}
        row = _ROW.validate_python({**vars(base), **told})
        history = _HISTORY.validate_python(record["history"])
        notes = record["notes"]
    except (ValidationError, KeyError, AttributeError, TypeError):
        return None
    if not history or any(entry.run_id != row.run_id for entry in history):
        return None
    if isinstance(notes, str):
        row = replace(row, config=with_notes(row.config, notes))
    return FoundRun(row, tuple(history), whole=True)


def _advance(paths: VarPaths, found: FoundRun) -> FoundRun:
    """A run that has started by its events and not by its row has started."""
    row = found.row
    if row.status not in _NOT_STARTED:
        return found
    events = LifecycleReader(paths.run_logs(row.run_id)["events"], row.events_offset)
    started = next((event for event in events.new_events() if event.event == EventKind.RUN_STARTED), None)
    if started is None:
        return found
    way = [RunStatus.HSHK, RunStatus.RDY, RunStatus.EXEC]
    way = way[way.index(row.status) + 1 :] if row.status in way else way
    pid = started.payload.get("training_pid")
    changed = replace(
        row,
        status=RunStatus.EXEC,
        reason=None,
        started_at=row.started_at or started.ts,
        training_pid=pid if isinstance(pid, int) else None,
    )
    changes = (TransitionRow(0, row.run_id, status, None, None, started.ts) for status in way)
    return replace(found, row=changed, history=(*found.history, *changes))


def _end(paths: VarPaths, found: FoundRun) -> FoundRun:
    """A run that has no record and no secrets has ended; its last event tells how."""
    row = found.row
    events = tail_events(paths.run_logs(row.run_id)["events"])
    last = events[-1] if events else None
    final = last if last is not None and last.event in FINAL_EVENTS else None
    outcome = _OUTCOMES[final.event] if final is not None else Outcome.FAILED
    lost = "it has ended; its outcome was lost with the run database"
    cause = final.payload.get("cause", "the worker gave no cause") if final is not None else lost
    reason = str(cause) if outcome == Outcome.FAILED else None
    at = last.ts if last is not None else row.submitted_at
    payload: Mapping[str, Any] = final.payload if final is not None else {}
    headline, code = payload.get("headline"), payload.get("exit_code")
    changed = replace(
        row,
        status=RunStatus.TERM,
        outcome=outcome,
        reason=reason,
        ended_at=at,
        exit_code=code if isinstance(code, int) else None,
        headline=headline if isinstance(headline, dict) else {},
    )
    change = TransitionRow(0, row.run_id, RunStatus.TERM, outcome, reason, at)
    return replace(found, row=changed, history=(*found.history, change))


def _config(paths: VarPaths, run_id: str) -> TrainRunConfig | None:
    """The accepted config; where that is lost, one with what the worker was given."""
    try:
        return TrainRunConfig.model_validate(_read_json(paths.run_config(run_id)))
    except ValidationError:
        pass
    provenance = _read_json(paths.run(run_id).provenance)
    given = _read_json(paths.worker_config(run_id)) or (
        provenance.get("config") if isinstance(provenance, dict) else None
    )
    if not isinstance(given, dict):
        return None
    name = "-".join(str(given[key]) for key in ("algo", "env_id") if key in given) or run_id
    worker = {"type": "unknown", "config": given}
    try:
        return TrainRunConfig.model_validate({"run_name": name[:200], "metadata": {"worker": worker}})
    except ValidationError:
        return None


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
