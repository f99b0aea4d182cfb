"""One log of a run, followed while somebody reads it."""

from __future__ import annotations

import threading

from PySide6.QtCore import QObject, Signal

from gym_gui.models.log_lines import LogLines, tail_offset
from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.follower import Follower
from mosaic.client import Client
from mosaic.contract.paths import VarPaths

STREAMS = {"stdout": "Output", "stderr": "Errors", "events": "Events", "supervisor": "Supervisor"}
"""The logs of a run, and what they are called."""


class LogStream(QObject):
    """Lines as they are written. `news` comes when there is something to `take`, once until it was taken."""

    news = Signal()

    def __init__(self, link: DaemonLink, run_id: str, stream: str) -> None:
        super().__init__()
        self.stream = stream
        self._run_id = run_id
        self._lock = threading.Lock()
        self._lines = LogLines()
        self._taken = 0
        self._told = False
        self._offset: int | None = None
        self._cut = False
        self._follower = Follower(link.var, self._follow, f"{stream} of {run_id}")
        self._follower.start()

    @property
    def shortened(self) -> bool:
        """Whether the beginning of the log is not shown."""
        return self._cut or self._lines.first > 0

    def take(self, most: int) -> tuple[list[str], bool]:
        """The oldest lines that were not taken yet, and whether there are more."""
        with self._lock:
            fresh = self._lines.since(self._taken)
            skipped = max(0, self._lines.first - self._taken)
            part = fresh[:most]
            self._taken += skipped + len(part)
            more = len(part) < len(fresh)
            self._told = more
        return part, more

    def count(self, sought: str) -> int:
        """How many lines hold a text."""
        with self._lock:
            return sum(1 for _ in self._lines.matches(sought))

    def __len__(self) -> int:
        return self._lines.end

    def close(self) -> None:
        self._follower.close()

    def _follow(self, client: Client) -> None:
        if self._offset is None:
            self._offset = tail_offset(_size(client.paths, self._run_id, self.stream))
            self._cut = self._offset > 0
        skips = self._cut and not len(self._lines)
        for data in client.logs(self._run_id, self.stream, follow=True, offset=self._offset):
            self._offset += len(data)
            if skips:
                # The first line is only the end of one.
                _, found, data = data.partition(b"\n")
                skips = not found
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        with self._lock:
            self._lines.feed(data)
            tell = not self._told and self._lines.end > self._taken
            self._told = self._told or tell
        if tell:
            self._follower.tell(self.news.emit)


def _size(paths: VarPaths, run_id: str, stream: str) -> int:
    """How long a log is; 0 when that cannot be seen from here."""
    try:
        return paths.run_logs(run_id)[stream].stat().st_size
    except OSError:
        return 0
