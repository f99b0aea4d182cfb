"""Why a training process failed, in one line."""

from __future__ import annotations

import itertools
import re
import signal
from collections.abc import Sequence
from pathlib import Path

_BYTES = 262_144
"""So far back the error may stand: whole tensors are printed under it."""
_LONGEST = 300
_TRACEBACK = "Traceback (most recent call last):"
_ERROR = re.compile(r"[A-Za-z_][\w.]*(:|$)")
"""The line that names an error; those of the traceback above it are indented."""
_BOX = {"top": "╭", "side": "│", "bottom": "╰"}
_RULE = "─"


def last_lines(stderr: Path) -> list[str]:
    """The last lines of a script's stderr that say something, as far back as a cause may stand."""
    try:
        with stderr.open("rb") as file:
            file.seek(max(0, stderr.stat().st_size - _BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def cause_of(code: int, lines: Sequence[str]) -> str:
    """What the script said last and how it ended (`code` as shells say it: 128 + signal)."""
    killed = code > 128
    how = f"killed by {signal.Signals(code - 128).name}" if killed else f"exit code {code}"
    if lines:
        words = _boxed(lines) or _raised(lines) or lines[-1].strip()
        return f"{words if len(words) <= _LONGEST else words[:_LONGEST] + '…'} ({how})"
    return f"the script was {how}" if killed else f"the script ended with {how}"


def _boxed(lines: Sequence[str]) -> str:
    """The first paragraph inside the box that the output ends with, as tyro draws one around its errors."""
    if not lines[-1].startswith(_BOX["bottom"]):
        return ""
    tops = [at for at, line in enumerate(lines) if line.startswith(_BOX["top"])]
    inside = [line.strip(_BOX["side"]).strip() for line in lines[tops[-1] + 1 : -1]] if tops else []
    paragraph = itertools.takewhile(lambda line: not line.startswith(_RULE), inside)
    return " ".join(" ".join(paragraph).split())


def _raised(lines: Sequence[str]) -> str:
    """The error under the last traceback: in full, or its own first line when a table of numbers follows."""
    at = _error_line(lines)
    if at is None:
        return ""
    words = " ".join(" ".join(lines[at:]).split())
    return words if len(words) <= _LONGEST else " ".join(lines[at].split())


def _error_line(lines: Sequence[str]) -> int | None:
    starts = [at for at, line in enumerate(lines) if line == _TRACEBACK]
    if starts:
        below = range(starts[-1] + 1, len(lines))
        return next((at for at in below if not lines[at].startswith(" ")), None)
    # Some errors have no such head, those of syntax for example.
    below = range(len(lines) - 1, 0, -1)
    return next((at for at in below if _ERROR.match(lines[at]) and lines[at - 1].startswith(" ")), None)
