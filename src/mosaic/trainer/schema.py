"""The database's tables. Each release that changes them adds a step; old files go through all they lack."""

from __future__ import annotations

import sqlite3

from mosaic.contract.errors import StorageError

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

STEPS = (_FIRST, _QUEUE_AND_PAUSE)
VERSION = len(STEPS)


def prepare(connection: sqlite3.Connection) -> None:
    """Bring a database to this release's tables, as one step; refuse one that a newer release has written."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == VERSION:
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
