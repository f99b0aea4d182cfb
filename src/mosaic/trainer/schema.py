"""The database's file and tables: opened, checked, brought to this release, set aside when it is damaged.

Each release that changes the tables adds a step; old files go through all they lack.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path

from mosaic.contract.errors import StorageError
from mosaic.trainer.storage import CHECKPOINT_PAGES

_FIRST = """
CREATE TABLE runs (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL UNIQUE,
    request_id TEXT NOT NULL UNIQUE,
    run_name TEXT NOT NULL,
    worker_type TEXT NOT NULL,
    config TEXT NOT NULL,
    tags TEXT NOT NULL,
    cpus INTEGER NOT NULL,
    status TEXT NOT NULL,
    outcome TEXT,
    reason TEXT,
    submitted_at REAL NOT NULL,
    started_at REAL,
    ended_at REAL,
    exit_code INTEGER,
    supervisor_pid INTEGER,
    supervisor_start INTEGER,
    boot_id TEXT,
    training_pid INTEGER,
    events_offset INTEGER NOT NULL DEFAULT 0,
    session_hash TEXT,
    worker TEXT NOT NULL DEFAULT '{}',
    headline TEXT NOT NULL DEFAULT '{}',
    stop_outcome TEXT,
    stop_reason TEXT
);
CREATE INDEX runs_by_status ON runs (status);
CREATE TABLE transitions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    status TEXT NOT NULL,
    outcome TEXT,
    reason TEXT,
    at REAL NOT NULL
);
CREATE INDEX transitions_by_run ON transitions (run_id, seq);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""

_QUEUE_AND_PAUSE = """
ALTER TABLE runs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN place REAL NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN memory_mb INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN gpus INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN gpus_mandatory INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN gpu_ids TEXT NOT NULL DEFAULT '[]';
ALTER TABLE runs ADD COLUMN pause_wanted INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET place = position, config = json_insert(config, '$.schedule.priority', 0);
"""

# Counts by state come from the index alone; gc goes through the runs by their end.
_LISTS = """
DROP INDEX runs_by_status;
CREATE INDEX runs_by_state ON runs (status, outcome);
CREATE INDEX runs_by_end ON runs (ended_at);
"""

_WORKING_TIME = """
ALTER TABLE runs ADD COLUMN worked_seconds REAL NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN works_since REAL;
"""

STEPS = (_FIRST, _QUEUE_AND_PAUSE, _LISTS, _WORKING_TIME)
VERSION = len(STEPS)


_TABLES = frozenset({"runs", "transitions", "meta"})
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class DamagedError(StorageError):
    """The run database cannot be read as one: it is rebuilt from the runs' own files."""


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error means that the file is no longer the database that it was."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF in _DAMAGE or code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return True
    # Cut short to nothing it is a sound database without tables; or we have closed it and found no other yet.
    return "no such table" in str(error) or "closed database" in str(error)


def open_database(path: Path, locking: str = "NORMAL") -> sqlite3.Connection:
    """A sound database with this release's tables; DamagedError when the file is not that."""
    try:
        connection = sqlite3.connect(path, isolation_level=None)
    except sqlite3.Error as error:
        raise StorageError(f"The run database {path} cannot be opened: {error}") from error
    connection.row_factory = sqlite3.Row
    try:
        connection.execute(f"PRAGMA locking_mode = {locking}")
        prepare(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute("PRAGMA temp_store = MEMORY")
        # Reading opens the journal, so that it is seen here whether that is possible.
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise DamagedError(f"The run database {path} is damaged: {' '.join(found.split())}.")
    except sqlite3.Error as error:
        connection.close()
        if is_damage(error):
            raise DamagedError(f"The run database {path} is damaged: {error}.") from error
        if isinstance(error, sqlite3.OperationalError) and locking == "NORMAL":
            # On a full disk there is no room for the memory that is shared with others: so it is not shared.
            return open_database(path, "EXCLUSIVE")
        raise StorageError(f"The run database {path} cannot be opened: {error}") from error
    except StorageError:
        connection.close()
        raise
    return connection


def is_empty(path: Path) -> bool:
    """Whether there is no database at all, or one without anything in it."""
    return not path.exists() or path.stat().st_size == 0


def database_files(path: Path) -> list[Path]:
    """The database and what SQLite keeps beside it."""
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]


def set_aside(path: Path) -> Path:
    """Give a damaged database another name, under which somebody may look into it."""
    aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    for old, new in zip(database_files(path), database_files(aside), strict=True):
        with contextlib.suppress(FileNotFoundError):
            old.replace(new)
    return aside


def remove_database(path: Path) -> None:
    for file in database_files(path):
        file.unlink(missing_ok=True)


def prepare(connection: sqlite3.Connection) -> None:
    """Bring a database to this release's tables, as one step; refuse one that a newer release has written."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == VERSION:
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if not tables >= _TABLES:
            raise DamagedError("The run database has lost tables.")
        return
    if version > VERSION:
        raise StorageError(
            f"The run database has version {version}, this release knows {VERSION}: use the newer release."
        )
    script = "".join(STEPS[version:])
    try:
        connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {VERSION}; COMMIT;")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
