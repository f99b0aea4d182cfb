"""`mosaic scripts`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mosaic.cli import words
from mosaic.cli.output import console, print_json, say
from mosaic.cli.parser import Parser
from mosaic.cli.program import program
from mosaic.contract.capabilities import ScriptCatalog
from mosaic.contract.workers import discover_workers

if TYPE_CHECKING:
    from rich.table import Table


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "scripts",
        "[options]",
        "List the shell scripts that train by name: those that come with MOSAIC, and those in the folder "
        "that $MOSAIC_CUSTOM_SCRIPTS_DIR names. Any other script trains by its path.",
        examples=("", "--json"),
    )
    parser.add_general(json="a list of scripts with what their heads say")
    return parser


def run(args: argparse.Namespace) -> int:
    catalogs = [worker.load_catalog() for worker in discover_workers().values() if worker.catalog]
    found = [entry for one in catalogs if isinstance(one, ScriptCatalog) for entry in one.scripts()]
    if args.json:
        print_json(found)
    elif not found:
        say("There is no script yet.")
    else:
        console().print(_table(found))
        say(f"\n  {program()} train {found[0]['name']}")
    return 0


def _table(scripts: Sequence[dict[str, Any]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    table.add_column("script", no_wrap=True)
    table.add_column("what it does", overflow="fold")
    table.add_column("environments", no_wrap=True)
    for title in ("phases", "steps"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("by", overflow="fold")
    for script in scripts:
        if script["problem"]:
            table.add_row(script["name"], Text(script["problem"], style="red"))
            continue
        table.add_row(
            script["name"],
            Text(script["description"] or "–"),
            Text(script["env_family"] or "–"),
            words.whole(script["phases"]),
            words.whole(script["total_timesteps"]),
            Text(script["author"] or "–"),
        )
    return table
