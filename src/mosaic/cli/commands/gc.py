"""`gc`: rules over runs and what lies beside them; what goes by them is told, asked for and removed."""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from rich.table import Column, Table
from rich.text import Text

from mosaic.cli.live.board import Row
from mosaic.cli.output import agreed, console, cut, print_json, say, table
from mosaic.cli.runs import connect, holds_runs
from mosaic.client import Client, RunQuery, RunRecord
from mosaic.contract import words
from mosaic.contract.errors import NotFoundError, UserError, closest
from mosaic.contract.outside import bytes_text
from mosaic.contract.paths import VarPaths

DAY = 86_400.0
_TEMPORARY_AGE = DAY
"""No write takes a day: a temporary file that is older was left by an interrupted one."""

_RUN_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
# What `write_atomic` calls its temporary file, for the kinds of files that we write with it.
_TEMPORARY = re.compile(r"\..+\.(?:json|cleanrl_model|npz)\.[a-z0-9_]{8}")


@dataclass(frozen=True)
class Rule:
    """Which ended runs may go: those to which every part of it applies."""

    older_than: float = 30 * DAY
    """Seconds since the run ended."""
    keep: int = 0
    """So many of the newest ended runs stay, whatever else is said."""
    outcomes: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    not_tags: frozenset[str] = frozenset()

    def covers(self, run: RunRecord) -> bool:
        """Whether outcome and tags fit."""
        tags = frozenset(run.tags)
        fits = not self.outcomes or run.outcome in self.outcomes
        return fits and self.tags <= tags and not self.not_tags & tags


class LeftoverKind(StrEnum):
    LOG = "log"
    """The log of a run that was removed."""
    LINK = "link"
    """A dangling TensorBoard link."""
    TEMPORARY = "temporary"
    """The unfinished file of an interrupted write."""


@dataclass(frozen=True)
class Leftover:
    """Something beside the runs that may belong to nobody. `run_id` is the run it was made for, if one is."""

    kind: LeftoverKind
    path: Path
    size: int
    changed_at: float
    run_id: str | None


@dataclass(frozen=True)
class Plan:
    """What goes, with the size of each run's folder."""

    runs: tuple[RunRecord, ...]
    sizes: Mapping[str, int]
    leftovers: tuple[Leftover, ...]

    @property
    def size(self) -> int:
        return sum(self.sizes[run.run_id] for run in self.runs) + sum(item.size for item in self.leftovers)

    @property
    def empty(self) -> bool:
        return not self.runs and not self.leftovers


def ended_at(run: RunRecord) -> float:
    return run.ended_at or run.submitted_at


def surplus_runs(runs: Iterable[RunRecord], rule: Rule, now: float) -> list[RunRecord]:
    """The ended runs that the rule lets go, the longest ended first."""
    ended = sorted((run for run in runs if run.ended), key=lambda run: (ended_at(run), run.run_id))
    old = ended[: max(0, len(ended) - rule.keep)]
    return [run for run in old if now - ended_at(run) >= rule.older_than and rule.covers(run)]


def surplus_leftovers(
    leftovers: Iterable[Leftover], runs: Sequence[RunRecord], going: Collection[str], rule: Rule, now: float
) -> list[Leftover]:
    """What belongs to none of `runs`; what lies in the folder of a run in `going` goes with that."""
    known = {run.run_id for run in runs}
    untouched = {run.run_id for run in runs if not run.ended} | set(going)

    def is_surplus(item: Leftover) -> bool:
        age = now - item.changed_at
        if item.kind == LeftoverKind.LOG:
            return item.run_id not in known and age >= rule.older_than
        if item.run_id in untouched:
            return False
        return item.kind == LeftoverKind.LINK or age >= _TEMPORARY_AGE

    return [item for item in leftovers if is_surplus(item)]


def make_plan(
    ended: Iterable[RunRecord],
    known: Sequence[RunRecord],
    leftovers: Iterable[Leftover],
    rule: Rule,
    now: float,
) -> Plan:
    """What goes by the rule, of runs that `read_ended` gave. `known` are all runs, of which id and status do.

    Find the leftovers before the runs: then each live one has its run there.
    """
    going = surplus_runs(ended, rule, now)
    sizes = {run.run_id: folder_size(Path(run.run_dir)) for run in going}
    return Plan(tuple(going), sizes, tuple(surplus_leftovers(leftovers, known, sizes, rule, now)))


def read_ended(client: Client, rule: Rule, now: float) -> list[RunRecord]:
    """The ended runs that a rule may let go, and the newest that it keeps: of the others it needs nothing."""
    fields = ("run_id", "run_name", "status", "outcome", "tags", "submitted_at", "ended_at", "run_dir")
    ended = RunQuery(statuses=("TERM",), order_by="ended", fields=(*fields, "brief_json"))
    old = replace(
        ended,
        outcomes=sorted(rule.outcomes),
        tags=sorted(rule.tags),
        without_tags=sorted(rule.not_tags),
        ended_before=math.nextafter(max(0.0, now - rule.older_than), math.inf),
    )
    newest = client.each(ended, rule.keep) if rule.keep else ()
    return list({run.run_id: run for run in (*newest, *client.each(old))}.values())


