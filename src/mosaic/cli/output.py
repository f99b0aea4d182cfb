"""Where output goes: a console for people, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_FILE_WIDTH = 200


@cache
def console() -> Console:
    """Standard output. A file or pipe gets wide lines, so that nothing is cut there."""
    from rich.console import Console

    wide = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=_FILE_WIDTH if wide else None, highlight=False, soft_wrap=False)


def say(text: str) -> None:
    """A plain line on standard output, whatever characters it holds."""
    print(text, flush=True)


def note(text: str) -> None:
    """A line beside the output, on stderr."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """One JSON document."""
    print(json.dumps(value, indent=2), flush=True)


def print_json_line(value: Any) -> None:
    """One JSON document on a line of its own, visible at once."""
    print(json.dumps(value), flush=True)
