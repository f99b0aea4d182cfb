"""`mosaic gc`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mosaic.cli import values
from mosaic.cli.output import print_json, say
from mosaic.cli.parser import Parser
from mosaic.cli.program import program
from mosaic.contract.errors import UserError, closest
from mosaic.contract.sizes import bytes_text

if TYPE_CHECKING:
    from mosaic.client.retention import Rule

_OUTCOMES = ("completed", "cancelled", "timed_out", "failed")
_USUAL_DAYS = 30


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "gc",
        "[options]",
        f"Remove ended runs by rule; without options those that ended more than {_USUAL_DAYS} days ago.\n"
        "A run goes when every rule applies to it. What belongs to no run goes too: old logs of removed\n"
        "runs, links that lead nowhere, unfinished files. Live runs are never touched. gc tells what would\n"
        "go and how much that frees, and asks.",
        examples=(
            "--dry-run",
            "--outcome failed,cancelled --older-than 2d",
            "--keep 50 --not-tag paper --yes",
        ),
    )
    parser.add_argument(
        "--older-than",
        type=values.age,
        default=_USUAL_DAYS * 86_400.0,
        metavar="AGE",
        help=f"ended so long ago: 30d, 12h, 2w, or 0 for any ({_USUAL_DAYS}d)",
    )
    parser.add_argument(
        "--keep", type=values.natural, default=0, metavar="N", help="the newest N ended runs always stay"
    )
    parser.add_argument(
        "--outcome", action="append", default=[], metavar="LIST", help=f"only these: {','.join(_OUTCOMES)}"
    )
    parser.add_argument("--tag", action="append", default=[], help="only with this tag; may be repeated")
    parser.add_argument(
        "--not-tag", action="append", default=[], metavar="TAG", help="none with this tag; may be repeated"
    )
    parser.add_argument("--dry-run", action="store_true", help="only tell what would go")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_general(json="an object with what goes, and whether it is gone")
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic.cli.collecting import amount, carry_out, describe, plan_json
    from mosaic.cli.connecting import connect, holds_runs
    from mosaic.client import RunQuery
    from mosaic.client.retention import Plan, find_leftovers, make_plan, read_ended

    rule = _rule(args)
    sure = args.yes or args.dry_run
    if args.json and not sure:
        raise UserError("gc --json does not ask: add --yes to remove, or --dry-run to be told only.")
    if not holds_runs(args):
        nothing = Plan((), {}, ())
        if args.json:
            print_json(plan_json(nothing, removed=False, freed=0))
        else:
            describe(nothing, rule)
        return 0
    with connect(args) as client:
        leftovers, now = find_leftovers(client.paths), time.time()
        known = list(client.each(RunQuery(fields=("run_id", "status"))))
        plan = make_plan(read_ended(client, rule, now), known, leftovers, rule, now)
        if not args.json:
            describe(plan, rule)
        does = not args.dry_run and not plan.empty and (args.yes or _agreed(amount(plan)))
        freed = carry_out(client, plan) if does else 0
    if args.json:
        print_json(plan_json(plan, removed=does, freed=freed))
    elif does:
        say(f"Removed {amount(plan)}, {bytes_text(freed)} freed.")
    elif not args.dry_run and not plan.empty:
        say("Nothing was removed.")
        return 1
    return 0


def _rule(args: argparse.Namespace) -> Rule:
    from mosaic.client.retention import Rule

    return Rule(
        older_than=args.older_than,
        keep=args.keep,
        outcomes=frozenset(_outcome(name) for text in args.outcome for name in text.split(",")),
        tags=frozenset(args.tag),
        not_tags=frozenset(args.not_tag),
    )


def _outcome(text: str) -> str:
    name = text.strip().lower().replace(" ", "_").replace("-", "_")
    if name not in _OUTCOMES:
        hint = closest(name, _OUTCOMES) or f": it is one of {', '.join(_OUTCOMES)}."
        raise UserError(f"--outcome: '{text}' is no outcome{hint}")
    return name


def _agreed(what: str) -> bool:
    if not sys.stdin.isatty():
        raise UserError(
            f"gc asks before it removes anything, and nobody can answer here: `{program()} gc --yes` does it."
        )
    return input(f"Remove {what}? [y/N] ").strip().lower() in ("y", "yes")
