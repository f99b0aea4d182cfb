"""`mosaic queue`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mosaic.cli import values, words
from mosaic.cli.finding import RUN_HELP
from mosaic.cli.output import console, print_json, say
from mosaic.cli.parser import Parser
from mosaic.contract.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from mosaic.cli.queueing import Queue
    from mosaic.client import RunRecord

_ROOMY = 100
_MOST_WAITING = 100


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "queue",
        "[RUN --priority N | --before RUN | --first] [options]",
        "The live runs with what they hold, then the waiting ones in the order in which they will start. A\n"
        "small run may start before a larger one when that delays nobody. With RUN, change its place.",
        examples=("", "01K9ZX --first", "01K9ZX --before 01K9ZW", "01K9ZX --priority 10"),
    )
    parser.add_argument("run", metavar="RUN", nargs="?", help=f"the waiting run to move: {RUN_HELP}")
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--priority",
        type=values.priority,
        metavar="N",
        help="the higher starts first, from -1000 to 1000; runs of one priority keep their order",
    )
    place.add_argument("--before", metavar="RUN", help="right before this waiting run, with its priority")
    place.add_argument("--first", action="store_true", help="before all others")
    parser.add_general(json="an object with the live and the waiting runs and what is reserved")
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic.cli.connecting import connect, holds_runs
    from mosaic.cli.queueing import Queue, reorder

    _check(args)
    queue = Queue()
    if args.run is not None or holds_runs(args):
        with connect(args) as client:
            if args.run is not None:
                reorder(client, args)
            queue = Queue.read(client, most=0 if args.json else _MOST_WAITING)
    if args.json:
        print_json(queue.as_json())
    else:
        _print(queue)
    return 0


def _check(args: argparse.Namespace) -> None:
    moves = args.priority is not None or args.before is not None or args.first
    if args.run is None and moves:
        raise UserError("queue needs the RUN that is to move, in front of --priority, --before or --first.")
    if args.run is not None and not moves:
        raise UserError("queue RUN needs --priority N, --before RUN or --first.")


def _print(queue: Queue) -> None:
    from mosaic.cli.reserved import sentence

    reserved = sentence(queue.health) if queue.health else ""
    if not queue.live and not queue.waiting:
        say(f"No run lives or waits{f'; {reserved}' if reserved else ''}.")
        return
    ids = words.unique_prefixes([run.run_id for run in [*queue.live, *queue.waiting]])
    if queue.live:
        console().print(_live(queue.live, ids))
        say("")
    if queue.waiting:
        console().print(_waiting(queue.waiting, ids))
        more = queue.health.waiting_runs - len(queue.waiting) if queue.health else 0
        say(f"\nand {more:,} more that wait; --json lists all.\n" if more > 0 else "")
    say(f"{reserved}.")


def _live(runs: Sequence[RunRecord], ids: Mapping[str, str]) -> Table:
    from rich.text import Text

    from mosaic.cli.live.board import Row
    from mosaic.cli.reserved import Request

    table = _table()
    table.add_column("live", no_wrap=True, min_width=max(map(len, ids.values())))
    table.add_column("run")
    table.add_column("state", no_wrap=True)
    table.add_column("done", justify="right", no_wrap=True)
    table.add_column("holds", overflow="fold")
    for run in runs:
        row = Row.from_record(run)
        table.add_row(
            ids[run.run_id],
            # The column that gives way when the terminal is narrow.
            Text(row.name, no_wrap=True, overflow="ellipsis"),
            Text(row.state, style=words.style(row.state)),
            words.percent(row.headline.get("progress")),
            Request.of(run).holds(),
        )
    return table


def _waiting(runs: Sequence[RunRecord], ids: Mapping[str, str]) -> Table:
    from rich.text import Text

    from mosaic.cli.live.board import Row
    from mosaic.cli.reserved import Request

    table = _table()
    table.add_column("waiting", no_wrap=True, min_width=max(map(len, ids.values())))
    table.add_column("run")
    table.add_column("priority", justify="right", no_wrap=True)
    table.add_column("needs", overflow="fold")
    for run in runs:
        reason = words.with_short_ids((run.reason or "").removeprefix("waits "), ids)
        table.add_row(
            ids[run.run_id],
            Text.assemble(Row.from_record(run).name, "\n", (reason, "dim")),
            str(run.priority),
            Request.of(run).needs(),
        )
    return table


def _table() -> Table:
    from rich.table import Table

    gap = 2 if console().width >= _ROOMY else 1
    return Table(box=None, padding=(0, gap, 0, 0), header_style="dim", show_edge=False)
