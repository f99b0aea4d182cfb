"""`mosaic extras [list|install NAMES]`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mosaic.cli.output import console, print_json, say
from mosaic.cli.parser import Parser
from mosaic.cli.program import program
from mosaic.contract.errors import UserError, closest

if TYPE_CHECKING:
    from rich.table import Table

    from mosaic.contract.extras import ExtraSet

_ACTIONS = ("list", "install")


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "extras",
        "[list | install NAMES] [options]",
        "List or install the optional sets of packages that some environments and trackers need.",
        examples=("", "install mujoco", "install minigrid,video"),
    )
    parser.add_argument(
        "action", metavar="ACTION", nargs="?", default="list", help=f"{' or '.join(_ACTIONS)} (list)"
    )
    parser.add_argument("names", metavar="NAMES", nargs="*", help="the sets, separated by commas or spaces")
    parser.add_general(json="a list of the sets with their packages")
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic.contract.extras import extra_sets, install_extras

    if args.action not in _ACTIONS:
        hint = closest(args.action, _ACTIONS) or f"; it takes {' and '.join(_ACTIONS)}."
        raise UserError(f"extras cannot '{args.action}'{hint}")
    names = [name for word in args.names for name in word.split(",") if name]
    if args.action == "list" and names:
        raise UserError(f"extras list takes no names: `{program()} extras install {','.join(names)}`?")
    if args.action == "install":
        install_extras(names, quiet=args.json)
    if args.json:
        print_json([one.as_json() for one in extra_sets()])
    elif args.action == "list":
        console().print(_table(extra_sets()))
        say(f"Install with `{program()} extras install NAME,NAME`.")
    return 0


def _table(sets: list[ExtraSet]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("installed", no_wrap=True)
    table.add_column("for", overflow="fold")
    for one in sets:
        there = Text("yes", style="green") if one.installed else Text("no", style="dim")
        table.add_row(one.name, there, Text(one.purpose))
    return table
