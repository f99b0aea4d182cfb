"""`snapshot` and `record`: pictures of runs while they train."""

from __future__ import annotations

import argparse
import time

from mosaic.analytics.film import Film, require_av
from mosaic.cli import words
from mosaic.cli.live.frames import first_picture, looking_at
from mosaic.cli.output import print_json, say
from mosaic.cli.runs import connect, find_run
from mosaic.client import RunRecord
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import UserError
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.png import encode_png

_FRAMES_PER_SECOND = 30


def run_snapshot(args: argparse.Namespace) -> int:
    found = _run_to_film(args, ".png", "picture")
    with looking_at(found) as grid:
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
    say(f"{words.place(args.file)}: {width} × {height} pixels{part}")
    return 0


def run_record(args: argparse.Namespace) -> int:
    found = _run_to_film(args, ".mp4", "video")
    film = Film(_FRAMES_PER_SECOND)
    with looking_at(found) as grid:
        first_picture(grid, found)
        new = _shoot(film, grid, args.seconds)
    _write(args, film.finish())
    seconds = film.frames / _FRAMES_PER_SECOND
    if args.json:
        print_json({"run_id": found.run_id, "file": str(args.file), "seconds": seconds, "pictures": new})
    else:
        say(f"{words.place(args.file)}: {seconds:.1f} s, {new / seconds:.1f} pictures a second")
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
        return find_run(client, args.run)


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
