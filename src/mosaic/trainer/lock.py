"""The lock of a var folder: one daemon holds it, and says in it who it is."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mosaic.contract.atomic import part
from mosaic.contract.connection import LockHolder, folder_identity
from mosaic.contract.paths import VarPaths
from mosaic.contract.process import ProcessIdentity, boot_id

_PATIENCE_SECONDS = 2.0


class DaemonLock:
    """Held for life, with what we say of ourselves in it.

    Locked are the file, which has the words and which earlier releases know, and its folder, which nobody
    can remove without removing the runs.
    """

    def __init__(self, paths: VarPaths, folder: int, file: int) -> None:
        self._paths = paths
        self._folder = folder
        self._file = file
        identity, own = folder_identity(paths.trainer), ProcessIdentity.of(os.getpid())
        origin = _origin(LockHolder.read(paths.daemon_lock), identity)
        start = own.start if own is not None else 0
        self.holder = LockHolder(os.getpid(), start, boot_id(), identity, str(paths.root), copied_from=origin)
        self.tell()

    def tell(self, **changes: Any) -> None:
        """Say something else of ourselves. A full disk is not a reason to end."""
        self.holder = replace(self.holder, **changes)
        with contextlib.suppress(OSError):
            self.holder.write(self._file)

    def keep(self) -> None:
        """Make the file again when somebody has removed it."""
        with contextlib.suppress(OSError):
            if os.fstat(self._file).st_nlink:
                return
            made = _locked(self._paths.daemon_lock, os.O_RDWR | os.O_CREAT)
            if made is not None:
                os.close(self._file)
                self._file = made
                self.tell()

    @property
    def at_home(self) -> bool:
        """Whether the path still leads to the folder that we serve."""
        return folder_identity(self._paths.trainer) == self.holder.folder

    def close(self) -> None:
        os.close(self._file)
        os.close(self._folder)


@contextmanager
def single_daemon(paths: VarPaths) -> Iterator[DaemonLock | None]:
    """The lock of the var folder, held until the block ends; None when another daemon has it."""
    # Open for as long as we live, so that no other folder gets its inode meanwhile.
    folder = _locked(paths.trainer, os.O_RDONLY | os.O_DIRECTORY)
    if folder is None:
        yield None
        return
    # Shared with a copy by hard links it would be the other's lock too.
    part(paths.daemon_lock)
    file = _locked(paths.daemon_lock, os.O_RDWR | os.O_CREAT)
    if file is None:
        os.close(folder)
        yield None
        return
    lock = DaemonLock(paths, folder, file)
    try:
        yield lock
    finally:
        lock.close()


def _locked(path: Path, flags: int) -> int | None:
    """A descriptor with the lock of a file or folder; None when somebody else has it."""
    descriptor = os.open(path, flags, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        # Some network file systems lock no folders.
        if not flags & os.O_DIRECTORY:
            os.close(descriptor)
            raise
    return descriptor


def _origin(earlier: LockHolder | None, identity: str) -> str:
    """The var folder of which ours is a copy. Where that is gone, ours was moved or restored."""
    if earlier is None:
        return ""
    if earlier.folder == identity:
        return earlier.copied_from
    original = VarPaths(Path(earlier.root)).trainer
    return earlier.root if folder_identity(original) == earlier.folder else ""


def who_holds(paths: VarPaths) -> str:
    """The other daemon of the var folder, in a sentence."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    # One that has just got the lock has not said yet who it is and where it listens.
    while True:
        holder = LockHolder.living(paths.daemon_lock)
        if (holder is not None and holder.address) or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    if holder is None:
        return f"Another process holds {paths.daemon_lock}: a daemon of this folder runs already."
    place = f" at {holder.address}" if holder.address else ""
    return f"The daemon of {paths.root} runs already: pid {holder.pid}{place}."
