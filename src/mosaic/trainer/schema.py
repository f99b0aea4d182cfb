"""The database's tables, with a version that old files carry."""

from __future__ import annotations

import sqlite3

from mosaic.contract.errors import StorageError

VERSION = 1

_TABLES = """
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


def prepare(connection: sqlite3.Connection) -> None:
    """Make the tables of a new database; refuse one that a newer release has written."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == VERSION:
        return
    if version > VERSION:
        raise StorageError(
            f"The run database has version {version}, this release knows {VERSION}: use the newer release."
        )
    connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
