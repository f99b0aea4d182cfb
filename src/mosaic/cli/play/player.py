"""What happens when a key is pressed: the policy steps, the user steps, an episode begins."""

from __future__ import annotations

import time
from typing import Any

from mosaic.client.choices import Choices
from mosaic.client.playing import Message, PlaySession, Refused
from mosaic.contract.errors import UserError

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
