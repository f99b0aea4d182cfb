"""Lines from a stream of bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator


def lines_of(chunks: Iterable[bytes]) -> Iterator[str]:
    """Whole lines as they come; the last one also without its end."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (_text(line) for line in whole)
    if rest:
        yield _text(rest)


def last_lines(chunks: Iterable[bytes], count: int) -> list[str]:
    """The last `count` lines."""
    return list(deque(lines_of(chunks), maxlen=count))


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")
