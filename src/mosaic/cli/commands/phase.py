"""`mosaic phase N [TEXT]`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from mosaic.cli import values
from mosaic.cli.parser import Parser
from mosaic.contract.errors import UserError
from mosaic.contract.phases import RUN_DIR_VARIABLE, announce_phase


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "phase",
        "N [TEXT]",
        "Inside a script that runs as a run: say which phase begins. It appears wherever the run is shown.",
        examples=('1 "empty rooms"', '2 "rooms with a door"'),
    )
    parser.add_argument("number", metavar="N", type=values.count, help="the phase's number, from 1 on")
    parser.add_argument("text", metavar="TEXT", nargs="*", help="what the script does in it, in a few words")
    parser.add_general()
    return parser


def run(args: argparse.Namespace) -> int:
    named = os.environ.get(RUN_DIR_VARIABLE)
    if not named:
        raise UserError(
            "There is no run here: `mosaic phase` is for scripts that `mosaic train script.sh` runs."
        )
    folder = Path(named)
    if not folder.is_dir():
        raise UserError(f"The run's folder {folder} in ${RUN_DIR_VARIABLE} does not exist.")
    announce_phase(folder, args.number, " ".join(args.text))
    return 0
