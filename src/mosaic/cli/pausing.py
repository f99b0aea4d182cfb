"""Stopping runs where they are and letting them go on: what `pause` and `resume` share."""

from __future__ import annotations

import argparse

from mosaic.cli import words
from mosaic.cli.connecting import connect
from mosaic.cli.finding import find_runs
from mosaic.cli.output import note, print_json, say
from mosaic.cli.program import program
from mosaic.cli.shapes import run_json
from mosaic.client import RunRecord
from mosaic.contract.errors import ConflictError

_STATUS = {True: "PAUSE", False: "EXEC"}
_MAY_CHANGE = frozenset(_STATUS.values())


def set_paused(args: argparse.Namespace, paused: bool) -> int:
    """Pause or resume the named runs, all or none; 1 when a run has not followed in time."""
    with connect(args) as client:
        found = find_runs(client, args.runs)
        for run in found:
            _check(run, paused)
        changed = [client.pause(run.run_id) if paused else client.resume(run.run_id) for run in found]
    late = [run for run in changed if run.status != _STATUS[paused]]
    if args.json:
        print_json([run_json(run) for run in changed])
    else:
        before = {run.run_id: run.status for run in found}
        for run in changed:
            if run not in late:
                say(_told(run, already=before[run.run_id] == run.status))
    for run in late:
        note(f"mosaic: Run {run.run_id} is {words.state(run.status, run.outcome)} and did not follow.")
    return 1 if late else 0


def _check(run: RunRecord, paused: bool) -> None:
    if run.status not in _MAY_CHANGE:
        state = words.state(run.status, run.outcome)
        able, done = ("trains", "paused") if paused else ("is paused", "resumed")
        sentence = (
            f"Run {run.run_id} is {state}: only a run that {able} can be {done}, so nothing was changed."
        )
        if run.ended and not paused:
            sentence += f" To train on from its checkpoint: `{program()} train --resume {run.run_id}`."
        raise ConflictError(sentence)


def _told(run: RunRecord, already: bool) -> str:
    if run.status == "PAUSE":
        return (
            f"{run.run_id} {'was paused already' if already else 'is paused; what it reserves stays its own'}"
        )
    return f"{run.run_id} {'was not paused' if already else 'goes on where it was'}"
