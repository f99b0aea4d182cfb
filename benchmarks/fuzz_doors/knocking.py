"""Throwing examples at a door, and keeping what went wrong: crashes, hangs, writes, imports."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from mosaic.contract.errors import MosaicError

EVIL_MODULE = "evilmod"
"""A module that files and configs name, and that nobody may import for that."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {
    "os.mkdir",
    "os.remove",
    "os.rmdir",
    "os.rename",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
}
_HARMLESS = ("/dev/null", "/dev/tty", "/proc/self/")
_SHOWN = 700


class Trespass(Exception):
    """Something was written or imported that should not have been."""


class Hang(Exception):
    """An example took too long."""


@dataclass(frozen=True)
class Door:
    """One way in: what is thrown at it, and what takes it. Errors for people are good answers, others not."""

    name: str
    what: str
    examples: SearchStrategy[Any]
    enter: Callable[[Any], None]
    folder: Path
    """The only place where it may write."""


@dataclass
class Tally:
    """What came of a door's examples."""

    tried: int = 0
    refused: int = 0
    faults: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By where it happened: the shortest example that led there, and the traceback."""

    def report(self) -> str:
        return "\n".join(f"{where}\n  {example}\n{trace}" for where, (example, trace) in self.faults.items())


class Watch:
    """Sees what this process writes and imports while it is on. An audit hook cannot be taken out again."""

    def __init__(self) -> None:
        self._allowed: tuple[str, ...] | None = None
        self._seen: list[str] = []
        sys.addaudithook(self._audit)

    @contextmanager
    def over(self, folder: Path) -> Iterator[None]:
        """Inside, a write outside `folder` or an import of the evil module raises at the end."""
        self._allowed, self._seen = (str(folder), *_HARMLESS), []
        try:
            yield
        finally:
            self._allowed = None
        if self._seen:
            raise Trespass("; ".join(self._seen))

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if self._allowed is None:
            return
        writes = event in _CHANGES or (event == "open" and args[2] & _WRITES)
        if writes and isinstance(args[0], str | bytes):
            self._check(event, args[0])
        elif event == "import" and str(args[0]).partition(".")[0] == EVIL_MODULE:
            self._seen.append(f"import {args[0]}")

    def _check(self, event: str, path: str | bytes) -> None:
        whole = os.path.abspath(os.fsdecode(path))
        # Byte code of our own modules, which are imported where they are first needed.
        if not whole.startswith(self._allowed or ()) and "__pycache__" not in whole:
            self._seen.append(f"{event} {whole}")


WATCH = Watch()


def knock(door: Door, examples: int, number: int | None = None, patience: float | None = None) -> Tally:
    """Throw so many examples at a door; without a `number` for chance always the same ones.

    With `patience` an example that takes longer than so many seconds is a fault.
    """
    tally = Tally()

    @settings(
        max_examples=examples,
        derandomize=number is None,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(door.examples)
    def throw(example: Any) -> None:
        tally.tried += 1
        try:
            with limited(patience), WATCH.over(door.folder):
                door.enter(example)
        except MosaicError:
            tally.refused += 1
        except Exception as error:
            _keep(tally, example, error)

    (throw if number is None else seed(number)(throw))()
    return tally


def _keep(tally: Tally, example: Any, error: Exception) -> None:
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "/hypothesis/" not in frame.filename
    ]
    last = next((frame for frame in reversed(frames) if "/src/" in frame.filename), frames[-1])
    where = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno} ({last.name})"
    if "/src/" not in last.filename:
        # Told by a daemon: its last line says what went wrong there.
        where += f": {str(error).strip().splitlines()[-1:]}"
    shown = repr(example)
    if where not in tally.faults or len(shown) < len(tally.faults[where][0]):
        trace = "".join(traceback.format_exception(error)[-4:])
        tally.faults[where] = (shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…", trace[-_SHOWN:])


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Inside, Hang is raised after so many seconds."""
    if seconds is None:
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise Hang(f"longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
