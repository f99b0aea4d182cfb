"""`mosaic doctor`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mosaic.cli.output import console, print_json, say
from mosaic.cli.parser import Parser

if TYPE_CHECKING:
    from mosaic.cli.checks import Check


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "doctor",
        "[options]",
        "Check the installation: what is there, what is missing, and the command that gets it.\n"
        "Leaves with 1 when something that every run needs is broken.",
    )
    parser.add_general(json="an object with all findings")
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic import __version__
    from mosaic.cli.checks import all_checks
    from mosaic.contract.paths import VarPaths, resolve_var

    checks = list(all_checks(VarPaths((args.var or resolve_var()).resolve())))
    broken = [check for check in checks if check.broken]
    if args.json:
        print_json(
            {"ok": not broken, "version": __version__, "checks": [check.as_json() for check in checks]}
        )
    else:
        say(f"MOSAIC {__version__}")
        _print(checks)
        amount = "1 thing is" if len(broken) == 1 else f"{len(broken)} things are"
        say(f"\n{amount} broken: see ✗ above." if broken else "\nEverything that a run needs is there.")
    return 1 if broken else 0


def _print(checks: list[Check]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    group = ""
    for check in checks:
        if check.group != group:
            group = check.group
            table.add_row("", "", "")
            table.add_row("", Text(group, style="bold"), "")
        mark = Text("✓", "green") if check.ok else Text("✗", "red") if check.required else Text("–", "dim")
        table.add_row(mark, check.name, Text(check.detail))
        if not check.ok:
            table.add_row("", "", Text(check.fix, style="cyan"))
    console().print(table)
