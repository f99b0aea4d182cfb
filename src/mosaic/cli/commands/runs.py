"""`mosaic runs`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli import values, words
from mosaic.cli.output import console, print_json, say
from mosaic.cli.parser import Parser
from mosaic.cli.program import program
from mosaic.contract.errors import UserError, closest

if TYPE_CHECKING:
    from rich.text import Text

    from mosaic.client import Client, RunPage, RunQuery, RunRecord

_LIMIT = 20
_PAGE = 1000
_ROOMY = 100
_TO_THE_RIGHT = frozenset({"seed", "done", "mean return", "age"})
_GIVE_WAY = ("environment", "algo", "seed", "age", "mean return", "name", "done")
"""Which columns a narrow terminal goes without, the first one first: a name mostly tells the first two."""
_LEAST = {"name": 12, "algo": 12, "environment": 14}
"""How short these may become first."""


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "runs",
        "[options]",
        "List runs, newest first.",
        examples=("", "--state training", "--algo ppo --filter 'return>400'", "--tag baseline --json"),
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
        "--filter",
        action="append",
        default=[],
        metavar="TEXT",
        help="words and conditions as in the window: 'cart return>400 learning_rate=0.01 age<2d'; may be "
        "repeated",
    )
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
    from mosaic.cli.connecting import connect, holds_runs
    from mosaic.cli.shapes import run_json

    limit, query = 0 if args.all else args.limit, _query(args)
    if not holds_runs(args):
        if args.json:
            print_json([])
        else:
            _say_empty(args)
        return 0
    with connect(args) as client:
        first = client.page(query, min(limit or _PAGE, _PAGE), count=True)
        pages = _pages(client, query, first, limit)
        if args.json:
            print_json([run_json(run) for page in pages for run in page])
        elif not first.runs:
            _say_empty(args)
        else:
            widths: dict[str, int] = {}
            for page in pages:
                console().print(_lines(page, widths), soft_wrap=True, end="")
    if not args.json and first.total > limit > 0:
        say(f"These are the newest {limit:,} of {first.total:,}; --all lists all.")
    return 0


def _query(args: argparse.Namespace) -> RunQuery:
    from mosaic.client import RunQuery
    from mosaic.contract.run_filter import parse_terms

    for term in parse_terms(" ".join(args.filter)):
        if term.problem:
            raise UserError(f"--filter: {term.problem}")
    wanted = [_pairs(name) for name in args.state]
    # Of an ended run the outcome counts, unless ended ones of any outcome are wanted as well.
    any_end = any("TERM" in statuses and outcome is None for statuses, outcome in wanted)
    return RunQuery(
        statuses=sorted({status for statuses, _ in wanted for status in statuses}),
        outcomes=[] if any_end else sorted({outcome for _, outcome in wanted if outcome}),
        tags=args.tag,
        algo=args.algo or "",
        env_id=args.env or "",
        filter=" ".join(args.filter),
    )


def _pages(client: Client, query: RunQuery, first: RunPage, limit: int) -> Iterator[list[RunRecord]]:
    """The runs, as they come."""
    page, left = first, limit - len(first.runs)
    yield page.runs
    while page.cursor and (left > 0 or not limit):
        page = client.page(query, min(left, _PAGE) if limit else _PAGE, page.cursor)
        left -= len(page.runs)
        yield page.runs


def _pairs(name: str) -> tuple[tuple[str, ...], str | None]:
    known = {**_STATES, **{status: ((status,), None) for status in words.STATES}}
    key = name.upper() if name.upper() in words.STATES else name.lower().replace(" ", "_")
    if key not in known:
        raise UserError(f"'{name}' is no state{closest(name, known) or '.'} Known: {', '.join(_STATES)}.")
    return known[key]


def _say_empty(args: argparse.Namespace) -> None:
    if args.state or args.tag or args.algo or args.env or args.filter:
        say(f"No run fits. `{program()} runs` lists all.")
    else:
        say(f"There is no run yet. Train the first:\n  {program()} train ppo CartPole-v1")


def _lines(runs: Sequence[RunRecord], widths: dict[str, int]) -> Text:
    """A line for each run. `widths` are those of the lines above, which go on here; empty when this is first.

    All is padded by hand: a table of rich measures each cell several times, and there may be very many.
    """
    from rich.cells import cell_len, set_cell_size
    from rich.text import Text

    from mosaic.cli.live.board import Row

    ids = words.unique_prefixes([run.run_id for run in runs])
    rows = [_cells(run, ids[run.run_id], Row.from_record(run).state) for run in runs]
    gap = " " * (2 if console().width >= _ROOMY else 1)
    first = not widths
    if first:
        rows.insert(0, {column: column for column in rows[0]})
    for column in tuple(widths) or tuple(rows[0]):
        widths[column] = max(widths.get(column, 0), *(cell_len(row[column]) for row in rows))
    _make_fit(widths, len(gap), console().width)
    made = Text(no_wrap=True, overflow="crop", end="")
    for number, row in enumerate(rows):
        for column, width in widths.items():
            cell, style = row[column], words.style(row[column]) if column == "state" else ""
            if cell_len(cell) > width:
                cell = set_cell_size(cell, width - 1) + "…"
            blank = " " * (width - cell_len(cell))
            parts = (blank, cell) if column in _TO_THE_RIGHT else (cell, blank)
            made.append("".join(parts), style="dim" if first and number == 0 else style)
            made.append(gap)
        made.right_crop(len(gap))
        made.append("\n")
    return made


def _cells(run: RunRecord, short_id: str, state: str) -> dict[str, str]:
    asked = run.worker_config
    seed = asked.get("seed")
    return {
        "id": short_id,
        "name": run.run_name,
        "algo": Path(str(asked.get("algo") or "–")).name,
        "environment": str(asked.get("env_id") or "–"),
        "seed": "–" if seed is None else str(seed),
        "state": state,
        "done": words.percent(run.headline.get("progress")),
        "mean return": words.short(run.headline.get("mean_return")),
        "age": words.age(run.submitted_at).removesuffix(" ago"),
    }


def _make_fit(widths: dict[str, int], gap: int, room: int) -> None:
    """Shorten the longest words, then go without columns, until what is left fits."""
    for column in (*_GIVE_WAY, None):
        lacks = sum(widths.values()) + gap * (len(widths) - 1) - room
        least = {name: min(_LEAST[name], width) for name, width in widths.items() if name in _LEAST}
        if lacks <= sum(widths[name] - width for name, width in least.items()):
            for _ in range(lacks):
                longest = max(least, key=lambda name: (widths[name] > least[name], widths[name]))
                widths[longest] -= 1
            return
        if column is not None:
            del widths[column]
