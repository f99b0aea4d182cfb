"""Lines from a stream of bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator


def byte_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines as they come; the last one also without its end."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        yield rest


def lines_of(chunks: Iterable[bytes]) -> Iterator[str]:
    """The lines as text."""
    return map(text_of, byte_lines(chunks))


def last_lines(chunks: Iterable[bytes], count: int) -> list[str]:
    """The last `count` lines."""
    return list(deque(lines_of(chunks), maxlen=count))


def text_of(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


def as_left(line: str) -> str:
    """What a terminal would leave of a line that is written over itself, as progress bars are."""
    return line.rpartition("\r")[2]
