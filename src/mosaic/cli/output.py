"""Where output goes: a console with tables for people, JSON for programs; a terminal obeys neither."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

from mosaic.contract.errors import UserError
from mosaic.contract.plain import PlainStream, plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Table
    from rich.text import Text

_FILE_WIDTH = 200
_ROOMY = 100
"""Columns of a terminal from which a table is less narrow."""


def program() -> str:
    """`mosaic` as the user can type it from where they are: `mosaic`, `./mosaic` or a path."""
    launcher = Path(__file__).resolve().parents[3] / "mosaic"
    if Path(sys.argv[0]).name == "mosaic" or not launcher.is_file():
        return "mosaic"
    relative = os.path.relpath(launcher)
    if relative.startswith(".."):
        return min(relative, str(launcher), key=len)
    return f"./{relative}"


def as_typed(sentence: str) -> str:
    """The sentence with our commands as the user can type them; the daemon does not know from where."""
    return re.sub(r"`(?:\./)?mosaic ", lambda _: f"`{program()} ", sentence)


def place_text(path: str | Path) -> str:
    """A path as short as it can be typed from here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


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


def table(
    *titles: str, right: Collection[str] = (), fold: Collection[str] = (), gap: int = 0, least: int = 0
) -> Table:
    """A table without lines. Columns in `right` are numbers; those in `fold` give way on a narrow terminal:
    they break their texts, or `cut` them. The first column keeps `least` letters."""
    from rich.table import Table

    gap = gap or (2 if console().width >= _ROOMY else 1)
    made = Table(box=None, padding=(0, gap, 0, 0), header_style="dim", show_edge=False)
    for title in titles:
        justify: Literal["left", "right"] = "right" if title in right else "left"
        made.add_column(title, justify=justify, no_wrap=title not in fold, overflow="fold")
    made.columns[0].min_width = least or None
    return made


def cut(text: str, style: str = "") -> Text:
    """A text on one line, of which a narrow terminal shows the beginning."""
    from rich.text import Text

    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def facts(rows: Iterable[tuple[str, str | Text | None]], width: int = 12) -> Table:
    """Labels and their values; those without a value are left out."""
    from rich.table import Table
    from rich.text import Text

    made = Table.grid(padding=(0, 2, 0, 0))
    made.add_column(style="dim", no_wrap=True, min_width=width)
    made.add_column(overflow="fold")
    for label, value in rows:
        if value:
            made.add_row(label, Text(value, overflow="fold") if isinstance(value, str) else value)
    return made


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


def print_json(value: Any, line: bool = False) -> None:
    """One JSON document, or one on a line of its own, visible at once."""
    print(json.dumps(value, indent=None if line else 2), flush=True)


def agreed(question: str, otherwise: str, about: Iterable[str] = ()) -> bool:
    """Whether the user says yes; `otherwise` says what to do where nobody can be asked.

    What others have named stands in the lines of `about`: a question does not pass through `plain`.
    """
    if not sys.stdin.isatty():
        raise UserError(otherwise)
    for line in about:
        say(line)
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def byte_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines as they come; the last one also without its end."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        yield rest


def text_of(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


def as_left(line: bytes) -> str:
    """What a terminal would leave of a line that is written over itself, as progress bars are."""
    return text_of(line).rpartition("\r")[2]
