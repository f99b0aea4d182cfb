"""`mosaic resume RUN…`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mosaic.cli.finding import RUN_HELP
from mosaic.cli.parser import Parser


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "resume",
        "RUN... [options]",
        "Let paused runs go on exactly where they were.",
        examples=("last", "01K9ZW 01K9ZX"),
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help=RUN_HELP)
    parser.add_general(json="a list of the runs")
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic.cli.pausing import set_paused

    return set_paused(args, paused=False)
