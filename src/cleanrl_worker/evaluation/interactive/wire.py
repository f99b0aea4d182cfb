"""The two ends of a session's pipe: a JSON object a line, and nothing else."""

from __future__ import annotations

import json
import math
import os
import sys
from typing import Any, BinaryIO

LONGEST_LINE = 1_000_000
"""Bytes of one message; an action is far from that."""

_encode = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":")).encode


class LineTooLong(Exception):
    """A line had more bytes than a message can have, and was skipped."""


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
        """The next line that is not empty; None at the end of input."""
        while line := self._requests.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                self._skip_line()
                raise LineTooLong
            if line.strip():
                return line
        return None

    def _skip_line(self) -> None:
        while (rest := self._requests.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
            pass

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
