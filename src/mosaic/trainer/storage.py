"""Whether the var folder can be written, and what was said when it could not."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

RETRY_SECONDS = 2.0
"""How long the daemon waits before it tries again to write what it could not."""
_LOW_BYTES = 200 * 2**20
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


def is_full(error: BaseException) -> bool:
    """Whether an error means that the disk takes no more, which may pass."""
    return isinstance(error, OSError) and error.errno in _FULL


class Storage:
    """The daemon's own view of its disk."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._failed: str | None = None

    def failed(self, error: Exception) -> None:
        """Something could not be written."""
        self._failed = str(error)

    def worked(self) -> None:
        self._failed = None

    def problems(self) -> list[str]:
        """What a person should know, in words."""
        found = []
        if self._failed:
            found.append(f"Writing under {self._root} fails, runs wait until it works again: {self._failed}")
        free = shutil.disk_usage(self._root).free
        if free < _LOW_BYTES:
            found.append(f"The disk of {self._root} is nearly full: {free // 2**20} MB are left.")
        return found
