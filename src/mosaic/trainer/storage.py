"""Whether the var folder can be written, what was said when it could not, and the room kept for that day."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path

from mosaic.contract import atomic
from mosaic.contract.atomic import keep_spare, sync_folder
from mosaic.contract.errors import StorageError

RETRY_SECONDS = 2.0
"""How long the daemon waits before it tries again to write what it could not."""
CHECKPOINT_PAGES = 250
"""So many changed pages wait in the database's journal before they go to the database."""
_JOURNAL_BYTES = 2 * 2**20
"""Twice what those take: on a full disk runs are still ended and removed for a long time."""
_WAL_DATABASE = b"\x02\x02"
_WAL_HEADER_BYTES = 32
_PROBE_BYTES = 64 * 2**10
_LOW_BYTES = 200 * 2**20


def is_full(error: BaseException) -> bool:
    """Whether an error means that the disk takes no more, which may pass."""
    return atomic.is_full(error) or (isinstance(error, OSError) and error.errno == errno.EROFS)


class Storage:
    """The daemon's own view of its disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._failed: str | None = None

    def failed(self, error: Exception) -> None:
        """Something could not be written."""
        self._failed = str(error)

    def is_full(self) -> bool:
        """Whether nothing more can be written now."""
        return shutil.disk_usage(self._folder).free < _LOW_BYTES and not self._can_write()

    def problems(self) -> list[str]:
        """What a person should know, in words."""
        found = []
        free = shutil.disk_usage(self._folder).free
        if (self._failed or free < _LOW_BYTES) and self._can_write():
            self._failed = None
        if self._failed:
            found.append(
                f"Writing under {self._folder} fails, runs wait until it works again: {self._failed}"
            )
        if free < _LOW_BYTES:
            found.append(f"The disk of {self._folder} is nearly full: {free // 2**20} MB are left.")
        return found

    def _can_write(self) -> bool:
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                file.write(bytes(_PROBE_BYTES))
                file.flush()
        except OSError as error:
            self._failed = self._failed or str(error)
            return False
        return True


class JournalRoom:
    """Room for the journal of the database (SQLite's `-wal` file), which is needed to change anything in it.

    While the daemon runs, the journal itself has all the room; in between a spare file keeps it, and
    becomes the next journal. So it is never free for others to take, not even for a moment.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._journal = database.with_name(f"{database.name}-wal")
        self._spare = self._journal.with_name(f".{self._journal.name}.spare")

    def lend(self) -> None:
        """Before the database is opened: give the spare file to a journal that is to be made."""
        with contextlib.suppress(OSError), self._database.open("rb") as file:
            file.seek(18)
            if file.read(2) != _WAL_DATABASE or self._has_journal():
                return
            with self._spare.open("rb+") as spare:
                # It may hold what was written long ago: without its header that is nothing.
                spare.write(bytes(_WAL_HEADER_BYTES))
                spare.flush()
                os.fsync(spare.fileno())
            self._spare.replace(self._journal)
            sync_folder(self._journal.parent)

    def take(self) -> None:
        """While the database is open: as much as the journal will need, if that is to be had."""
        with contextlib.suppress(OSError), self._journal.open("rb+") as journal:
            os.posix_fallocate(journal.fileno(), 0, _JOURNAL_BYTES)

    def save(self) -> None:
        """Before the database is closed, which removes the journal: keep its room by another name."""
        with contextlib.suppress(OSError):
            self._spare.unlink(missing_ok=True)
            self._spare.hardlink_to(self._journal)

    def settle(self) -> None:
        """After the database was closed: keep no more than is needed, and no second name of a journal."""
        with contextlib.suppress(OSError):
            if self._has_journal():
                self._spare.unlink(missing_ok=True)
                return
            if self._spare.exists() and self._spare.stat().st_size > _JOURNAL_BYTES:
                os.truncate(self._spare, _JOURNAL_BYTES)
            keep_spare(self._journal, _JOURNAL_BYTES)

    def _has_journal(self) -> bool:
        return self._journal.exists() and self._journal.stat().st_size > 0


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

    # Rebuilt in a moment: the client asks again.
    status = "UNAVAILABLE"


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
