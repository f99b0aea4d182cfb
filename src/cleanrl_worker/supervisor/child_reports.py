"""What a training process reports to its supervisor: that it reached its end, and its stack when asked."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from mosaic.contract.process import ProcessIdentity

# `launcher.py`, which must run in any interpreter, has the same two.
STACK_SIGNAL = signal.SIGRTMAX - 2
END_WORD = b"end"
_STACK_AT = 64
_ANSWER_SECONDS = 2.0
_PAUSE_SECONDS = 0.02


class Report:
    """A file in memory that both processes have open, so that a full disk does not matter.

    The training process writes `END_WORD` at its beginning, and its stack from `_STACK_AT` on: both write at
    the same position of the file, which is set here.
    """

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("mosaic-report")

    def close(self) -> None:
        os.close(self.descriptor)

    def arguments(self) -> Sequence[str]:
        """What the launcher is told."""
        return ["--report-fd", str(self.descriptor)]

    @property
    def reached_end(self) -> bool:
        """Whether the training process has come to the end of what it was started for."""
        return os.pread(self.descriptor, len(END_WORD), 0) == END_WORD

    def ask_stack(self, pid: int) -> list[str] | None:
        """What the main thread of the training process does now, the innermost call first; empty if it does
        not answer, None if it cannot be asked: one that has become another program would end of it."""
        process = ProcessIdentity.of(pid)
        if process is None or not _catches(pid, STACK_SIGNAL):
            return None
        os.ftruncate(self.descriptor, _STACK_AT)
        os.lseek(self.descriptor, _STACK_AT, os.SEEK_SET)
        process.send(STACK_SIGNAL)
        deadline, size = time.monotonic() + _ANSWER_SECONDS, _STACK_AT
        while time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
            before, size = size, os.fstat(self.descriptor).st_size
            if size == before != _STACK_AT:
                break
        text = os.pread(self.descriptor, size - _STACK_AT, _STACK_AT).decode(errors="replace")
        return [line.strip() for line in text.splitlines() if line.startswith("  ")]


def _catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal, without which it would end."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    caught = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (number - 1) & 1)
