"""Phases that a script announces: one file in the run's folder, a line for each, read by its supervisor."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mosaic.contract.errors import StorageError
from mosaic.contract.outside import parse_json

WAITING_FOR_SPACE = "waiting for space"
"""The phase in the headline of a run that stands still because the disk is full."""
RUN_DIR_VARIABLE = "MOSAIC_RUN_DIR"
_NAME = "phases.jsonl"
_WAITING_NAME = ".waits_for_space"
_LONGEST_TEXT = 200
_TAIL_BYTES = 4096
"""More than the longest line: the newest phase is in the last so many bytes."""


@dataclass(frozen=True)
class Phase:
    """Where a script is: a number from 1, of how many if that is known, and what it does there."""

    number: int
    text: str
    of: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {"number": self.number, "of": self.of, "text": self.text}

    def __str__(self) -> str:
        total = f" of {self.of}" if self.of else ""
        return f"phase {self.number}{total}" + (f" ({self.text})" if self.text else "")


def announce_phase(run_dir: Path, number: int, text: str) -> None:
    """Add a phase to the run's file, in one piece."""
    plain = " ".join(text.split())[:_LONGEST_TEXT]
    line = json.dumps({"phase": number, "text": plain, "at": time.time()})
    try:
        with (run_dir / _NAME).open("ab", buffering=0) as file:
            file.write(f"{line}\n".encode())
    except OSError as error:
        raise StorageError(f"{run_dir / _NAME} cannot be written: {error.strerror}.") from error


def read_phase(run_dir: Path, of: int | None = None) -> Phase | None:
    """The phase that was announced last; None before the first. A line that is not a phase is passed over."""
    try:
        with (run_dir / _NAME).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            whole = file.read().rpartition(b"\n")[0]
    except OSError:
        return None
    for line in reversed(whole.splitlines()):
        try:
            found = parse_json(line)
            number, text = int(found["phase"]), str(found["text"])
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
        return Phase(number, text, max(of, number) if of else None)
    return None


def forget_phases(run_dir: Path) -> None:
    """A script that is started again begins again."""
    (run_dir / _NAME).unlink(missing_ok=True)
    set_waiting(run_dir, False)


def set_waiting(run_dir: Path, waits: bool) -> None:
    """Tell the supervisor that the disk is full; an empty file is possible even then, almost everywhere."""
    with contextlib.suppress(OSError):
        if waits:
            (run_dir / _WAITING_NAME).touch()
        else:
            (run_dir / _WAITING_NAME).unlink(missing_ok=True)


def is_waiting(run_dir: Path) -> bool:
    return (run_dir / _WAITING_NAME).exists()
