"""`mosaic cancel RUN…`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mosaic.cli import words
from mosaic.cli.finding import RUN_HELP
from mosaic.cli.output import say
from mosaic.cli.parser import Parser


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "cancel",
        "RUN... [options]",
        "End runs that wait or train, and wait until their processes are gone.",
        examples=("last", "01K9ZW 01K9ZX --no-wait"),
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help=RUN_HELP)
    parser.add_argument("--no-wait", action="store_true", help="ask them to end and return at once")
    parser.add_general()
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic.cli.finding import find_runs
    from mosaic.client import Client
    from mosaic.contract.errors import ConflictError

    with Client.connect(args.var) as client:
        found = find_runs(client, args.runs)
        ended = [run for run in found if run.ended]
        if ended:
            how = words.state(ended[0].status, ended[0].outcome)
            raise ConflictError(f"Run {ended[0].run_id} has already ended ({how}): nothing was cancelled.")
        for one in found:
            client.cancel(one.run_id, "asked with `mosaic cancel`")
        for one in found:
            if args.no_wait:
                say(f"{one.run_id} is being ended")
            else:
                last = client.wait(one.run_id)
                say(f"{one.run_id} {words.state(last.status, last.outcome)}")
    return 0
