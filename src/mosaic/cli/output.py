"""Where output goes: a console for people, JSON for programs; a terminal obeys neither."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO, cast

from mosaic.contract.plain import PlainStream, plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

_FILE_WIDTH = 200


@contextmanager
def plain_streams() -> Iterator[None]:
    """Inside, whatever is printed passes through `plain`: also help, tracebacks and warnings."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        cast("TextIO", PlainStream(stream)) if stream is not None else None for stream in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@cache
def console() -> Console:
    """Standard output. A file or pipe gets wide lines, so that nothing is cut there."""
    from rich.console import Console
    from rich.segment import Segment

    class PlainConsole(Console):
        """Its own colours reach the terminal; those in the text that it shows do not."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                shown = segment.text if segment.control else plain(segment.text)
                yield segment if shown is segment.text else Segment(shown, segment.style)

    wide = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return PlainConsole(
        width=_FILE_WIDTH if wide else None, highlight=False, soft_wrap=False, markup=False, emoji=False
    )


def say(text: str) -> None:
    """A plain line on standard output, whatever characters it holds."""
    print(text, flush=True)


def say_raw(line: bytes) -> None:
    """A line on standard output byte by byte, with whatever a terminal would obey."""
    sys.stdout.flush()
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def note(text: str) -> None:
    """A line beside the output, on stderr."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """One JSON document."""
    print(json.dumps(value, indent=2), flush=True)


def print_json_line(value: Any) -> None:
    """One JSON document on a line of its own, visible at once."""
    print(json.dumps(value), flush=True)
