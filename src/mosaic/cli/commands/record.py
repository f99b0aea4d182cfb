"""`mosaic record RUN FILE`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli import values, words
from mosaic.cli.finding import RUN_HELP
from mosaic.cli.output import print_json, say
from mosaic.cli.parser import Parser
from mosaic.contract.errors import UserError

if TYPE_CHECKING:
    from mosaic.analytics.film import Film
    from mosaic.fastlane.grid import LiveGrid

_FRAMES_PER_SECOND = 30


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "record",
        "RUN FILE.mp4 [options]",
        "Save a video of the environments of a run, as they are played now. Ctrl-C ends it early.",
        examples=("last film.mp4 --seconds 30",),
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("file", metavar="FILE.mp4", type=Path, help="where the video goes")
    parser.add_argument("--seconds", type=values.count, default=10, metavar="N", help="how long it is (10)")
    parser.add_general(json="where the video is, how long it is and how many pictures it has")
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic.analytics.film import Film, require_av
    from mosaic.cli.connecting import connect
    from mosaic.cli.finding import find_run
    from mosaic.cli.looking import first_picture, looking_at
    from mosaic.contract.atomic import write_atomic

    if args.file.suffix.lower() != ".mp4":
        raise UserError(f"'{args.file}' does not end in .mp4, the only kind of video that record writes.")
    require_av("record")
    with connect(args) as client:
        found = find_run(client, args.run)
    film = Film(_FRAMES_PER_SECOND)
    with looking_at(found) as grid:
        first_picture(grid, found)
        new = _shoot(film, grid, args.seconds)
    try:
        write_atomic(args.file, film.finish())
    except OSError as error:
        raise UserError(f"{args.file} cannot be written: {error.strerror}.") from error
    seconds = film.frames / _FRAMES_PER_SECOND
    if args.json:
        print_json({"run_id": found.run_id, "file": str(args.file), "seconds": seconds, "pictures": new})
        return 0
    say(f"{words.place(args.file)}: {seconds:.1f} s, {new / seconds:.1f} pictures a second")
    return 0


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
