"""The run registry: every run and every state change, in SQLite. The only writer of a run's status."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mosaic.contract.errors import ConflictError, NotFoundError, StorageError, UserError
from mosaic.contract.fsm import LIVE, STARTED, Outcome, RunStatus, check_transition
from mosaic.contract.run_config import TrainRunConfig
from mosaic.trainer.crash_points import reach
from mosaic.trainer.rows import JSON_COLUMNS, QueuedRun, RunRow, TransitionRow
from mosaic.trainer.schema import prepare

_QUEUE_ORDER = "priority DESC, place, position"


class Registry:
    """All runs of one var folder. Used from one thread."""

    def __init__(self, path: Path) -> None:
        self.on_failure: Callable[[Exception], None] = lambda error: None
        """Told of everything that could not be written."""
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        try:
            prepare(self._connection)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
        except (sqlite3.Error, StorageError) as error:
            self._connection.close()
            raise StorageError(f"The run database {path} cannot be opened: {error}") from error

    def close(self) -> None:
        self._connection.close()

    def add(self, run_id: str, request_id: str, config: TrainRunConfig, reason: str) -> RunRow:
        """Store a new run in state INIT."""
        fields = {
            "run_id": run_id,
            "request_id": request_id,
            "run_name": config.run_name,
            "worker_type": config.metadata.worker.type,
            "config": json.dumps(config.as_json()),
            "tags": json.dumps(config.tags),
            "cpus": config.resources.cpus,
            "memory_mb": config.resources.memory_mb or 0,
            "gpus": config.resources.gpus.requested,
            "gpus_mandatory": config.resources.gpus.mandatory,
            "priority": config.schedule.priority,
            "status": RunStatus.INIT,
            "reason": reason,
            "submitted_at": time.time(),
        }
        check_transition(run_id, None, RunStatus.INIT, None)
        names, marks = ", ".join(fields), _marks(list(fields))
        with self._transaction("add"):
            self._connection.execute(f"INSERT INTO runs ({names}) VALUES ({marks})", list(fields.values()))
            self._connection.execute("UPDATE runs SET place = position WHERE run_id = ?", [run_id])
            self._add_transition(run_id, RunStatus.INIT, None, reason)
        return self.get(run_id)

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
        return self.get(run_id)

    def update(self, run_id: str, **changes: Any) -> None:
        """Change columns that are not the state."""
        with self._transaction("update"):
            self._set(run_id, changes)

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

    def get(self, run_id: str) -> RunRow:
        rows = list(self._rows("run_id = ?", [run_id]))
        if not rows:
            raise NotFoundError(f"There is no run '{run_id}': `mosaic runs` lists them.")
        return rows[0]

    def known(self, run_ids: Iterable[str]) -> Iterator[RunRow]:
        """Those of these runs that there still are."""
        for run_id in run_ids:
            yield from self._rows("run_id = ?", [run_id])

    def resolve(self, prefix: str) -> RunRow:
        """The run whose id begins with `prefix`, when exactly one does."""
        if not prefix.isalnum():
            raise UserError(f"'{prefix}' is not a run id: `mosaic runs` lists them.")
        rows = list(self._rows("run_id LIKE ? || '%' LIMIT 2", [prefix.upper()]))
        if len(rows) > 1:
            raise UserError(f"'{prefix}' is the beginning of more than one run id: give more of it.")
        return rows[0] if rows else self.get(prefix)

    def by_request(self, request_id: str) -> RunRow | None:
        return next(self._rows("request_id = ?", [request_id]), None)

    def run_ids(self) -> set[str]:
        return {row[0] for row in self._connection.execute("SELECT run_id FROM runs")}

    def live(self) -> list[RunRow]:
        """Runs that wait or have processes, and faulted ones not yet settled, in queue order."""
        return self.with_status([*LIVE, RunStatus.FAULT])

    def with_status(self, statuses: Iterable[RunStatus]) -> list[RunRow]:
        wanted = list(statuses)
        return list(self._rows(f"status IN ({_marks(wanted)}) ORDER BY {_QUEUE_ORDER}", wanted))

    def holders(self) -> list[QueuedRun]:
        """Runs that have what is reserved for them."""
        return list(self._queued(STARTED))

    def queue(self) -> Iterator[QueuedRun]:
        """The holders, then the runs that wait, in order; read one by one, because a queue may be long."""
        yield from self.holders()
        yield from self._queued([RunStatus.INIT])

    def ahead(self, run: RunRow) -> int:
        """How many runs wait before this one."""
        query = "SELECT count(*) FROM runs WHERE status = ? AND (-priority, place, position) < (?, ?, ?)"
        values = [RunStatus.INIT, -run.priority, run.place, run.position]
        (number,) = self._connection.execute(query, values).fetchone()
        return int(number)

    def count_waiting(self) -> int:
        query = "SELECT count(*) FROM runs WHERE status = ?"
        (number,) = self._connection.execute(query, [RunStatus.INIT]).fetchone()
        return int(number)

    def find(self, statuses: Sequence[str], tags: Sequence[str], limit: int) -> list[RunRow]:
        """Runs, newest first, with any of `statuses` and all of `tags`."""
        where, values = "1", list[Any]()
        if statuses:
            where += f" AND status IN ({_marks(statuses)})"
            values += statuses
        for tag in tags:
            where += " AND EXISTS (SELECT 1 FROM json_each(runs.tags) WHERE json_each.value = ?)"
            values.append(tag)
        return list(self._rows(f"{where} ORDER BY position DESC LIMIT ?", [*values, limit or -1]))

    def history(self, since_seq: int, run_id: str = "", limit: int = 1000) -> list[TransitionRow]:
        """State changes after `since_seq`, oldest first."""
        where, values = "seq > ?", list[Any]([since_seq])
        if run_id:
            where += " AND run_id = ?"
            values.append(run_id)
        query = f"SELECT * FROM transitions WHERE {where} ORDER BY seq LIMIT ?"
        return [TransitionRow.from_sql(row) for row in self._connection.execute(query, [*values, limit])]

    def count(self, run_id: str, status: RunStatus) -> int:
        """How often a run came into a state."""
        query = "SELECT count(*) FROM transitions WHERE run_id = ? AND status = ?"
        (number,) = self._connection.execute(query, [run_id, status]).fetchone()
        return int(number)

    def last_seq(self) -> int:
        (seq,) = self._connection.execute("SELECT coalesce(max(seq), 0) FROM transitions").fetchone()
        return int(seq)

    def get_meta(self, key: str) -> str | None:
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", [key]).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        with self._transaction("set_meta"):
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
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError):
                told = StorageError(f"The run database cannot be written: {error}.")
                self.on_failure(told)
                raise told from error
            raise

    def _set(self, run_id: str, changes: dict[str, Any]) -> None:
        encoded = {
            name: json.dumps(value) if name in JSON_COLUMNS else value for name, value in changes.items()
        }
        assignments = ", ".join(f"{name} = ?" for name in encoded)
        self._connection.execute(
            f"UPDATE runs SET {assignments} WHERE run_id = ?", [*encoded.values(), run_id]
        )

    def _add_transition(
        self, run_id: str, status: RunStatus, outcome: Outcome | None, reason: str | None
    ) -> None:
        self._connection.execute(
            "INSERT INTO transitions (run_id, status, outcome, reason, at) VALUES (?, ?, ?, ?, ?)",
            [run_id, status, outcome, reason, time.time()],
        )

    def _rows(self, where: str, values: Sequence[Any]) -> Iterator[RunRow]:
        for row in self._connection.execute(f"SELECT * FROM runs WHERE {where}", values):
            yield RunRow.from_sql(row)

    def _queued(self, statuses: Iterable[RunStatus]) -> Iterator[QueuedRun]:
        wanted = list(statuses)
        query = f"SELECT {QueuedRun.columns()} FROM runs WHERE status IN ({_marks(wanted)})"
        for row in self._connection.execute(f"{query} ORDER BY {_QUEUE_ORDER}", wanted):
            yield QueuedRun.from_columns(row)


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
