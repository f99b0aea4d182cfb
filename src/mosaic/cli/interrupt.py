"""Ctrl-C and SIGTERM while runs of ours are being followed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(BaseException):
    """SIGTERM came."""


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


@contextmanager
def termination_raises() -> Iterator[None]:
    """SIGTERM becomes an exception, as Ctrl-C already is."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def signals_postponed() -> Iterator[None]:
    """A signal that comes inside takes effect at the end: what was submitted is then known in full."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda got, _: came.append(got)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


def wants_cancel() -> bool:
    """Ask whether to cancel. Without a terminal nobody can answer, so that means yes."""
    if not sys.stdin.isatty():
        return True
    try:
        return _answer() in ("c", "cancel")
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return False


def _answer() -> str:
    answer = "?"
    while answer not in ("", "d", "detach", "c", "cancel"):
        print("\n[d]etach or [c]ancel (Enter: detach)? ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline().strip().lower()
    return answer
