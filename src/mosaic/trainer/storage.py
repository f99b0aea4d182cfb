"""Whether the var folder can be written, and what was said when it could not."""

from __future__ import annotations

import errno
import shutil
import tempfile
from pathlib import Path

RETRY_SECONDS = 2.0
"""How long the daemon waits before it tries again to write what it could not."""
_PROBE_BYTES = 64 * 2**10
_LOW_BYTES = 200 * 2**20
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


def is_full(error: BaseException) -> bool:
    """Whether an error means that the disk takes no more, which may pass."""
    return isinstance(error, OSError) and error.errno in _FULL


class Storage:
    """The daemon's own view of its disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._failed: str | None = None

    def failed(self, error: Exception) -> None:
        """Something could not be written."""
        self._failed = str(error)

    def problems(self) -> list[str]:
        """What a person should know, in words."""
        found = []
        if self._failed and self._can_write():
            self._failed = None
        if self._failed:
            found.append(
                f"Writing under {self._folder} fails, runs wait until it works again: {self._failed}"
            )
        free = shutil.disk_usage(self._folder).free
        if free < _LOW_BYTES:
            found.append(f"The disk of {self._folder} is nearly full: {free // 2**20} MB are left.")
        return found

    def _can_write(self) -> bool:
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                file.write(bytes(_PROBE_BYTES))
        except OSError:
            return False
        return True
