"""The run registry: every run and every state change, in SQLite. The only writer of a run's status."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from typing import Any, TypeVar

from mosaic.contract.atomic import part
from mosaic.contract.connection import identity_of
from mosaic.contract.errors import ConflictError, NotFoundError, StorageError, UserError
from mosaic.contract.fsm import LIVE, STARTED, Outcome, RunStatus, check_transition
from mosaic.contract.paths import VarPaths
from mosaic.contract.run_config import TrainRunConfig
from mosaic.trainer import log
from mosaic.trainer.log import Code, reach
from mosaic.trainer.rebuild import adopt, restore, runs_beside, runs_with_files, write_record
from mosaic.trainer.rows import QueuedRun, RunRow, TransitionRow, decode, encode, insert, marks, new_row
from mosaic.trainer.storage import (
    DamagedError,
    JournalRoom,
    database_files,
    is_damage,
    is_empty,
    open_database,
    remove_database,
    set_aside,
)

Row = TypeVar("Row")

_QUEUE_ORDER = "priority DESC, place, position"
_NOTICE_KEY = "notice"
_NOTICE_SECONDS = 7 * 86_400.0
_MOST_RECORDED = 1000
"""State changes in a run's record; a run that is paused and resumed all the time has more."""
_RECORDS_AT_ONCE = 50


