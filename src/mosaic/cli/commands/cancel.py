"""`mosaic cancel RUN…`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from mosaic.cli import words
from mosaic.cli.finding import RUN_HELP
from mosaic.cli.output import say
from mosaic.cli.parser import Parser
from mosaic.contract.errors import ConflictError, UserError

if TYPE_CHECKING:
    from mosaic.client import Client, RunRecord

_NOT_ENDED = ("INIT", "HSHK", "RDY", "EXEC", "PAUSE", "FAULT")


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "cancel",
        "RUN... | --all [options]",
        "End runs that wait or train, and wait until their processes are gone.",
        examples=("last", "01K9ZW 01K9ZX --no-wait", "--all"),
    )
    parser.add_argument("runs", metavar="RUN", nargs="*", help=RUN_HELP)
    parser.add_argument("--all", action="store_true", help="every run that waits or lives")
    parser.add_argument("--no-wait", action="store_true", help="ask them to end and return at once")
    parser.add_general()
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic.cli.connecting import connect, holds_runs

    if bool(args.runs) == args.all:
        raise UserError("cancel needs RUN, or --all for every run that waits or lives.")
    if args.all and not holds_runs(args):
        say("No run waits or lives.")
        return 0
    with connect(args) as client:
        found = _live(client) if args.all else _named(client, args.runs)
        # The waiting ones first: none may start in the place of one that ends.
        for one in sorted(found, key=lambda run: run.status != "INIT"):
            # One that ends by itself meanwhile is as good.
            with suppress(ConflictError):
                client.cancel(one.run_id, "asked with `mosaic cancel`")
        for one in found:
            if args.no_wait:
                say(f"{one.run_id} is being ended")
            else:
                last = client.wait(one.run_id)
                say(f"{one.run_id} {words.state(last.status, last.outcome)}")
    if not found:
        say("No run waits or lives.")
    return 0


def _live(client: Client) -> list[RunRecord]:
    from mosaic.client import RunQuery

    return list(client.each(RunQuery(statuses=_NOT_ENDED, fields=("run_id", "status"))))


def _named(client: Client, names: Sequence[str]) -> list[RunRecord]:
    from mosaic.cli.finding import find_runs

    found = find_runs(client, names)
    for run in found:
        if run.ended:
            how = words.state(run.status, run.outcome)
            raise ConflictError(f"Run {run.run_id} has already ended ({how}): nothing was cancelled.")
    return found
