"""The newest lines of a log, in bounded memory."""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Iterator
from itertools import islice

MOST_LINES = 20_000
LONGEST_LINE = 4_000
TAIL_BYTES = 4_000_000
"""Of a log that is longer only the end is read."""

# Colours and cursor movements of a terminal.
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), 127])


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

    @property
    def unfinished(self) -> str:
        """What stands after the last line's end."""
        return _clean(self._open)

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

    def matches(self, sought: str) -> Iterator[tuple[int, str]]:
        """The lines that hold a text, in whatever case, with their numbers."""
        wanted = sought.casefold()
        for index, line in enumerate(self._lines):
            if wanted in line.casefold():
                yield self.first + index, line


def _clean(line: str) -> str:
    shown = line.rstrip("\r").rpartition("\r")[2] if "\r" in line else line
    plain = _ESCAPES.sub("", shown).translate(_CONTROLS)
    return plain if len(plain) <= LONGEST_LINE else plain[:LONGEST_LINE] + " …"


def tail_offset(size: int) -> int:
    """From which byte on a log of `size` bytes is read."""
    return max(0, size - TAIL_BYTES)
