"""`runs`, `policies` and `scripts`: lists, newest first."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text

from mosaic.cli.commands.columns import chosen_columns, column_text, column_values, numeric
from mosaic.cli.commands.filters import wanted_runs
from mosaic.cli.live.board import Row
from mosaic.cli.output import console, cut, place_text, print_json, program, say, table
from mosaic.cli.runs import connect, holds_runs, run_json
from mosaic.client import Client, RunPage, RunQuery, RunRecord
from mosaic.client.configs import each_policy
from mosaic.contract import words
from mosaic.contract.capabilities import PolicyFacts, ScriptCatalog, discover_workers
from mosaic.contract.errors import UserError, closest
from mosaic.contract.outside import bytes_text
from mosaic.contract.paths import VarPaths, choose_var
from mosaic.contract.run_filter import WHOLE, parse_terms

_PAGE = 1000
_ROOMY = 100
_TO_THE_RIGHT = frozenset({"seed", "done", "mean return", "age"})
_GIVE_WAY = ("environment", "algo", "seed", "age", "mean return", "name", "done")
"""Which columns a narrow terminal goes without, the first one first: a name mostly tells the first two."""
_LEAST = {"name": 12, "algo": 12, "environment": 14}
"""How short these may become first."""
_LEAST_CHOSEN = 6


def run_runs(args: argparse.Namespace) -> int:
    limit, query = 0 if args.all else args.limit, _query(args)
    columns = [] if args.columns is None else chosen_columns(args.columns)
    if columns:
        query = replace(query, fields=WHOLE)
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
            told = [_chosen(run, columns) if columns else run_json(run) for page in pages for run in page]
            print_json(told)
        elif not first.runs:
            _say_empty(args)
        else:
            widths: dict[str, int] = {}
            for page in pages:
                console().print(_lines(page, widths, columns), soft_wrap=True, end="")
    if not args.json and first.total > limit > 0:
        say(f"These are the newest {limit:,} of {first.total:,}; --all lists all.")
    return 0


def _query(args: argparse.Namespace) -> RunQuery:
    text, (statuses, outcomes) = wanted_runs(args)
    for term in parse_terms(text):
        if term.problem:
            raise UserError(f"{'--filter: ' if args.filter else ''}{term.problem}")
    wanted = [_pairs(name) for name in args.state]
    # Of an ended run the outcome counts, unless ended ones of any outcome are wanted as well.
    any_end = any("TERM" in named and outcome is None for named, outcome in wanted)
    return RunQuery(
        statuses=statuses or sorted({status for named, _ in wanted for status in named}),
        outcomes=outcomes or ([] if any_end else sorted({outcome for _, outcome in wanted if outcome})),
        tags=args.tag,
        algo=args.algo or "",
        env_id=args.env or "",
        filter=text,
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
    names = words.STATES_BY_NAME
    known = {**names, **{status: ((status,), None) for status in words.STATES}}
    key = name.upper() if name.upper() in words.STATES else name.lower().replace(" ", "_")
    if key not in known:
        raise UserError(f"'{name}' is not a state{closest(name, known) or '.'} Known: {', '.join(names)}.")
    return known[key]


def _say_empty(args: argparse.Namespace) -> None:
    if args.state or args.tag or args.algo or args.env or args.filter or args.wanted:
        say(f"No run matches. `{program()} runs` lists all.")
    else:
        say(f"There is no run yet. Train the first:\n  {program()} train ppo CartPole-v1")


def _lines(runs: Sequence[RunRecord], widths: dict[str, int], columns: Sequence[str] = ()) -> Text:
    """A line for each run. `widths` are those of the lines above, which go on here; empty when this is first.

    All is padded by hand: a table of rich measures each cell several times, and there may be very many.
    """
    ids = words.unique_prefixes([run.run_id for run in runs])
    values = [column_values(run, columns) for run in runs]
    rows = [_cells(run, ids[run.run_id]) for run in runs] if not columns else _chosen_cells(values, ids)
    numbers = _TO_THE_RIGHT | numeric(values)
    gap = " " * (2 if console().width >= _ROOMY else 1)
    first = not widths
    if first:
        rows.insert(0, {column: column for column in rows[0]})
    for column in tuple(widths) or tuple(rows[0]):
        widths[column] = max(widths.get(column, 0), *(cell_len(row[column]) for row in rows))
    if columns:
        _shorten(widths, len(gap), console().width)
    else:
        _make_fit(widths, len(gap), console().width)
    made = Text(no_wrap=True, overflow="crop", end="")
    for number, row in enumerate(rows):
        for column, width in widths.items():
            cell, style = row[column], words.style(row[column]) if column == "state" else ""
            if cell_len(cell) > width:
                cell = set_cell_size(cell, width - 1) + "…"
            blank = " " * (width - cell_len(cell))
            parts = (blank, cell) if column in numbers else (cell, blank)
            made.append("".join(parts), style="dim" if first and number == 0 else style)
            made.append(gap)
        made.right_crop(len(gap))
        made.append("\n")
    return made


def _chosen_cells(values: Sequence[Mapping[str, Any]], ids: Mapping[str, str]) -> list[dict[str, str]]:
    return [
        {name: ids[value] if name == "id" else column_text(name, value) for name, value in one.items()}
        for one in values
    ]


def _shorten(widths: dict[str, int], gap: int, room: int) -> None:
    """Columns that somebody asked for all stay: the widest give way, to a few letters each."""
    while sum(widths.values()) + gap * (len(widths) - 1) > room and max(widths.values()) > _LEAST_CHOSEN:
        widths[max(widths, key=widths.__getitem__)] -= 1


def _chosen(run: RunRecord, columns: Sequence[str]) -> dict[str, Any]:
    return {"run_id": run.run_id, "columns": column_values(run, columns)}


def _cells(run: RunRecord, short_id: str) -> dict[str, str]:
    asked = run.worker_config
    seed = asked.get("seed")
    return {
        "id": short_id,
        "name": run.run_name,
        "algo": Path(str(asked.get("algo") or "–")).name,
        "environment": str(asked.get("env_id") or "–"),
        "seed": "–" if seed is None else str(seed),
        "state": Row(run).state,
        "done": words.percent(run.headline.get("progress")),
        "mean return": words.short(run.headline.get("mean_return")),
        "age": words.ago(run.submitted_at).removesuffix(" ago"),
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


def run_policies(args: argparse.Namespace) -> int:
    # No more folders are looked into than are needed: there may be very many.
    fitting = (
        facts
        for facts in each_policy(args.var, (args.run or "").upper())
        if args.algo in (None, facts.algo) and args.env in (None, facts.env_id)
        if facts.best or not args.best
    )
    found = list(fitting if args.all else islice(fitting, args.limit + 1))
    shown = found if args.all else found[: args.limit]
    if args.json:
        print_json([facts.as_json() for facts in shown])
    elif shown:
        console().print(_policies(shown))
        if len(shown) < len(found):
            say(f"These are the newest {len(shown)}; --all lists all.")
        # Of some files nobody can tell what made them.
        more = "" if shown[0].algo and shown[0].env_id else " --algo NAME --env ID"
        first = shown[0].run_id or shown[0].repo or shown[0].path
        say(f"To see how good one is: {program()} eval {first}{more}")
        runs = place_text(VarPaths(choose_var(args.var)).runs)
        say(f"The files are in the folders of their runs, in {runs}.")
    elif next(each_policy(args.var), None):
        say(f"No policy matches. `{program()} policies` lists all.")
    else:
        say(f"There is no policy yet. Train the first:\n  {program()} train ppo CartPole-v1")
    return 0


def _policies(policies: Sequence[PolicyFacts]) -> Table:
    ids = words.unique_prefixes([facts.run_id or "" for facts in policies])
    numbers = ("seed", "step", "mean return", "size", "age")
    titles, fold = ("run", "kind", "algo", "environment", *numbers, "file"), ("environment", "file")
    listed = table(*titles, right=numbers, fold=fold, least=max(map(len, ids.values())))
    for facts in policies:
        kind = "model" if facts.is_model else "checkpoint"
        listed.add_row(
            ids[facts.run_id or ""],
            f"best {kind}" if facts.best else kind,
            Text(facts.algo or "–"),
            cut(facts.env_id or "–"),
            "–" if facts.seed is None else str(facts.seed),
            words.whole(facts.step),
            words.short(facts.mean_return),
            bytes_text(facts.size),
            words.ago(facts.modified).removesuffix(" ago"),
            cut(facts.repo or Path(facts.path).name),
        )
    return listed


def run_scripts(args: argparse.Namespace) -> int:
    catalogs = [worker.load_catalog() for worker in discover_workers().values() if worker.catalog]
    found = [entry for one in catalogs if isinstance(one, ScriptCatalog) for entry in one.scripts()]
    if args.json:
        print_json(found)
        return 0
    if not found:
        say("There is no script yet.")
        return 0
    titles = ("script", "what it does", "environments", "phases", "steps", "by")
    listed = table(*titles, right=("phases", "steps"), fold=("what it does", "by"), gap=2)
    for script in found:
        if script["problem"]:
            listed.add_row(script["name"], Text(script["problem"], style="red"))
            continue
        listed.add_row(
            script["name"],
            Text(script["description"] or "–"),
            Text(script["env_family"] or "–"),
            words.whole(script["phases"]),
            words.whole(script["total_timesteps"]),
            Text(script["author"] or "–"),
        )
    console().print(listed)
    say(f"\n  {program()} train {found[0]['name']}")
    return 0
