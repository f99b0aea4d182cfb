"""Pictures of a run in a terminal: waited for, shown in character cells, and above the live panel."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from mosaic.cli import words
from mosaic.cli.live.board import Board
from mosaic.cli.live.views import LiveView
from mosaic.cli.output import console
from mosaic.cli.words import as_typed, program
from mosaic.contract.errors import MosaicError, UserError
from mosaic.contract.extras import install_advice
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.layout import lacking_package

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

    from mosaic.client import RunRecord
    from mosaic.fastlane.grid import LiveGrid
    from mosaic.fastlane.reader import SlotStatus

UPPER_HALF = "▀"


class Picture:
    """Pixels as a renderable that keeps their shape and fits the width, and `most_rows` of the terminal."""

    def __init__(self, pixels: Any, most_rows: int) -> None:
        self._pixels = pixels
        self._most_rows = most_rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        small = shrink(self._pixels, options.max_width, 2 * self._most_rows)
        for upper, lower in zip(small[::2].tolist(), small[1::2].tolist(), strict=True):
            for above, below in zip(upper, lower, strict=True):
                yield Segment(UPPER_HALF, _style(*above, *below))
            yield Segment.line()


@lru_cache(maxsize=4096)
def _style(red: int, green: int, blue: int, red2: int, green2: int, blue2: int) -> Style:
    return Style.parse(f"rgb({red},{green},{blue}) on rgb({red2},{green2},{blue2})")


def shrink(pixels: Any, width: int, height: int) -> Any:
    """The picture within so many pixels, an even number of rows; each new pixel is a mean of old ones."""
    rows, columns = pixels.shape[:2]
    scale = min(width / columns, height / rows)
    new_columns = max(1, int(columns * scale))
    new_rows = max(2, int(rows * scale) // 2 * 2)
    sums = pixels.astype(np.float32)
    for axis, (old, new) in enumerate(((rows, new_rows), (columns, new_columns))):
        starts = np.arange(new) * old // new
        counts = np.maximum(1, np.diff(np.append(starts, old)))
        sums = np.add.reduceat(sums, starts, axis=axis) / counts.reshape(
            (-1, 1, 1) if axis == 0 else (1, -1, 1)
        )
    # Fewer shades look the same here and are cheaper to draw.
    return sums.astype(np.uint8) & 0xF8


WAIT_SECONDS = 20.0
"""The first picture may take a while: a renderer has to start, and an update may lie between two steps."""
PATIENCE_SECONDS = 6.0
"""For the next environment's first: those of one process draw theirs one by one, at most 5 s apart."""
_PAUSE_SECONDS = 0.01


@contextmanager
def looking_at(run: RunRecord) -> Iterator[LiveGrid]:
    """The pictures of a run that trains now; for another one, UserError says what to do."""
    from mosaic.fastlane.grid import LiveGrid

    if run.status == "TERM":
        raise UserError(
            f"Run {run.run_id} has ended, so there is no live picture; "
            f"`{program()} show {run.run_id}` lists what it left."
        )
    with LiveGrid(run.run_id) as grid:
        yield grid


def reason_of(status: SlotStatus, python: str | None) -> str:
    """Why there is no live picture, and what to do where a package is missing in the run's interpreter."""
    package = lacking_package(status.reason)
    if not package:
        return status.reason
    return f"{status.reason}; {install_advice(package, python)}, then it comes by itself"


def first_picture(grid: LiveGrid, run: RunRecord) -> Any:
    """The picture of all environments, or of those that drew when no other comes any more."""
    deadline = time.monotonic() + WAIT_SECONDS
    seen = 0
    while time.monotonic() < deadline:
        grid.look()
        if len(grid.shown) > seen:
            seen, deadline = len(grid.shown), time.monotonic() + PATIENCE_SECONDS
        if seen and not grid.awaited:
            break
        status = grid.status()
        if status.state in ("no picture", "ended") and not seen:
            why = reason_of(status, run.python)
            raise MosaicError(f"There is no picture of run {run.run_id}: {why}.")
        time.sleep(_PAUSE_SECONDS)
    if seen:
        return grid.picture()
    status = grid.status()
    raise MosaicError(
        f"Run {run.run_id} gave no picture within {WAIT_SECONDS:.0f} s: {status.reason or status.state}."
    )


_PANEL_ROWS = 9
_MOST_MISSIONS = 4


class FramesView(LiveView):
    """Pictures over the panel; its looking is what makes the environments render."""

    redraws_per_second = 12
    overflow = "crop"

    def __init__(self, board: Board) -> None:
        ((run_id, row),) = board.rows.items()
        self._grid, self._python = LiveGrid(run_id), row.python
        super().__init__(board)

    def __exit__(self, *error: object) -> None:
        super().__exit__()
        self._grid.close()

    def draw(self) -> RenderableType:
        self._grid.look()
        picture = self._grid.picture()
        missions = mission_lines(self._grid.missions())
        parts: list[RenderableType] = []
        if picture is not None:
            parts.append(Picture(picture, max(4, console().size.height - _PANEL_ROWS - len(missions))))
        lines = [Text(line, "dim", no_wrap=True, overflow="ellipsis") for line in missions]
        return Group(*parts, Text(live_line(self._grid, self._python), style="dim"), *lines, super().draw())


def live_line(grid: LiveGrid, python: str | None) -> str:
    """What stands under the picture: whether it is live, and its last reward; the panel has the rest."""
    status, metrics = grid.status(), grid.metrics()
    why = as_typed(reason_of(status, python))
    said = f"{status.state}: {why}" if why else status.state
    if metrics is None or status.state != "live":
        return said
    return f"{said}   reward {words.short(metrics.last_reward)}"


def mission_lines(missions: Sequence[str]) -> list[str]:
    """The missions of the environments in the picture, a line for each that differs, with who has it."""
    if not missions:
        return []
    if len(set(missions)) == 1:
        return [f"mission: {missions[0]}"]
    owners: dict[str, list[str]] = {}
    for number, mission in enumerate(missions, 1):
        owners.setdefault(mission or "none", []).append(str(number))
    lines = [f"mission of {', '.join(numbers)}: {mission}" for mission, numbers in owners.items()]
    return lines if len(lines) <= _MOST_MISSIONS else [*lines[: _MOST_MISSIONS - 1], "other missions …"]
