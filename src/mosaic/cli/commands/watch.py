"""`mosaic watch RUN…`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mosaic.cli.finding import RUN_HELP
from mosaic.cli.output import print_json_line, say
from mosaic.cli.parser import Parser


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "watch",
        "RUN... [options]",
        "Follow runs live until they end. Ctrl-C leaves; the runs go on.",
        examples=("last", "last --frames", "01K9ZW 01K9ZX"),
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help=RUN_HELP)
    parser.add_argument(
        "--frames", action="store_true", help="show the environments of one run being played, in the terminal"
    )
    parser.add_general(json="a line for the state now and for each update")
    return parser


def run(args: argparse.Namespace) -> int:
    """Ends like `train`: 0 when every run completed."""
    from mosaic.cli.connecting import connect
    from mosaic.cli.finding import find_runs
    from mosaic.cli.launch import exit_code
    from mosaic.cli.live.board import Board
    from mosaic.cli.live.follow import follow
    from mosaic.cli.live.summary import print_summary
    from mosaic.cli.live.views import JsonView, view_for
    from mosaic.cli.shapes import update_json

    with connect(args) as client:
        runs = find_runs(client, args.runs)
        board = Board.of(runs)
        for run in runs if args.json else ():
            print_json_line(update_json(run.history[-1]))
        try:
            follow(client, board, JsonView() if args.json else view_for(board, frames=args.frames))
        except KeyboardInterrupt:
            if not args.json:
                say("Left; the runs go on." if len(board.rows) > 1 else "Left; the run goes on.")
            raise
        ended = [client.get(run_id) for run_id in board.rows]
        if not args.json:
            print_summary(client, ended)
        return exit_code(ended)
