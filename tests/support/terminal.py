"""Commands at a terminal of their own."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 60.0
SIZE = {"COLUMNS": "80", "LINES": "24"}


class Terminal:
    """A command, what it has shown so far, and the keys."""

    def __init__(self, process: subprocess.Popen[bytes], master: int, slave: int) -> None:
        self.process, self._master, self._slave, self.seen = process, master, slave, ""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def read_until(self, pattern: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not re.search(pattern, self.seen):
            assert time.monotonic() < deadline, self.seen[-2000:]
            self._read(0.1)

    def wait(self) -> int:
        """The exit code; what is shown until then is read, so that the command never waits for it."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.seen[-2000:]
            self._read(0.05)
        while self._read(0.0):
            pass
        return self.process.wait()

    def resize(self, columns: int) -> None:
        """Make the terminal narrower or wider; what was shown before is forgotten."""
        termios.tcsetwinsize(self._master, (24, columns))
        self.seen = ""

    def mode(self) -> list[Any]:
        """How the terminal treats what is typed."""
        return termios.tcgetattr(self._slave)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        self.seen += os.read(self._master, 65536).decode(errors="replace")
        return True


@contextmanager
def at_terminal(*argv: str, may_change: bool = False) -> Iterator[Terminal]:
    """Run `mosaic …` at a terminal of 80 columns and 24 rows, which `may_change` later."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(master, (24, 80))
    # A size in the environment, as readline leaves it there for children, would outweigh the terminal's own.
    env: dict[str, Any] = {name: value for name, value in os.environ.items() if name not in SIZE} | {
        "TERM": "xterm"
    }
    env |= {} if may_change else SIZE
    process = subprocess.Popen(
        [sys.executable, "-m", "mosaic", *argv], stdin=slave, stdout=slave, stderr=slave, env=env
    )
    try:
        yield Terminal(process, master, slave)
    finally:
        process.kill()
        process.wait()
        os.close(slave)
        os.close(master)
