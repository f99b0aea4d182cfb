"""`mosaic runs`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli import values, words
from mosaic.cli.output import console, print_json, say
from mosaic.cli.parser import Parser
from mosaic.cli.program import program
from mosaic.contract.errors import UserError, closest

if TYPE_CHECKING:
    from rich.table import Table

    from mosaic.client import RunRecord

_LIMIT = 20
_ROOMY = 100


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "runs",
        "[options]",
        "List runs, newest first.",
        examples=("", "--state training", "--algo ppo --env CartPole-v1 --all", "--tag baseline --json"),
    )
    parser.add_argument(
        "--state",
        "--status",
        action="append",
        default=[],
        metavar="STATE",
        help=f"only these: {', '.join(dict.fromkeys(_STATES))}; may be repeated",
    )
    parser.add_argument("--tag", action="append", default=[], help="only with this tag; may be repeated")
    parser.add_argument("--algo", help="only of this algorithm")
    parser.add_argument("--env", help="only on this environment")
    parser.add_argument(
        "--limit", type=values.count, default=_LIMIT, metavar="N", help=f"at most so many ({_LIMIT})"
    )
    parser.add_argument("--all", action="store_true", help="without a limit")
    parser.add_general(json="a list of runs")
    return parser


# What a person may type, and the (status, outcome) pairs it stands for; no outcome stands for any.
_STATES: dict[str, tuple[tuple[str, ...], str | None]] = {
    "waiting": (("INIT",), None),
    "starting": (("HSHK", "RDY"), None),
    "training": (("EXEC",), None),
    "paused": (("PAUSE",), None),
    "ended": (("TERM",), None),
    "completed": (("TERM",), "completed"),
    "cancelled": (("TERM",), "cancelled"),
    "timed_out": (("TERM",), "timed_out"),
    "failed": (("TERM", "FAULT"), "failed"),
}


def run(args: argparse.Namespace) -> int:
    from mosaic.client import Client

    wanted = [_pairs(name) for name in args.state]
    with Client.connect(args.var) as client:
        statuses = sorted({status for names, _ in wanted for status in names})
        narrowed = bool(args.algo or args.env or wanted)
        limit = 0 if args.all or narrowed else args.limit
        found = client.runs(statuses, args.tag, limit)
    found = [run for run in found if _matches(run, args, wanted)]
    if not args.all:
        found = found[: args.limit]
    if args.json:
        from mosaic.cli.shapes import run_json

        print_json([run_json(run) for run in found])
    elif not found:
        _say_empty(args)
    else:
        console().print(_table(found))
        if len(found) == args.limit and not args.all:
            say(f"These are the newest {args.limit}; `{program()} runs --all` lists all.")
    return 0


def _pairs(name: str) -> tuple[tuple[str, ...], str | None]:
    known = {**_STATES, **{status: ((status,), None) for status in words.STATES}}
    key = name.upper() if name.upper() in words.STATES else name.lower().replace(" ", "_")
    if key not in known:
        raise UserError(f"'{name}' is no state{closest(name, known) or '.'} Known: {', '.join(_STATES)}.")
    return known[key]


def _matches(
    run: RunRecord, args: argparse.Namespace, wanted: list[tuple[tuple[str, ...], str | None]]
) -> bool:
    asked = run.worker_config
    states = any(
        run.status in names and (outcome is None or run.outcome in (None, outcome))
        for names, outcome in wanted
    )
    return (
        (not wanted or states)
        and args.algo in (None, asked.get("algo"))
        and args.env in (None, asked.get("env_id"))
    )


def _say_empty(args: argparse.Namespace) -> None:
    if args.state or args.tag or args.algo or args.env:
        say(f"No run fits. `{program()} runs` lists all.")
    else:
        say(f"There is no run yet. Train the first:\n  {program()} train ppo CartPole-v1")


def _table(runs: list[RunRecord]) -> Table:
    from rich.table import Table
    from rich.text import Text

    from mosaic.cli.live.board import Row

    ids = words.unique_prefixes([run.run_id for run in runs])
    gap = 2 if console().width >= _ROOMY else 1
    table = Table(box=None, padding=(0, gap, 0, 0), header_style="dim", show_edge=False)
    table.add_column("id", no_wrap=True, min_width=max(map(len, ids.values())))
    table.add_column("name")
    for title in ("algo", "environment"):
        table.add_column(title, no_wrap=True, overflow="ellipsis")
    table.add_column("seed", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for title in ("done", "mean return", "age"):
        table.add_column(title, justify="right", no_wrap=True)
    for run in runs:
        asked, state = run.worker_config, Row.from_record(run).state
        table.add_row(
            ids[run.run_id],
            # The only column that gives way when the terminal is narrow.
            Text(run.run_name, no_wrap=True, overflow="ellipsis"),
            Text(Path(str(asked.get("algo", "–"))).name),
            Text(str(asked.get("env_id", "–"))),
            str(asked.get("seed", "–")),
            Text(state, style=words.style(state)),
            words.percent(run.headline.get("progress")),
            words.short(run.headline.get("mean_return")),
            words.age(run.submitted_at).removesuffix(" ago"),
        )
    return table
