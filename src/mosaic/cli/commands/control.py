"""`pause`, `resume`, `cancel`, `tag` and `rm`: what changes runs that are there."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress

from mosaic.cli.output import agreed, note, print_json, program, say
from mosaic.cli.runs import connect, find_runs, holds_runs, run_json
from mosaic.client import Client, RunQuery, RunRecord
from mosaic.contract import words
from mosaic.contract.capabilities import discover_workers
from mosaic.contract.errors import ConflictError, UserError
from mosaic.contract.fsm import LIVE, RunStatus
from mosaic.contract.outside import bytes_text

_UNASKED = "rm asks before it removes anything, which is not possible here: add --yes."
_LIVE = sorted({*LIVE, RunStatus.FAULT})
_FIELDS = ("run_id", "status", "worker_type")


def run_pause(args: argparse.Namespace) -> int:
    return _set_paused(args, paused=True)


def run_resume(args: argparse.Namespace) -> int:
    return _set_paused(args, paused=False)


def _set_paused(args: argparse.Namespace, paused: bool) -> int:
    """Pause or resume the named runs, all or none; 1 when a run has not followed in time."""
    with connect(args) as client:
        found = find_runs(client, args.runs)
        for run in found:
            _check_may_change(run, paused)
        changed = [client.pause(run.run_id) if paused else client.resume(run.run_id) for run in found]
    late = [run for run in changed if run.status != ("PAUSE" if paused else "EXEC")]
    if args.json:
        print_json([run_json(run) for run in changed])
    for before, run in zip(found, changed, strict=True):
        if run in late:
            note(f"mosaic: Run {run.run_id} is {words.state(run)} and did not follow.")
        elif not args.json:
            say(f"{run.run_id} {_told(paused, already=before.status == run.status)}")
    return 1 if late else 0


def _check_may_change(run: RunRecord, paused: bool) -> None:
    if run.status in ("PAUSE", "EXEC"):
        return
    able, done = ("trains", "paused") if paused else ("is paused", "resumed")
    sentence = f"Run {run.run_id} is {words.state(run)}: only a run that {able} can be {done}"
    sentence += ", so nothing was changed."
    if run.ended and not paused:
        sentence += f" To resume from its checkpoint: `{program()} train --resume {run.run_id}`."
    raise ConflictError(sentence)


def _told(paused: bool, already: bool) -> str:
    if paused:
        return "was already paused" if already else "is paused; it keeps its resources"
    return "was not paused" if already else "continues where it was"


def run_cancel(args: argparse.Namespace) -> int:
    if bool(args.runs) == args.all:
        raise UserError("cancel needs RUN, or --all for every waiting or live run.")
    if args.all and not holds_runs(args):
        say("There is no waiting or live run.")
        return 0
    with connect(args) as client:
        found = (
            list(client.each(RunQuery(statuses=_LIVE, fields=_FIELDS)))
            if args.all
            else _named(client, args.runs)
        )
        # Sweeps first: they end their trials, and submit others in the place of those that end.
        kinds = {name for name, worker in discover_workers().items() if worker.waits_for_others}
        sweeps = [one for one in found if one.worker_type in kinds]
        if not args.all and not _may_cancel(client, sweeps):
            say("Nothing was cancelled.")
            return 0
        for one in sweeps:
            _cancel(client, one)
            client.wait(one.run_id)
        known = {one.run_id for one in found}
        found += [one for one in _trials_of(client, sweeps) if one.run_id not in known]
        # The waiting ones first: none may start in the place of one that ends.
        for one in sorted(found, key=lambda run: run.status != "INIT"):
            if one not in sweeps:
                _cancel(client, one)
        for one in found:
            if args.no_wait:
                say(f"{one.run_id} is being ended")
            else:
                say(f"{one.run_id} {words.state(client.wait(one.run_id))}")
    if not found:
        say("There is no waiting or live run.")
    return 0


def _cancel(client: Client, run: RunRecord) -> None:
    # One that ends by itself meanwhile is as good.
    with suppress(ConflictError):
        client.cancel(run.run_id, "requested with `mosaic cancel`")


def _may_cancel(client: Client, sweeps: Sequence[RunRecord]) -> bool:
    """Whether sweeps may end with their trials; where nobody can be asked, that is what was said."""
    trials = _trials_of(client, sweeps)
    if not trials or not sys.stdin.isatty():
        return True
    return agreed(f"Cancel it with its {words.count(len(trials), 'trial')} that wait or train?", "")


def _trials_of(client: Client, sweeps: Sequence[RunRecord]) -> list[RunRecord]:
    """The live trials of sweeps."""
    queries = (RunQuery(statuses=_LIVE, filter=f"sweep={one.run_id}", fields=_FIELDS) for one in sweeps)
    return [run for query in queries for run in client.each(query)]


def _named(client: Client, names: Sequence[str]) -> list[RunRecord]:
    found = find_runs(client, names)
    for run in found:
        if run.ended:
            how = words.state(run)
            raise ConflictError(f"Run {run.run_id} has already ended ({how}): nothing was cancelled.")
    return found


def run_tag(args: argparse.Namespace) -> int:
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


def run_rm(args: argparse.Namespace) -> int:
    with connect(args) as client:
        found = find_runs(client, args.runs)
        for one in found:
            if not one.ended:
                raise ConflictError(
                    f"Run {one.run_id} is still {words.state(one)}, nothing was removed: "
                    f"`{program()} cancel {one.run_id}` ends it."
                )
        amount = words.count(len(found), "run")
        listed = [f"  {one.run_id}  {one.run_name}  {words.state(one)}" for one in found]
        if not args.yes and not agreed(f"Remove {amount} and all files?", _UNASKED, listed):
            say("Nothing was removed.")
            return 1
        freed = sum(client.remove(one.run_id) for one in found)
    say(f"Removed {amount}, {bytes_text(freed)} freed.")
    return 0
