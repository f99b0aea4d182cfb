"""`gc`: what goes by a rule, told, asked for and removed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from rich.table import Table
from rich.text import Text

from mosaic.cli import words
from mosaic.cli.live.board import Row
from mosaic.cli.output import console, cut, print_json, say, table
from mosaic.cli.runs import connect, holds_runs
from mosaic.cli.words import program
from mosaic.client import Client, RunQuery, RunRecord
from mosaic.client.retention import (
    LeftoverKind,
    Plan,
    Rule,
    ended_at,
    find_leftovers,
    make_plan,
    read_ended,
    remove_leftover,
)
from mosaic.contract.errors import NotFoundError, UserError, closest
from mosaic.contract.outside import bytes_text

_MOST_ROWS = 50
_LEFTOVERS = {
    LeftoverKind.LOG: ("old log of a removed run", "old logs of removed runs"),
    LeftoverKind.LINK: ("link for TensorBoard that leads nowhere", "links for TensorBoard that lead nowhere"),
    LeftoverKind.TEMPORARY: ("unfinished file of a write", "unfinished files of writes"),
}


def run_gc(args: argparse.Namespace) -> int:
    rule = Rule(
        older_than=args.older_than,
        keep=args.keep,
        outcomes=frozenset(_outcome(name) for text in args.outcome for name in text.split(",")),
        tags=frozenset(args.tag),
        not_tags=frozenset(args.not_tag),
    )
    sure = args.yes or args.dry_run
    if args.json and not sure:
        raise UserError("gc --json does not ask: add --yes to remove, or --dry-run to be told only.")
    if not holds_runs(args):
        nothing = Plan((), {}, ())
        if args.json:
            print_json(_plan_json(nothing, removed=False, freed=0))
        else:
            _describe(nothing, rule)
        return 0
    with connect(args) as client:
        leftovers, now = find_leftovers(client.paths), time.time()
        known = list(client.each(RunQuery(fields=("run_id", "status"))))
        plan = make_plan(read_ended(client, rule, now), known, leftovers, rule, now)
        if not args.json:
            _describe(plan, rule)
        does = not args.dry_run and not plan.empty and (args.yes or _agreed(_amount(plan)))
        freed = _carry_out(client, plan) if does else 0
    if args.json:
        print_json(_plan_json(plan, removed=does, freed=freed))
    elif does:
        say(f"Removed {_amount(plan)}, {bytes_text(freed)} freed.")
    elif not args.dry_run and not plan.empty:
        say("Nothing was removed.")
        return 1
    return 0


def _outcome(text: str) -> str:
    name = text.strip().lower().replace(" ", "_").replace("-", "_")
    if name not in words.OUTCOMES:
        hint = closest(name, words.OUTCOMES) or f": it is one of {', '.join(words.OUTCOMES)}."
        raise UserError(f"--outcome: '{text}' is not an outcome{hint}")
    return name


def _agreed(what: str) -> bool:
    if not sys.stdin.isatty():
        raise UserError(
            f"gc asks before it removes anything, and nobody can answer here: `{program()} gc --yes` does it."
        )
    return input(f"Remove {what}? [y/N] ").strip().lower() in ("y", "yes")


def _describe(plan: Plan, rule: Rule) -> None:
    """What would go and how much that frees."""
    if plan.empty:
        say(f"Nothing to remove: there is no run that {_which(rule)}, and nothing is left over.")
        return
    if plan.runs:
        console().print(_runs(plan))
        say("")
    console().print(_amounts(plan, rule))


def _amount(plan: Plan) -> str:
    """`3 runs and 1 leftover`."""
    counts = ((len(plan.runs), "run"), (len(plan.leftovers), "leftover"))
    return " and ".join(words.count(amount, name) for amount, name in counts if amount)


def _plan_json(plan: Plan, removed: bool, freed: int) -> dict[str, Any]:
    """The plan for programs."""
    return {
        "removed": removed,
        "bytes": plan.size,
        "freed_bytes": freed,
        "runs": [
            {
                "run_id": run.run_id,
                "run_name": run.run_name,
                "outcome": run.outcome,
                "ended_at": ended_at(run),
                "run_dir": run.run_dir,
                "bytes": plan.sizes[run.run_id],
            }
            for run in plan.runs
        ],
        "leftovers": [
            {"kind": item.kind, "path": str(item.path), "bytes": item.size} for item in plan.leftovers
        ],
    }


def _carry_out(client: Client, plan: Plan) -> int:
    """Remove everything in the plan; gives the bytes freed. What an interrupt leaves goes the next time."""
    freed, gone, total = 0, 0, len(plan.runs) + len(plan.leftovers)
    try:
        with console().status("") as status:
            for run in plan.runs:
                status.update(f"Removing {gone + 1} of {total}")
                # Somebody else may be faster.
                with suppress(NotFoundError):
                    freed += client.remove(run.run_id)
                gone += 1
            for item in plan.leftovers:
                remove_leftover(item)
                freed, gone = freed + item.size, gone + 1
    except KeyboardInterrupt:
        say(f"Stopped: {gone} of {total} removed, {bytes_text(freed)} freed; the same command goes on.")
        raise
    return freed


def _which(rule: Rule) -> str:
    """The rule in words: `ended more than 30 days ago as failed, with tag a`."""
    parts = [f"ended more than {words.duration(rule.older_than)} ago" if rule.older_than else "ended"]
    if rule.outcomes:
        parts.append(f"as {' or '.join(words.OUTCOMES[name] for name in sorted(rule.outcomes))}")
    said = " ".join(parts)
    for tags, how in ((rule.tags, "with"), (rule.not_tags, "without")):
        if tags:
            said += f", {how} tag {', '.join(sorted(tags))}"
    return said + (f", but for the newest {rule.keep}" if rule.keep else "")


def _runs(plan: Plan) -> Table:
    shown, rest = plan.runs[:_MOST_ROWS], plan.runs[_MOST_ROWS:]
    ids = words.unique_prefixes([run.run_id for run in shown])
    titles, least = ("id", "run", "outcome", "ended", "size"), max(map(len, ids.values()))
    listed = table(*titles, right=("ended", "size"), fold=("run",), least=least)
    for run in shown:
        row = Row.from_record(run)
        listed.add_row(
            ids[run.run_id],
            cut(row.name).append(f"  {', '.join(run.tags)}", style="dim"),
            Text(row.state, style=words.style(row.state)),
            words.age(ended_at(run)),
            bytes_text(plan.sizes[run.run_id]),
        )
    if rest:
        listed.add_row("", f"and {len(rest)} more", "", "", bytes_text(_size(plan, rest)))
    return listed


def _amounts(plan: Plan, rule: Rule) -> Table:
    listed = Table.grid(padding=(0, 2, 0, 0))
    listed.add_column(justify="right", no_wrap=True)
    listed.add_column(overflow="fold")
    listed.add_column(justify="right", no_wrap=True)
    if plan.runs:
        what = f"run{'s' * (len(plan.runs) > 1)} that {_which(rule)}"
        listed.add_row(str(len(plan.runs)), what, bytes_text(_size(plan, plan.runs)))
    for kind, (singular, plural) in _LEFTOVERS.items():
        found = [item for item in plan.leftovers if item.kind == kind]
        if found:
            name = singular if len(found) == 1 else plural
            listed.add_row(str(len(found)), name, bytes_text(sum(item.size for item in found)))
    listed.add_row("", Text("in all", style="bold"), Text(bytes_text(plan.size), style="bold"))
    return listed


def _size(plan: Plan, runs: Sequence[RunRecord]) -> int:
    return sum(plan.sizes[run.run_id] for run in runs)