class Registry:
    """All runs of one var folder. Used from one thread."""

    def __init__(self, paths: VarPaths, tell: Callable[[str], None] = lambda doing: None) -> None:
        """Open the database; one that is lost or damaged is rebuilt, and `tell` is told how far that is."""
        self.on_failure: Callable[[Exception], None] = lambda error: None
        """Told of everything that could not be written."""
        self.on_damage: Callable[[], object] = lambda: None
        """Told that `mend` has something to do."""
        self.mended = ""
        """What was rebuilt since we opened it first, in words."""
        self.path = paths.database
        self._paths = paths
        self._tell = tell
        self._damage = ""
        self.room = JournalRoom(paths.database)
        self._open()

    def ask(self, question: Callable[[sqlite3.Connection], Row]) -> Row:
        """The answer to a question that reads by itself; a damaged database is rebuilt, and asked again."""
        try:
            return question(self._connection)
        except (sqlite3.Error, ValueError) as error:
            raise self._unreadable(error) from error

    def close(self) -> None:
        self.room.save()
        self._connection.close()
        self.room.settle()

    def mend(self) -> bool:
        """Open the database anew when it was removed, replaced, emptied or found damaged; whether it was."""
        path = self.path
        replaced = identity_of(path) != self._identities[path]
        if not (replaced or is_empty(path) or self._damage):
            self._record_some()
            return False
        self._connection.close()
        for file, ours in self._identities.items():
            # What is left of ours beside another file would be taken for a part of that.
            if replaced and file != path and identity_of(file) == ours:
                file.unlink(missing_ok=True)
        self._open()
        return True

    def _open(self) -> None:
        path = self.path
        for file in database_files(path):
            # A copy of the folder by hard links has the same file.
            part(file)
        self.room.lend()
        # A new folder has no database either, and has lost nothing.
        lost = is_empty(path) and bool(runs_with_files(self._paths, lost=True))
        if not self._damage and not lost:
            try:
                self._connection = open_database(path)
            except DamagedError as error:
                self._damage = str(error)
        if self._damage or lost:
            self._rebuild()
        else:
            self._restore("Runs were missing in the run database", lost=False)
        self._damage = ""
        self._unrecorded = self.run_ids() - runs_beside(self._paths, "record")
        self.room.take()
        self._identities = {file: identity_of(file) for file in database_files(path)}

    def _rebuild(self) -> None:
        """Make the database anew beside the old one, and put it in its place when it is whole."""
        path = self.path
        new = path.with_name(f"{path.name}.new")
        remove_database(new)
        self._connection = open_database(new)
        try:
            self._restore(f"The run database was {'damaged' if self._damage else 'lost'}", lost=True)
            # Everything into the one file that is moved.
            self._connection.execute("PRAGMA journal_mode = DELETE")
        finally:
            # Half of it must not be taken for the whole.
            self._connection.close()
        if self._damage:
            log.warning(Code.DATABASE_REBUILT, f"{self._damage} It is kept as {set_aside(path)}.")
        remove_database(path)
        new.replace(path)
        self._connection = open_database(path)

    def _restore(self, what: str, lost: bool) -> None:
        with self._transaction("restore"):
            told = restore(self._connection, self._paths, lost, self._tell)
            if told is None:
                return
            notice = f"{what} on {time.strftime('%Y-%m-%d %H:%M')}: {told}."
            self._put_meta(_NOTICE_KEY, json.dumps([time.time(), notice]))
        log.warning(Code.DATABASE_REBUILT, notice)
        self.mended = notice
        self._tell("")

    def notices(self) -> list[str]:
        """What a person should know of the last days, in words."""
        at, notice = json.loads(self.get_meta(_NOTICE_KEY) or '[0, ""]')
        return [notice] if time.time() - at < _NOTICE_SECONDS else []

    def _record(self, run_id: str) -> RunRow:
        """Keep the run aside as it is now; when there is no room for that, a little later."""
        run = self.get(run_id)
        try:
            write_record(self._paths, run, self._newest_history(run_id))
        except OSError:
            self._unrecorded.add(run_id)
        return run

    def _record_some(self) -> None:
        """Some of the runs that have no record yet: those of earlier releases."""
        for run_id in [self._unrecorded.pop() for _ in range(min(_RECORDS_AT_ONCE, len(self._unrecorded)))]:
            if self.known(run_id) is not None:
                self._record(run_id)

    def add(self, run_id: str, request_id: str, config: TrainRunConfig, reason: str) -> RunRow:
        """Store a new run in state INIT."""
        check_transition(run_id, None, RunStatus.INIT, None)
        row = new_row(run_id, request_id, config, reason, time.time())
        with self._transaction("add"):
            insert(self._connection, {name: value for name, value in vars(row).items() if name != "position"})
            self._connection.execute("UPDATE runs SET place = position WHERE run_id = ?", [run_id])
            self._add_transition(run_id, RunStatus.INIT, None, reason)
        return self._record(run_id)

    def adopt(self, run_id: str) -> RunRow:
        """Store an ended run as its files tell it."""
        with self._transaction("adopt"):
            adopt(self._connection, self._paths, run_id)
        return self._record(run_id)

    def move(
        self,
        run_id: str,
        status: RunStatus,
        reason: str | None = None,
        outcome: Outcome | None = None,
        **changes: Any,
    ) -> RunRow:
        """Change a run's state, with `changes` to other columns, as one step that is on disk afterwards."""
        check_transition(run_id, self.get(run_id).status, status, outcome)
        changes |= {"status": status, "outcome": outcome, "reason": reason}
        with self._transaction("move"):
            self._set(run_id, changes)
            self._add_transition(run_id, status, outcome, reason)
        return self._record(run_id)

    def update(self, run_id: str, **changes: Any) -> None:
        """Change columns that are not the state."""
        with self._transaction("update"):
            self._set(run_id, changes)
        self._record(run_id)

    def place_before(self, run_id: str, other_id: str) -> None:
        """Put a waiting run right before another one, with its priority."""
        other = self.get(other_id)
        if other.status != RunStatus.INIT:
            raise ConflictError(f"Run {other_id} is {other.status}: only waiting runs have a place.")
        ahead = [
            run.place
            for run in self.with_status([RunStatus.INIT])
            if run.priority == other.priority and run.place < other.place and run.run_id != run_id
        ]
        place = (max(ahead) + other.place) / 2 if ahead else other.place - 1
        self.update(run_id, priority=other.priority, place=place)

    def remove(self, run_id: str) -> None:
        with self._transaction("remove"):
            self._connection.execute("DELETE FROM transitions WHERE run_id = ?", [run_id])
            self._connection.execute("DELETE FROM runs WHERE run_id = ?", [run_id])
        self._paths.run_record(run_id).unlink(missing_ok=True)

    def get(self, run_id: str) -> RunRow:
        run = self.known(run_id)
        if run is None:
            raise NotFoundError(f"There is no run '{run_id}': `mosaic runs` lists them.")
        return run

    def known(self, run_id: str) -> RunRow | None:
        """A run, if there still is one."""
        return next(self._rows("run_id = ?", [run_id]), None)

    def resolve(self, prefix: str) -> RunRow:
        """The run whose id begins with `prefix`, when exactly one does."""
        if not prefix.isalnum():
            raise UserError(f"'{prefix}' is not a run id: `mosaic runs` lists them.")
        first = prefix.upper()
        rows = list(self._rows("run_id >= ? AND run_id < ? LIMIT 2", [first, f"{first}\U0010ffff"]))
        if len(rows) > 1:
            raise UserError(f"'{prefix}' is the beginning of more than one run id: give more of it.")
        return rows[0] if rows else self.get(prefix)

    def by_request(self, request_id: str) -> RunRow | None:
        return next(self._rows("request_id = ?", [request_id]), None)

    def run_ids(self) -> set[str]:
        return {row[0] for row in self._read("SELECT run_id FROM runs")}

    def live(self) -> list[RunRow]:
        """Runs that wait or have processes, and faulted ones not yet settled, in queue order."""
        return self.with_status([*LIVE, RunStatus.FAULT])

    def with_status(self, statuses: Iterable[RunStatus]) -> list[RunRow]:
        wanted = list(statuses)
        return list(self._rows(f"status IN ({marks(wanted)}) ORDER BY {_QUEUE_ORDER}", wanted))

    def holders(self) -> list[QueuedRun]:
        """Runs that have what is reserved for them."""
        return list(self._queued(STARTED))

    def queue(self) -> Iterator[QueuedRun]:
        """The holders, then the runs that wait, in order; read one by one, because a queue may be long."""
        yield from self.holders()
        yield from self._queued([RunStatus.INIT])

    def ahead(self, run: RunRow) -> int:
        """How many runs wait before this one."""
        where = "status = ? AND (-priority, place, position) < (?, ?, ?)"
        values = [RunStatus.INIT, -run.priority, run.place, run.position]
        return self._number(f"count(*) FROM runs WHERE {where}", values)

    def count_waiting(self) -> int:
        return self._number("count(*) FROM runs WHERE status = ?", [RunStatus.INIT])

    def history(self, since_seq: int, run_id: str = "", limit: int = 1000) -> list[TransitionRow]:
        """State changes after `since_seq`, oldest first."""
        where, values = "seq > ?", list[Any]([since_seq])
        if run_id:
            where += " AND run_id = ?"
            values.append(run_id)
        query = f"SELECT * FROM transitions WHERE {where} ORDER BY seq LIMIT ?"
        return list(self._read(query, [*values, limit], TransitionRow))

    def _newest_history(self, run_id: str) -> list[TransitionRow]:
        query = "SELECT * FROM transitions WHERE run_id = ? ORDER BY seq DESC LIMIT ?"
        return list(self._read(query, [run_id, _MOST_RECORDED], TransitionRow))[::-1]

    def count(self, run_id: str, status: RunStatus) -> int:
        """How often a run came into a state."""
        return self._number("count(*) FROM transitions WHERE run_id = ? AND status = ?", [run_id, status])

    def last_seq(self) -> int:
        return self._number("coalesce(max(seq), 0) FROM transitions")

    def _number(self, query: str, values: Sequence[Any] = ()) -> int:
        ((number,),) = self._read(f"SELECT {query}", values)
        return int(number)

    def get_meta(self, key: str) -> str | None:
        return next((str(row[0]) for row in self._read("SELECT value FROM meta WHERE key = ?", [key])), None)

    def set_meta(self, key: str, value: str) -> None:
        with self._transaction("set_meta"):
            self._put_meta(key, value)

    def _put_meta(self, key: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [key, value])

    @contextmanager
    def _transaction(self, name: str) -> Iterator[None]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            reach(f"{name}.written")
            self._connection.execute("COMMIT")
            reach(f"{name}.committed")
        except BaseException as error:
            with suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error) and is_damage(error):
                raise self._damaged(error) from error
            if isinstance(error, sqlite3.OperationalError):
                told = StorageError(f"The run database cannot be written: {error}.")
                self.on_failure(told)
                raise told from error
            raise

    def _set(self, run_id: str, changes: dict[str, Any]) -> None:
        encoded = encode(changes)
        assignments = ", ".join(f"{name} = ?" for name in encoded)
        query = f"UPDATE runs SET {assignments} WHERE run_id = ?"
        self._connection.execute(query, [*encoded.values(), run_id])

    def _add_transition(
        self, run_id: str, status: RunStatus, outcome: Outcome | None, reason: str | None
    ) -> None:
        self._connection.execute(
            "INSERT INTO transitions (run_id, status, outcome, reason, at) VALUES (?, ?, ?, ?, ?)",
            [run_id, status, outcome, reason, time.time()],
        )

    def _rows(self, where: str, values: Sequence[Any]) -> Iterator[RunRow]:
        return self._read(f"SELECT * FROM runs WHERE {where}", values, RunRow)

    def _queued(self, statuses: Iterable[RunStatus]) -> Iterator[QueuedRun]:
        wanted = list(statuses)
        columns = ", ".join(one.name for one in fields(QueuedRun))
        query = f"SELECT {columns} FROM runs WHERE status IN ({marks(wanted)}) ORDER BY {_QUEUE_ORDER}"
        return self._read(query, wanted, QueuedRun)

    def _read(
        self, query: str, values: Sequence[Any] = (), kind: Callable[..., Any] | None = None
    ) -> Iterator[Any]:
        """What a query finds, one by one, as `kind`. A row that makes no sense is damage like any other."""
        try:
            for row in self._connection.execute(query, values):
                try:
                    found = row if kind is None else kind(**decode(row))
                except (ValueError, TypeError) as error:
                    raise self._damaged(error) from error
                yield found
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> StorageError:
        if not isinstance(error, sqlite3.Error) or is_damage(error):
            return self._damaged(error)
        return StorageError(f"The run database cannot be read: {error}.")

    def _damaged(self, error: Exception) -> DamagedError:
        self._damage = f"The run database is damaged: {error}."
        self.on_damage()
        return DamagedError(f"The run database is damaged and is being rebuilt ({error}): ask again.")
