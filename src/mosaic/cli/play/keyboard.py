"""Single keys from a terminal, which is as before when the last one was read."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import sys
import termios
import tty
from types import TracebackType
from typing import Self

_ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*|O)([A-Za-z~])")
"""A key that is several characters; the last of them names it."""
_NAMES = {
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    " ": "space",
    "\x7f": "backspace",
    "\b": "backspace",
}
_GAP_SECONDS = 0.02
"""The rest of a key that is several characters comes within this time."""
OTHER = "other"
"""A key that has no name here."""


class Keyboard:
    """Keys as they are pressed, without echo; Ctrl-C still interrupts, Ctrl-Z does nothing."""

    def __init__(self) -> None:
        self._terminal = sys.stdin.fileno()
        self._typed = ""

    def __enter__(self) -> Self:
        # A signal that comes a moment before the wait for a key would not end that wait; its byte does.
        self._signals, self._signalled = socket.socketpair()
        self._signalled.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._signalled.fileno(), warn_on_full_buffer=False)
        self._before = termios.tcgetattr(self._terminal)
        tty.setcbreak(self._terminal)
        now = termios.tcgetattr(self._terminal)
        # A stopped program would leave its picture and this mode to the shell.
        now[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(self._terminal, termios.TCSANOW, now)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._before)
        signal.set_wakeup_fd(self._wakeup)
        self._signals.close()
        self._signalled.close()

    def read(self, seconds: float) -> str | None:
        """The next key by its name or character; None when none came in time."""
        if not self._typed and not self._fill(seconds):
            return None
        while self._typed[0] == "\x1b" and not _SEQUENCE.match(self._typed):
            if not self._fill(_GAP_SECONDS):
                break
        found = _SEQUENCE.match(self._typed)
        if found is not None:
            self._typed = self._typed[found.end() :]
            return _ARROWS.get(found[1], OTHER)
        key, self._typed = self._typed[0], self._typed[1:]
        return _NAMES.get(key, key)

    def _fill(self, seconds: float) -> bool:
        ready = select.select([self._terminal, self._signals], [], [], max(0.0, seconds))[0]
        if self._signals in ready:
            self._signals.recv(1024)
        if self._terminal not in ready:
            return False
        data = os.read(self._terminal, 1024)
        if not data:
            raise EOFError
        self._typed += data.decode("utf-8", "replace")
        return True
