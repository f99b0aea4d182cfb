"""Whether the var folder can be written, what was said when it could not, and the room kept for that day."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from pathlib import Path

from mosaic.contract import atomic
from mosaic.contract.atomic import keep_spare, sync_folder

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
