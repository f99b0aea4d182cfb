"""`mosaic snapshot RUN FILE`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mosaic.cli import words
from mosaic.cli.finding import RUN_HELP
from mosaic.cli.output import print_json, say
from mosaic.cli.parser import Parser
from mosaic.contract.errors import UserError


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "snapshot",
        "RUN FILE.png [options]",
        "Save what the environments of a run look like now, as a PNG picture.",
        examples=("last now.png",),
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("file", metavar="FILE.png", type=Path, help="where the picture goes")
    parser.add_general(json="where the picture is, its size and the numbers beside it")
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic.cli.connecting import connect
    from mosaic.cli.finding import find_run
    from mosaic.cli.looking import first_picture, looking_at
    from mosaic.contract.atomic import write_atomic
    from mosaic.fastlane.png import encode_png

    if args.file.suffix.lower() != ".png":
        raise UserError(f"'{args.file}' does not end in .png, the only kind of picture that snapshot writes.")
    with connect(args) as client:
        found = find_run(client, args.run)
    with looking_at(found) as grid:
        picture = first_picture(grid, found)
        metrics, missions = grid.metrics(), grid.missions()
        shown, late = len(grid.shown), len(grid.awaited)
    try:
        write_atomic(args.file, encode_png(picture))
    except OSError as error:
        raise UserError(f"{args.file} cannot be written: {error.strerror}.") from error
    height, width = picture.shape[:2]
    if args.json:
        numbers = {**(vars(metrics) if metrics else {}), "missions": missions}
        place = {"run_id": found.run_id, "file": str(args.file), "width": width, "height": height}
        print_json({**place, "environments": shown, **numbers})
        return 0
    part = f", {shown} of {shown + late} environments: the others have drawn nothing yet" if late else ""
    say(f"{words.place(args.file)}: {width} × {height} pixels{part}")
    return 0
