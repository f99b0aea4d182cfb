"""The frame around an algorithm: arguments in, exit code out, and an end between two steps when asked to."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from mosaic.contract.errors import MosaicError

ArgsT = TypeVar("ArgsT")

asked = False
"""Whether this process was asked to stop: for those who wait for something else, until its very end."""


class Stopped(Exception):
    """The process was asked to stop; `exit_code` is what shells expect after such a signal."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.exit_code = 128 + signum


class StopSignals:
    """Notes SIGTERM and SIGINT while it is entered, and lets the training loop ask for them."""

    def __init__(self) -> None:
        self._received: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        global asked
        asked = False
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGTERM, signal.SIGINT):
                self._previous[signum] = signal.signal(signum, self._note)
        return self

    def __exit__(self, *exc: object) -> None:
        for signum, handler in self._previous.items():
            signal.signal(signum, handler)

    @property
    def requested(self) -> bool:
        """Whether a signal has come."""
        return self._received is not None

    def check(self) -> None:
        """Raise Stopped when a signal has come."""
        if self._received is not None:
            raise Stopped(self._received)

    def _note(self, signum: int, frame: FrameType | None) -> None:
        global asked
        asked = True
        self._received = signum
        if signum == signal.SIGINT:
            # A second Ctrl-C ends a step that hangs.
            signal.signal(signum, signal.default_int_handler)


def run_script(read: Callable[[], ArgsT], train: Callable[[ArgsT, StopSignals], None]) -> int:
    """Train with the arguments that `read` gives, and return the exit code: 0, 2 for a wrong argument, 143
    after SIGTERM."""
    try:
        args = read()
        with StopSignals() as stop:
            train(args, stop)
    except Stopped as stopped:
        return stopped.exit_code
    except MosaicError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0
