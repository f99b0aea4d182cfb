"""`mosaic rm RUN…`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mosaic.cli import words
from mosaic.cli.finding import RUN_HELP
from mosaic.cli.output import say
from mosaic.cli.parser import Parser
from mosaic.cli.program import program
from mosaic.contract.errors import ConflictError, UserError
from mosaic.contract.sizes import bytes_text

if TYPE_CHECKING:
    from mosaic.client import RunRecord


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "rm",
        "RUN... [options]",
        "Remove ended runs: their folders with everything in them, and their place in the list. What they "
        "printed can still be read (`logs RUN`) until `gc` removes it.",
        examples=("01K9ZW", "last --yes"),
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help=RUN_HELP)
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_general()
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic.cli.connecting import connect
    from mosaic.cli.finding import find_runs

    with connect(args) as client:
        found = find_runs(client, args.runs)
        for one in found:
            if not one.ended:
                raise ConflictError(
                    f"Run {one.run_id} is still {words.state(one.status, one.outcome)}, nothing was removed: "
                    f"`{program()} cancel {one.run_id}` ends it."
                )
        if not args.yes and not _agreed(found):
            say("Nothing was removed.")
            return 1
        freed = sum(client.remove(one.run_id) for one in found)
    say(f"Removed {_amount(found)}, {bytes_text(freed)} freed.")
    return 0


def _agreed(runs: list[RunRecord]) -> bool:
    if not sys.stdin.isatty():
        raise UserError("rm asks before it removes anything, and nobody can answer here: add --yes.")
    for one in runs:
        say(f"  {one.run_id}  {one.run_name}  {words.state(one.status, one.outcome)}")
    answer = input(f"Remove {_amount(runs)} and all files? [y/N] ")
    return answer.strip().lower() in ("y", "yes")


def _amount(runs: list[RunRecord]) -> str:
    return "1 run" if len(runs) == 1 else f"{len(runs)} runs"
