"""`mosaic policies`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli import values, words
from mosaic.cli.output import console, print_json, say
from mosaic.cli.parser import Parser
from mosaic.cli.program import program
from mosaic.contract.paths import VarPaths, resolve_var
from mosaic.contract.sizes import bytes_text

if TYPE_CHECKING:
    from rich.table import Table

    from mosaic.contract.capabilities import PolicyFacts

_LIMIT = 30
_ROOMY = 120


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "policies",
        "[options]",
        "List every trained model and full checkpoint, those of the newest run first.",
        examples=("", "--algo ppo --env CartPole-v1 --best", "--run 01K9ZW --json"),
    )
    parser.add_argument("--run", metavar="RUN", help="only of runs whose id begins so")
    parser.add_argument("--algo", help="only of this algorithm")
    parser.add_argument("--env", help="only of this environment")
    parser.add_argument("--best", action="store_true", help="only the best of each run")
    parser.add_argument(
        "--limit", type=values.count, default=_LIMIT, metavar="N", help=f"at most so many ({_LIMIT})"
    )
    parser.add_argument("--all", action="store_true", help="without a limit")
    parser.add_general(json="a list of policies, with their paths")
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic.client.configs import each_policy

    # No more folders are looked into than are needed: there may be very many.
    fitting = (facts for facts in each_policy(args.var, (args.run or "").upper()) if _matches(facts, args))
    found = list(fitting if args.all else islice(fitting, args.limit + 1))
    shown = found if args.all else found[: args.limit]
    if args.json:
        print_json([facts.as_json() for facts in shown])
    elif shown:
        console().print(_table(shown))
        if len(shown) < len(found):
            say(f"These are the newest {len(shown)}; --all lists all.")
        # Of some files nobody can tell what made them.
        more = "" if shown[0].algo and shown[0].env_id else " --algo NAME --env ID"
        say(f"To see how good one is: {program()} eval {shown[0].run_id or shown[0].path}{more}")
        say(f"The files lie in the folders of their runs, in {words.place(_runs(args.var))}.")
    elif next(each_policy(args.var), None):
        say(f"No policy fits. `{program()} policies` lists all.")
    else:
        say(f"There is no policy yet. Train the first:\n  {program()} train ppo CartPole-v1")
    return 0


def _runs(var: Path | None) -> Path:
    return VarPaths((var or resolve_var()).resolve()).runs


def _matches(facts: PolicyFacts, args: argparse.Namespace) -> bool:
    return (
        args.algo in (None, facts.algo) and args.env in (None, facts.env_id) and (facts.best or not args.best)
    )


def _table(policies: Sequence[PolicyFacts]) -> Table:
    from rich.table import Table
    from rich.text import Text

    ids = words.unique_prefixes([facts.run_id or "" for facts in policies])
    gap = 2 if console().width >= _ROOMY else 1
    table = Table(box=None, padding=(0, gap, 0, 0), header_style="dim", show_edge=False)
    table.add_column("run", no_wrap=True, min_width=max(map(len, ids.values())))
    table.add_column("kind", no_wrap=True)
    table.add_column("algo", no_wrap=True)
    table.add_column("environment")
    for title in ("seed", "step", "mean return", "size", "age"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("file")
    for facts in policies:
        kind = "model" if facts.is_model else "checkpoint"
        table.add_row(
            ids[facts.run_id or ""],
            f"best {kind}" if facts.best else kind,
            Text(facts.algo or "–"),
            # This and the file's name are the columns that give way when the terminal is narrow.
            Text(facts.env_id or "–", no_wrap=True, overflow="ellipsis"),
            "–" if facts.seed is None else str(facts.seed),
            words.whole(facts.step),
            words.short(facts.mean_return),
            bytes_text(facts.size),
            words.age(facts.modified).removesuffix(" ago"),
            Text(Path(facts.path).name, no_wrap=True, overflow="ellipsis"),
        )
    return table
