"""`snapshot` and `record`, and the pictures of `watch --frames`: what the environments of a run look like."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from mosaic.analytics.film import Film, require_av
from mosaic.cli.live.board import Board
from mosaic.cli.live.views import LiveView
from mosaic.cli.output import as_typed, console, cut, place_text, print_json, program, say
from mosaic.cli.runs import connect, find_run
from mosaic.client import RunRecord
from mosaic.contract import words
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import MosaicError, UserError
from mosaic.contract.extras import install_advice
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.layout import lacking_package
from mosaic.fastlane.png import encode_png
from mosaic.fastlane.reader import SlotStatus

_FRAMES_PER_SECOND = 30


def run_snapshot(args: argparse.Namespace) -> int:
    found = _run_to_film(args, ".png", "picture")
    with LiveGrid(found.run_id) as grid:
        picture = first_picture(grid, found)
        metrics, missions = grid.metrics(), grid.missions()
        shown, late = len(grid.shown), len(grid.awaited)
    _write(args, encode_png(picture))
    height, width = picture.shape[:2]
    if args.json:
        numbers = {**(vars(metrics) if metrics else {}), "missions": missions}
        place = {"run_id": found.run_id, "file": str(args.file), "width": width, "height": height}
        print_json({**place, "environments": shown, **numbers})
        return 0
    part = f", {shown} of {shown + late} environments: the others have drawn nothing yet" if late else ""
    say(f"{place_text(args.file)}: {width} × {height} pixels{part}")
    return 0


def run_record(args: argparse.Namespace) -> int:
    found = _run_to_film(args, ".mp4", "video")
    film = Film(_FRAMES_PER_SECOND)
    with LiveGrid(found.run_id) as grid:
        first_picture(grid, found)
        new = _shoot(film, grid, args.seconds)
    _write(args, film.finish())
    seconds = film.frames / _FRAMES_PER_SECOND
    if args.json:
        print_json({"run_id": found.run_id, "file": str(args.file), "seconds": seconds, "pictures": new})
    else:
        say(f"{place_text(args.file)}: {seconds:.1f} s, {new / seconds:.1f} pictures per second")
    return 0


def _run_to_film(args: argparse.Namespace, suffix: str, kind: str) -> RunRecord:
    command = "snapshot" if kind == "picture" else "record"
    if args.file.suffix.lower() != suffix:
        raise UserError(
            f"'{args.file}' does not end in {suffix}, the only kind of {kind} that {command} writes."
        )
    if command == "record":
        require_av("record")
    with connect(args) as client:
        run = find_run(client, args.run)
    if run.ended:
        raise UserError(
            f"Run {run.run_id} has ended, so there is no live picture; "
            f"`{program()} show {run.run_id}` lists what it left."
        )
    return run


def _write(args: argparse.Namespace, data: bytes) -> None:
    try:
        write_atomic(args.file, data)
    except OSError as error:
        raise UserError(f"{args.file} cannot be written: {error.strerror}.") from error


def _shoot(film: Film, grid: LiveGrid, seconds: int) -> int:
    """Film for so long, or until the run ends or Ctrl-C; gives how many pictures were new."""
    start, new = time.monotonic(), 0
    try:
        for number in range(seconds * _FRAMES_PER_SECOND):
            time.sleep(max(0.0, start + number / _FRAMES_PER_SECOND - time.monotonic()))
            new += grid.look()
            film.add(grid.picture())
            if grid.status().state == "ended":
                break
    except KeyboardInterrupt:
        if film.frames == 0:
            raise
    return new


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


def reason_of(status: SlotStatus, python: str | None) -> str:
    """Why there is no live picture, and what to do where a package is missing in the run's interpreter."""
    package = lacking_package(status.reason)
    if not package:
        return status.reason
    return f"{status.reason}; {install_advice(package, python)}, then it appears by itself"


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
        lines = [cut(line, "dim") for line in missions]
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
