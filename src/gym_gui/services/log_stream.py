"""One log of a run, followed while somebody reads it: its newest lines, in bounded memory."""

from __future__ import annotations

import codecs
import re
import threading
from collections import deque
from itertools import islice
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.tasks import Follower
from mosaic.client import Client

MOST_LINES = 20_000
LONGEST_LINE = 4_000
TAIL_BYTES = 4_000_000
"""Of a log that is longer only the end is read."""

# Colours and cursor movements of a terminal.
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), 127])
STREAMS = {"stdout": "Output", "stderr": "Errors", "events": "Events", "supervisor": "Supervisor"}
"""The logs of a run, and what they are called."""


class LogLines:
    """Lines made from bytes as they come. A line that is written over with `\\r` is shown as it ends up."""

    def __init__(self, most: int = MOST_LINES) -> None:
        self._lines: deque[str] = deque(maxlen=most)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._open = ""
        self.first = 0
        """The number of the oldest line that is kept."""

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def end(self) -> int:
        """One more than the number of the newest whole line."""
        return self.first + len(self._lines)

    def feed(self, data: bytes) -> None:
        """Take in what was read."""
        text = self._open + self._decoder.decode(data)
        *whole, self._open = text.replace("\r\n", "\n").split("\n")
        if len(self._open) > LONGEST_LINE:
            # A progress bar rewrites one line for ever; only what it shows last counts.
            self._open = self._open[-LONGEST_LINE:]
        for line in whole:
            if len(self._lines) == self._lines.maxlen:
                self.first += 1
            self._lines.append(_clean(line))

    def since(self, number: int) -> list[str]:
        """The whole lines from `number` on, as far as they are kept."""
        return list(islice(self._lines, max(0, number - self.first), None))

    def count(self, sought: str) -> int:
        """How many lines hold a text, in whatever case."""
        wanted = sought.casefold()
        return sum(wanted in line.casefold() for line in self._lines)


def _clean(line: str) -> str:
    shown = line.rstrip("\r").rpartition("\r")[2] if "\r" in line else line
    plain = _ESCAPES.sub("", shown).translate(_CONTROLS)
    return plain if len(plain) <= LONGEST_LINE else plain[:LONGEST_LINE] + " …"


def tail_offset(path: Path) -> int:
    """From which byte on a log is read; 0 when its length cannot be seen from here."""
    try:
        return max(0, path.stat().st_size - TAIL_BYTES)
    except OSError:
        return 0


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
            return self._lines.count(sought)

    def __len__(self) -> int:
        return self._lines.end

    def close(self) -> None:
        self._follower.close()

    def _follow(self, client: Client) -> None:
        if self._offset is None:
            self._offset = tail_offset(client.paths.run_logs(self._run_id)[self.stream])
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
