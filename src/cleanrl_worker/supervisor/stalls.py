"""What a training process reports when asked, and whether it takes no step any more because its environment
hangs."""

from __future__ import annotations

import math
import os
import re
import signal
import time
from pathlib import Path, PurePath
from typing import Any

from cleanrl_worker.config.live import LiveFrames
from mosaic.contract.errors import UserError
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


STALLED = "stalled"
SECONDS_VARIABLE = "MOSAIC_STALL_SECONDS"
_SECONDS = 120.0
_FRAME = re.compile(r'File "(.*)", line (\d+) in (.*)')
_IN_ENVIRONMENT = re.compile(
    r"/cleanrl_worker/kit/vector_env\.py:(_take_step|_reset)|/cleanrl_worker/portable/probe\.py:make_environment|"
    r"/cleanrl_worker/portable/fastlane/wrapper\.py:(step|reset)|"
    r"/gymnasium/.*\.py:(step|reset|step_wait|reset_wait|make|make_vec)"
)
"""What is being called while an environment is made, begins an episode or takes a step."""
_MOST_FRAMES, _SHOWN_FRAMES = 40, 5


def stall_seconds() -> float:
    """How long a run may take no step before it is asked what it does; 0 for ever."""
    text = os.environ.get(SECONDS_VARIABLE, "")
    try:
        seconds = float(text or _SECONDS)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds < math.inf:
        raise UserError(
            f"{SECONDS_VARIABLE} is {text!r:.40}, but must be a number of seconds; 0 turns the check off."
        )
    return seconds


class StallWatch:
    """Looks at the counter of steps. Only when that has stood still for long, the process is asked.

    An update or a download may take long too: a run is stalled while its stack is in an environment.
    """

    def __init__(self, report: Report, live: LiveFrames, pid: int, seconds: float) -> None:
        self._report = report
        self._live = live
        self._pid = pid
        self._seconds = seconds
        self._steps: int | None = None
        self._moved = self._asked = time.monotonic()
        self._found: dict[str, Any] | None = None

    def look(self, paused: bool) -> dict[str, Any] | None:
        """What a stalled run does: `since`, `text` and `stack`, the innermost call first; None for others."""
        now, steps = time.monotonic(), self._live.steps
        if steps is None or not self._seconds:
            return None
        if steps != self._steps or paused:
            self._steps, self._moved, self._asked, self._found = steps, now, now, None
        elif now - self._asked >= self._seconds and (steps or self._live.makes_environments):
            # A script that makes no environment, as far as that is known, is left alone.
            self._asked = now
            self._found = self._ask(now - self._moved)
        return self._found

    def _ask(self, seconds: float) -> dict[str, Any] | None:
        stack = self._report.ask_stack(self._pid)
        frames = [match.groups() for line in stack or () if (match := _FRAME.fullmatch(line))]
        inside = any(_IN_ENVIRONMENT.search(f"{path}:{name}") for path, _, name in frames)
        if stack is None or (stack and not inside):
            return None
        since = self._found["since"] if self._found else time.time() - seconds
        calls = [f"{name} ({PurePath(path).name}:{line})" for path, line, name in frames]
        shown = " ← ".join(calls[:_SHOWN_FRAMES]) or "its process does not answer"
        text = f"no step since {time.strftime('%H:%M:%S', time.localtime(since))}: {shown}"
        return {"since": since, "text": text, "stack": stack[:_MOST_FRAMES]}
