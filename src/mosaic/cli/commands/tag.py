"""`mosaic tag RUN…`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mosaic.cli.finding import RUN_HELP
from mosaic.cli.output import print_json, say
from mosaic.cli.parser import Parser

if TYPE_CHECKING:
    from mosaic.client import RunRecord


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "tag",
        "RUN... [--add TAG] [--remove TAG] [--name NAME] [--notes TEXT] [options]",
        "Change tags, name and notes of runs, in whatever state they are. Without a change, tell them.",
        examples=("last", "last --add best", "01K9ZW 01K9ZX --add paper --remove draft --name final"),
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help=RUN_HELP)
    parser.add_argument("--add", metavar="TAG", action="append", default=[], help="may be repeated")
    parser.add_argument("--remove", metavar="TAG", action="append", default=[], help="may be repeated")
    parser.add_argument("--name", help="how lists call the run")
    parser.add_argument("--notes", metavar="TEXT", help="kept with the run; an empty text takes them away")
    parser.add_general(json="the runs with their labels")
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic.cli.connecting import connect
    from mosaic.cli.finding import find_runs
    from mosaic.cli.shapes import run_json

    with connect(args) as client:
        found = find_runs(client, args.runs)
        if args.add or args.remove or args.name is not None or args.notes is not None:
            found = [client.label(one.run_id, args.name, _tags(one, args), args.notes) for one in found]
    if args.json:
        print_json([{**run_json(one), "notes": one.notes} for one in found])
        return 0
    for one in found:
        labels = [one.run_name, *(f"#{tag}" for tag in one.tags), *([one.notes] if one.notes else [])]
        say(f"{one.run_id}  {'  '.join(labels)}")
    return 0


def _tags(run: RunRecord, args: argparse.Namespace) -> list[str] | None:
    if not args.add and not args.remove:
        return None
    gone = {tag.removeprefix("#") for tag in args.remove}
    return [tag for tag in (*run.tags, *args.add) if tag.removeprefix("#") not in gone]
