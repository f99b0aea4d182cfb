"""`mosaic gui`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mosaic.cli.parser import Parser


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "gui",
        "[options]",
        "Open the window: train, watch, compare, resume and play. Closing it stops no run.",
        examples=("", "--var ~/experiments"),
    )
    parser.add_general()
    return parser


def run(args: argparse.Namespace) -> int:
    from gym_gui.launch import launch

    return launch(args.var)
