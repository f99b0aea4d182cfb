"""What is played and by which keys: single keys of a terminal, and what happens when one is pressed."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import sys
import termios
import time
import tty
from typing import Any, Self

from mosaic.client.playing import Choices, Message, PlaySession, Refused
from mosaic.contract.errors import UserError

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

    def __exit__(self, *error: object) -> None:
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


SPEEDS = (1, 2, 5, 10, 15, 30, 60, 120)
"""Steps per second while it runs."""
_USUAL_SPEED = 30
_IDLE_SECONDS = 3600.0


class Player:
    """One user at one session. Everything that is to be seen is an attribute."""

    def __init__(self, session: PlaySession) -> None:
        self._session = session
        self.init = session.init
        self.choices = Choices(session.init["action_space"])
        wanted = min(session.init["fps"] or _USUAL_SPEED, _USUAL_SPEED)
        self._speed = max(number for number, speed in enumerate(SPEEDS) if speed <= max(wanted, SPEEDS[0]))
        self._due = 0.0
        self.running = False
        self.left = False
        self.typing: str | None = None
        """The line that is being typed, if one is."""
        self.notice = ""
        self.episode = 0
        self.seed = 0
        self.ended: Message | None = None
        self.seen: Message = {}
        """The newest `ready` or `step` message."""
        self.begin()

    @property
    def speed(self) -> int:
        return SPEEDS[self._speed]

    def patience(self) -> float:
        """How many seconds may pass before something happens by itself."""
        return max(0.0, self._due - time.monotonic()) if self.running else _IDLE_SECONDS

    def press(self, key: str) -> None:
        """Do what a key asks for."""
        self.notice = ""
        try:
            if self.typing is not None:
                self._type(self.typing, key)
            else:
                self._command(key)
        except UserError as error:
            self.running = False
            self.notice = str(error)

    def tick(self) -> None:
        """Take the next step if it runs and the time has come."""
        if not self.running or time.monotonic() < self._due:
            return
        # Counted from when it was due, unless that is long ago: the machine may be slower than asked for.
        self._due = max(self._due + 1.0 / self.speed, time.monotonic())
        try:
            self._step()
        except Refused as refused:
            self.running, self.notice = False, str(refused)

    def begin(self) -> None:
        """A new episode."""
        self.seen = self._session.reset()
        self.seed = self.seen["seed"]
        self.episode += 1
        self.ended = None

    def _command(self, key: str) -> None:
        action = self.choices.by_key(key)
        if action is not None:
            self._step(action)
        elif key in ("space", "enter"):
            self.running = False
            self._step()
        elif key == "r":
            self.running = not self.running
            self._due = time.monotonic()
        elif key == "n":
            self.begin()
        elif key in ("+", "="):
            self._speed = min(self._speed + 1, len(SPEEDS) - 1)
        elif key == "-":
            self._speed = max(self._speed - 1, 0)
        elif key == "a":
            self.running, self.typing = False, ""
        elif key == "q":
            self.left = True

    def _type(self, line: str, key: str) -> None:
        self.typing = None
        if key == "enter" and line.strip():
            self._step(self.choices.typed(line))
        elif key == "backspace":
            self.typing = line[:-1]
        elif key == "space":
            self.typing = f"{line} "
        elif len(key) == 1 and key.isprintable():
            self.typing = line + key
        elif key not in ("enter", "escape"):
            self.typing = line

    def _step(self, action: Any = None) -> None:
        if self.ended is not None:
            self.begin()
            return
        self.seen = self._session.step(action)
        self.ended = self.seen.get("episode")
