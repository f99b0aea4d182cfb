"""Writing files that another process reads: whole or not at all, and some of them on a full disk too."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

SPARE_BYTES = 64 * 2**10
_BLOCK_BYTES = 512
"""The unit in which `stat` tells what a file occupies."""
_SPACE_SECONDS = 1.0

Result = TypeVar("Result")


def is_full(error: BaseException) -> bool:
    """Whether an error means that the disk takes no more, which passes when somebody makes room."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def insist(
    write: Callable[[], Result],
    may_wait: Callable[[OSError], bool],
    again: Callable[[], Result] | None = None,
) -> Result:
    """Do `write`; when it fails, do it `again` (else `write`) after a while, if `may_wait` is for it."""
    while True:
        try:
            return write()
        except OSError as error:
            if not may_wait(error):
                raise
        write = again or write
        time.sleep(_SPACE_SECONDS)


def write_atomic(path: Path, data: bytes, mode: int = 0o644, sync: bool = True) -> None:
    """Replace `path` by `data`; after a crash at any moment the old or the new file is there.

    Without `sync` that holds for a crash of ours, not for one of the machine.
    """
    try:
        _write_anew(path, data, mode, sync)
    except OSError as error:
        if not is_full(error) or not _write_to_spare(path, data, mode):
            raise
    if sync:
        sync_folder(path.parent)


def write_json(path: Path, value: Any, mode: int = 0o644) -> None:
    """Write `value` as readable JSON, atomically."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_atomic(path, (text + "\n").encode(), mode)


def part(path: Path) -> None:
    """Give a file that is shared by hard links a place of its own, before it is written in its place."""
    with contextlib.suppress(FileNotFoundError):
        if path.is_file() and path.stat().st_nlink > 1:
            copy = shutil.copyfile(path, path.with_name(f".{path.name}.parted"))
            shutil.copymode(path, copy)
            copy.replace(path)


def sync_folder(folder: Path) -> None:
    """Make renames and new names in `folder` survive a power loss."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def keep_spare(path: Path, size: int = SPARE_BYTES) -> Path:
    """Take the room that `path` will need beforehand, if there is some now; gives the file that holds it.

    The next `write_atomic` of `path` that finds the disk full becomes that file: nobody can be faster.
    """
    spare = path.with_name(f".{path.name}.spare")
    with contextlib.suppress(OSError):
        handle = os.open(spare, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(handle, 0, size)
        except OSError:
            # A part of it would help nobody, and may be what another process waits for.
            spare.unlink()
        finally:
            os.close(handle)
    return spare


def drop_spare(path: Path) -> None:
    """Give the room back."""
    path.with_name(f".{path.name}.spare").unlink(missing_ok=True)


def remove_to_spare(path: Path) -> None:
    """Remove `path`; the room that it had becomes that of the next one, if none is kept for it."""
    spare = path.with_name(f".{path.name}.spare")
    if spare.exists():
        path.unlink()
    else:
        path.replace(spare)


def _write_anew(path: Path, data: bytes, mode: int, sync: bool) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            if sync:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _write_to_spare(path: Path, data: bytes, mode: int) -> bool:
    spare = path.with_name(f".{path.name}.spare")
    with contextlib.suppress(OSError):
        handle = os.open(spare, os.O_RDWR | os.O_CLOEXEC)
        try:
            if os.fstat(handle).st_blocks * _BLOCK_BYTES < len(data):
                return False
            os.fchmod(handle, mode)
            os.pwrite(handle, data, 0)
            os.ftruncate(handle, len(data))
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(spare, path)
        return True
    return False
