"""Runs for commands: the line to their daemon, runs by what a person types, runs as --json prints them."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from typing import Any

from mosaic.cli.commands.filters import wanted_runs
from mosaic.cli.output import note, program
from mosaic.client import Client, RunQuery, RunRecord
from mosaic.contract.errors import NotFoundError, UserError
from mosaic.contract.paths import VAR_VARIABLE, VarPaths, choose_var
from mosaic.contract.run_filter import WHOLE, parse_terms


def connect(args: argparse.Namespace, make: bool = False) -> Client:
    """A client of the var folder's daemon. Where nothing is, and nothing is to be made, a NotFoundError."""
    if not make:
        holds_runs(args)
    client = Client.connect(args.var, make=make)
    if client.start_notice:
        note(f"mosaic: {client.start_notice}")
    return client


def holds_runs(args: argparse.Namespace) -> bool:
    """Whether there is or was a run in the var folder; a folder that was named must be there."""
    root = choose_var(args.var)
    named = "--var" if args.var is not None else VAR_VARIABLE if os.environ.get(VAR_VARIABLE) else ""
    if named and not root.exists():
        raise NotFoundError(f"There is no folder {root}, and therefore no run: correct {named}.")
    return VarPaths(root).used


LAST = "last"
_RUN_ID = re.compile("[0-7][0-9A-HJKMNP-TV-Z]{2,25}", re.IGNORECASE)


def find_run(client: Client, name: str) -> RunRecord:
    """The run with its history."""
    if name.lower() != LAST:
        return client.get(name)
    newest = client.runs(limit=1)
    if not newest:
        raise NotFoundError(f"There is no run yet: `{program()} train ppo CartPole-v1` starts the first.")
    return client.get(newest[0].run_id)


def find_runs(client: Client, names: Sequence[str]) -> list[RunRecord]:
    """Several runs, each once, in the order they were named."""
    found = [find_run(client, name) for name in names]
    return list({run.run_id: run for run in found}.values())


def choose_runs(client: Client, wanted: Sequence[str], args: argparse.Namespace) -> list[RunRecord]:
    """Runs by ids, `last`, tags, `@NAME` of saved filters, and words and conditions, which hold together.

    Those that were named come first, in that order; the others follow, the oldest first.
    """
    named, conditions = dict[str, RunRecord](), list[str]()
    for word in wanted:
        if word.startswith("@") or re.search("[=<>:]", word):
            conditions.append(word)
        elif tagged := client.runs(tags=[word.removeprefix("#")]) if word.lower() != LAST else []:
            named |= {run.run_id: run for run in reversed(tagged)}
        elif word.lower() == LAST or _RUN_ID.fullmatch(word):
            run = find_run(client, word)
            named[run.run_id] = run
        else:
            conditions.append(word)
    if conditions:
        asked = argparse.Namespace(filter=[], wanted=conditions, state=[], var=args.var)
        text, (statuses, outcomes) = wanted_runs(asked)
        problem = next(filter(None, (term.problem for term in parse_terms(text))), "")
        if problem:
            raise UserError(problem)
        query = RunQuery(filter=text, statuses=statuses, outcomes=outcomes, fields=WHOLE)
        found = list(client.each(query))
        if not found:
            raise NotFoundError(f"No run matches {' '.join(conditions)}: `mosaic runs` lists all.")
        named |= {run.run_id: run for run in reversed(found) if run.run_id not in named}
    return list(named.values())


_PLAIN = ("run_id", "run_name", "status", "outcome", "reason", "run_dir", "worker_type", "tags", "priority")
_TIMES = ("submitted_at", "started_at", "ended_at", "exit_code")
_WORKER = ("algo", "env_id", "seed", "total_timesteps")


def run_json(run: RunRecord) -> dict[str, Any]:
    """A run in a list."""
    asked = run.worker_config
    return {
        **{name: getattr(run, name) for name in _PLAIN},
        **{name: asked.get(name) for name in _WORKER},
        **{name: getattr(run, name) for name in _TIMES},
        "headline": run.headline,
    }
