"""What a caller may ask for, and what is wrong with a line that asks for something else."""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import dataclass
from typing import Any, BinaryIO

from mosaic.contract.errors import closest

FIELDS = {
    "reset": ("seed", "frame"),
    "step": ("action", "frame"),
    "record": ("folder",),
    "ping": (),
    "stop": (),
}
"""The types of messages, and the fields that each may have beside its type."""
GREATEST_SEED = 2**32 - 1


class Refusal(Exception):
    """A message cannot be answered as it stands; the text says why, and the session goes on."""


@dataclass(frozen=True)
class Request:
    """One message."""

    type: str
    seed: int | None = None
    action: Any = None
    """None: that of the policy."""
    frame: bool | None = None
    """Whether a picture is wanted; None: as the session was started."""
    folder: str | None = None
    """Where episodes are recorded from the next one on; None: nowhere."""


def parse_request(line: bytes) -> Request:
    """The message in a line; Refusal when it is none."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"The line is not JSON: {error}.") from error
    if not isinstance(content, dict):
        raise Refusal('A message is a JSON object such as {"type": "step"}.')
    kind = content.pop("type", None)
    if kind is None:
        raise Refusal(f"The message has no 'type'; it must be one of {', '.join(FIELDS)}.")
    if not isinstance(kind, str) or kind not in FIELDS:
        hint = closest(str(kind), FIELDS) or f"; there are {', '.join(FIELDS)}."
        raise Refusal(f"There is no message of type {kind!r:.80}{hint}")
    for name in content:
        if name not in FIELDS[kind]:
            known = f"; it has {', '.join(FIELDS[kind])}." if FIELDS[kind] else ", nor any other."
            raise Refusal(f"A {kind} has no field {name!r:.80}{closest(name, FIELDS[kind]) or known}")
    seed = content.get("seed")
    whole = isinstance(seed, int) and not isinstance(seed, bool)
    if seed is not None and not (whole and 0 <= seed <= GREATEST_SEED):
        raise Refusal(f"'seed' is {seed!r:.80}, but it must be a whole number from 0 to {GREATEST_SEED}.")
    if not isinstance(content.get("frame", False), bool):
        raise Refusal(f"'frame' is {content['frame']!r:.80}, but it must be true or false.")
    if not isinstance(content.get("folder", ""), str | None):
        raise Refusal(f"'folder' is {content['folder']!r:.80}, but it must be a path or null.")
    return Request(kind, **content)


LONGEST_LINE = 1_000_000
"""Bytes of one message; an action is far from that."""

_encode = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":")).encode


def take_over_stdout() -> int:
    """A descriptor for the session's own lines; all else that is printed goes to stderr from now on."""
    sys.stdout.flush()
    replies = os.dup(1)
    os.dup2(2, 1)
    return replies


class Wire:
    """Lines from one stream and to one descriptor."""

    def __init__(self, requests: BinaryIO, replies: int) -> None:
        self._requests = requests
        self._replies = replies

    def read(self) -> bytes | None:
        """The next line that is not empty; None at the end of input. Refusal of one that is too long."""
        while line := self._requests.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                while (rest := self._requests.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                    pass
                raise Refusal(f"The line has more than {LONGEST_LINE} bytes.")
            if line.strip():
                return line
        return None

    def send(self, message: dict[str, Any]) -> None:
        """Write one message; a BrokenPipeError means that nobody reads any longer."""
        try:
            text = _encode(message)
        except ValueError:
            text = _encode(_finite(message))
        data = memoryview(text.encode() + b"\n")
        while data:
            data = data[os.write(self._replies, data) :]


def _finite(value: Any) -> Any:
    """The same with null for each number that JSON has no word for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
