"""Why a training process failed, in one line."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from pathlib import Path

_LINES = 20
_BYTES = 16_384
_LONGEST = 300
_ERROR = re.compile(r"[A-Za-z_][\w.]*(:|$)")
"""The line that names an error; those of the traceback above it are indented."""


def last_lines(stderr: Path) -> list[str]:
    """The last lines of a script's stderr that say something."""
    try:
        with stderr.open("rb") as file:
            file.seek(max(0, stderr.stat().st_size - _BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-_LINES:]


def cause_of(code: int, lines: Sequence[str]) -> str:
    """What the script said last and how it ended (`code` as shells say it: 128 + signal)."""
    killed = code > 128
    how = f"killed by {signal.Signals(code - 128).name}" if killed else f"exit code {code}"
    if lines:
        return f"{_last_words(lines)} ({how})"
    return f"the script was {how}" if killed else f"the script ended with {how}"


def _last_words(lines: Sequence[str]) -> str:
    """The error under a traceback, in full, or the last line."""
    for at in range(len(lines) - 1, 0, -1):
        if _ERROR.match(lines[at]) and lines[at - 1].startswith(" "):
            words = " ".join(" ".join(lines[at:]).split())
            return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
    return lines[-1].strip()
