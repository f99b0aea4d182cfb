"""Where a study is kept: a file of its sweep's, or a database. All of this package gets Optuna from here."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import MosaicError, StorageError, UserError
from mosaic.contract.secrets import referred
from mosaic.sweeps.spec import JOURNAL, SQLITE

__all__ = [
    "DATABASE",
    "copy_study",
    "holds_studies",
    "mend_journal",
    "open_storage",
    "optuna",
    "sentence",
    "shown_storage",
    "told_of",
]

try:
    import optuna
    from optuna.storages.journal import JournalFileBackend
    from optuna.storages.journal._file import BaseJournalFileLock
except ImportError as error:
    raise UserError("Sweeps need Optuna: `./mosaic extras install sweeps`.") from error

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
warnings.filterwarnings("ignore", category=UserWarning, module="optuna")

DATABASE = "optuna_db"
"""The study's file in the sweep's folder."""
_DRIVERS = {"postgresql": "psycopg", "mysql": "pymysql", "mariadb": "pymysql"}
"""Those that our optional set brings, where a URL names none."""


def sentence(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith((".", "?", "!")) else f"{text}."


class _FlockLock(BaseJournalFileLock):
    """A lock that ends with its process, where Optuna's own would stand for half a minute after a kill."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}.flock"
        self._descriptor = -1

    def acquire(self) -> bool:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        return True

    def release(self) -> None:
        os.close(self._descriptor)


def mend_journal(path: Path) -> None:
    """Cut off the last line of a journal that a crash has left without its end: it never happened."""
    if not path.exists():
        return
    lock = _FlockLock(str(path))
    lock.acquire()
    try:
        with path.open("rb+") as file:
            data = file.read()
            if data and not data.endswith(b"\n"):
                file.truncate(data.rfind(b"\n") + 1)
    finally:
        lock.release()


def _address(where: str, environment: Mapping[str, str]) -> str:
    """A storage as it is named, or what the variable says that it names."""
    variable = referred(where)
    if variable is None:
        return where
    found = environment.get(variable, "")
    if not found:
        raise UserError(f"The storage's URL is in the variable {variable}, which is not set here: set it.")
    return found


def open_storage(where: str, folder: Path | None, environment: Mapping[str, str]) -> Any:
    """The storage that a sweep names, or that lies at a path or URL; a StorageError tells what is wrong."""
    where = _address(where, environment)
    shown = shown_storage(where)
    with told_of(shown):
        if where in (JOURNAL, SQLITE):
            assert folder is not None
            path = folder / DATABASE
            if where == SQLITE:
                return _relational(f"sqlite:///{path}")
            mend_journal(path)
            return _journal(path)
        if "://" in where:
            return _relational(where)
        path = Path(where).expanduser()
        if not path.is_file():
            raise UserError(f"There is no study in {where}: it is not a file.")
        with path.open("rb") as file:
            is_sqlite = file.read(15) == b"SQLite format 3"
        return _relational(f"sqlite:///{path.resolve()}") if is_sqlite else _journal(path)


def holds_studies(where: str, environment: Mapping[str, str]) -> bool:
    """Whether there is anything of Optuna's at a URL; nothing is made there, as opening it would.

    A StorageError tells why it cannot be used.
    """
    url = _address(where, environment)
    with told_of(shown_storage(url)):
        import sqlalchemy

        address = sqlalchemy.make_url(_with_driver(url))
        if address.drivername.startswith("sqlite") and address.database:
            path = Path(address.database)
            if not path.exists():
                if not path.parent.is_dir():
                    raise StorageError(
                        f"The storage {shown_storage(url)} cannot be used: {path.parent} is not a folder."
                    )
                return False
        engine = sqlalchemy.create_engine(address)
        try:
            with engine.connect() as connection:
                return bool(sqlalchemy.inspect(connection).has_table("studies"))
        finally:
            engine.dispose()


def _journal(path: Path) -> Any:
    return optuna.storages.JournalStorage(JournalFileBackend(str(path), _FlockLock(str(path))))


def _with_driver(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    dialect, _, driver = scheme.partition("+")
    return f"{dialect}+{_DRIVERS[dialect]}{separator}{rest}" if dialect in _DRIVERS and not driver else url


def _relational(url: str) -> Any:
    how: dict[str, Any] = {} if url.startswith("sqlite") else {"engine_kwargs": {"pool_pre_ping": True}}
    return optuna.storages.RDBStorage(_with_driver(url), **how)


def shown_storage(where: str) -> str:
    """A storage as it may be told: without a password."""
    before, separator, after = where.partition("://")
    return f"{before}{separator}{after.rpartition('@')[2]}" if separator else where


@contextmanager
def told_of(shown: str) -> Iterator[None]:
    """Errors of a storage as sentences that name it, and no password."""
    try:
        yield
    except MosaicError:
        raise
    except ModuleNotFoundError as error:
        raise UserError(
            f"The storage {shown} needs the driver {error.name}: `./mosaic extras install sweeps_sql`."
        ) from error
    except OSError as error:
        raise StorageError(f"The storage {shown} cannot be used ({error.strerror}): correct that.") from error
    except Exception as error:
        # Imported where a database is used, and here only then: it takes its time.
        if "sqlalchemy" in sys.modules:
            _raise_told(error, shown)
        if isinstance(error, ValueError | KeyError | TypeError):
            reason = sentence(error)
            raise StorageError(
                f"The storage {shown} is not one of Optuna's, or is damaged: {reason}"
            ) from error
        raise


def _raise_told(error: Exception, shown: str) -> None:
    """What is told of an error of a database; returns where that is nothing special."""
    import sqlalchemy.exc

    if isinstance(error, sqlalchemy.exc.ArgumentError):
        raise UserError(f"The storage '{shown}' is not a URL of a database: {sentence(error)}") from error
    if isinstance(error, sqlalchemy.exc.SQLAlchemyError):
        reason = sentence(getattr(error, "orig", None) or error)
        raise StorageError(f"The storage {shown} cannot be used: {reason}") from error
    if isinstance(error, RuntimeError):
        raise StorageError(
            f"The storage {shown} was made by another version of Optuna than {optuna.__version__}: "
            "`optuna storage upgrade --storage URL` upgrades it, or choose another storage."
        ) from error


def copy_study(kind: str, source: Path, copy: Path) -> None:
    """The study of another sweep in a file of our own, whole or not at all."""
    if copy.exists():
        return
    if not source.exists():
        raise StorageError(f"There is no study in {source.parent}: it was removed, or never created.")
    if kind == JOURNAL:
        data = source.read_bytes()
        write_atomic(copy, data[: data.rfind(b"\n") + 1])
        return
    part = copy.with_name(f".{copy.name}.part")
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(part)) as new:
        old.backup(new)
    part.replace(copy)
