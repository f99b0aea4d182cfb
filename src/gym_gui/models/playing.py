"""What a session tells whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Opened:
    """The policy is loaded; `init` tells what it is and what it plays."""

    init: dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """The newest `ready` or `step` message."""

    message: dict[str, Any]
    picture: Any
    """Pixels (height, width, 3), or None."""
    picture_problem: str
    yours: int
    """How many steps of this episode the user chose."""
    running: bool

    @property
    def last(self) -> bool:
        """Whether the episode ended with it."""
        return "episode" in self.message


@dataclass(frozen=True)
class Running:
    """Whether it steps by itself from now on."""

    running: bool


@dataclass(frozen=True)
class Refusal:
    """The session goes on, but could not do this."""

    text: str


@dataclass(frozen=True)
class Closed:
    """The session is over, though nobody asked for that."""

    reason: str


News = Opened | Seen | Running | Refusal | Closed