def find_leftovers(paths: VarPaths) -> list[Leftover]:
    """Everything beside the runs that could belong to nobody, in a settled order."""
    found = [*_logs(paths), *_links(paths), *_temporaries(paths)]
    return sorted(found, key=lambda item: (item.kind, item.path))


def remove_leftover(item: Leftover) -> None:
    """Remove it; that somebody else has done so already is not an error."""
    with suppress(FileNotFoundError):
        if item.kind == LeftoverKind.LOG:
            shutil.rmtree(item.path)
        else:
            item.path.unlink()


def folder_size(folder: Path) -> int:
    """The bytes of all files below; 0 when there is no such folder."""
    return sum(about.st_size for _, about in _files(folder))


def _logs(paths: VarPaths) -> Iterator[Leftover]:
    for folder in _folders(paths.logs / "trainer"):
        files = [about for _, about in _files(folder)]
        # One without files was made by a run that is just starting.
        changed = max((about.st_mtime for about in files), default=time.time())
        size = sum(about.st_size for about in files)
        yield Leftover(LeftoverKind.LOG, folder, size, changed, folder.name)


def _links(paths: VarPaths) -> Iterator[Leftover]:
    for name, about in _files(paths.tensorboard):
        path = Path(name)
        if stat.S_ISLNK(about.st_mode) and not path.exists():
            run_id = path.relative_to(paths.tensorboard).parts[0]
            yield Leftover(LeftoverKind.LINK, path, about.st_size, about.st_mtime, run_id)


def _temporaries(paths: VarPaths) -> Iterator[Leftover]:
    places: list[tuple[Path, str | None]] = [(folder, folder.name) for folder in _folders(paths.runs)]
    places += [(folder, None) for folder in (paths.trainer, paths.configs, paths.secrets)]
    for folder, run_id in places:
        for path, about in _files(folder, deep=run_id is not None):
            if _TEMPORARY.fullmatch(os.path.basename(path)) and stat.S_ISREG(about.st_mode):
                yield Leftover(LeftoverKind.TEMPORARY, Path(path), about.st_size, about.st_mtime, run_id)


def _folders(parent: Path) -> list[Path]:
    """The folders named like a run."""
    if not parent.is_dir():
        return []
    with os.scandir(parent) as entries:
        return [Path(one.path) for one in entries if _RUN_ID.fullmatch(one.name) and not one.is_symlink()]


def _files(folder: str | Path, deep: bool = True) -> Iterator[tuple[str, os.stat_result]]:
    """What lies in a folder and is none itself; with `deep` also below. No link is followed."""
    try:
        with os.scandir(folder) as found:
            entries = list(found)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        # Somebody may remove it while we look.
        with suppress(FileNotFoundError):
            if not entry.is_dir(follow_symlinks=False):
                yield entry.path, entry.stat(follow_symlinks=False)
            elif deep:
                yield from _files(entry.path)


_MOST_ROWS = 50
_UNASKED = "gc asks before it removes anything, which is not possible here: add --yes."
_LEFTOVERS = {
    LeftoverKind.LOG: ("old log of a removed run", "old logs of removed runs"),
    LeftoverKind.LINK: ("dangling TensorBoard link", "dangling TensorBoard links"),
    LeftoverKind.TEMPORARY: ("unfinished file", "unfinished files"),
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
        raise UserError("gc --json does not ask: add --yes to remove, or --dry-run to only list it.")
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
        wanted = not args.dry_run and not plan.empty
        does = wanted and (args.yes or agreed(f"Remove {_amount(plan)}?", _UNASKED))
        freed = _carry_out(client, plan) if does else 0
    if args.json:
        print_json(_plan_json(plan, removed=does, freed=freed))
    elif does:
        say(f"Removed {_amount(plan)}, {bytes_text(freed)} freed.")
    elif wanted:
        say("Nothing was removed.")
        return 1
    return 0


def _outcome(text: str) -> str:
    name = text.strip().lower().replace(" ", "_").replace("-", "_")
    if name not in words.OUTCOMES:
        hint = closest(name, words.OUTCOMES) or f": it is one of {', '.join(words.OUTCOMES)}."
        raise UserError(f"--outcome: '{text}' is not an outcome{hint}")
    return name


def _describe(plan: Plan, rule: Rule) -> None:
    """What would go and how much that frees."""
    if plan.empty:
        say(f"Nothing to remove: there is no run that {_which(rule)}, and there are no leftovers.")
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
            {name: getattr(run, name) for name in ("run_id", "run_name", "outcome")}
            | {"ended_at": ended_at(run), "run_dir": run.run_dir, "bytes": plan.sizes[run.run_id]}
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
        say(f"Stopped: {gone} of {total} removed, {bytes_text(freed)} freed; the same command continues.")
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
        row = Row(run)
        listed.add_row(
            ids[run.run_id],
            cut(row.name).append(f"  {', '.join(run.tags)}", style="dim"),
            Text(row.state, style=words.style(row.state)),
            words.ago(ended_at(run)),
            bytes_text(plan.sizes[run.run_id]),
        )
    if rest:
        listed.add_row("", f"and {len(rest)} more", "", "", bytes_text(_size(plan, rest)))
    return listed


def _amounts(plan: Plan, rule: Rule) -> Table:
    amount, size = (Column(justify="right", no_wrap=True) for _ in range(2))
    listed = Table.grid(amount, Column(overflow="fold"), size, padding=(0, 2, 0, 0))
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
