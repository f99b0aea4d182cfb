"""Why a training process failed, in one line."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

_LINES = 20
_BYTES = 16_384


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
    """The last line and how the script ended (`code` as shells say it: 128 + signal)."""
    how = f"killed by {signal.Signals(code - 128).name}" if code > 128 else f"exit code {code}"
    return f"{lines[-1]} ({how})" if lines else f"the script ended with {how}"
