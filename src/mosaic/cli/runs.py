"""Runs for commands: the line to their daemon, runs by what a person types, runs as --json prints them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from mosaic.cli.output import note, program
from mosaic.client import Client, RunRecord
from mosaic.contract.errors import NotFoundError
from mosaic.contract.paths import VAR_VARIABLE, VarPaths, choose_var


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
        raise NotFoundError(f"There is no folder {root}, and so no run in it: correct {named}.")
    return VarPaths(root).used


LAST = "last"


def find_run(client: Client, name: str) -> RunRecord:
    """The run with its history."""
    if name.lower() != LAST:
        return client.get(name)
    newest = client.runs(limit=1)
    if not newest:
        raise NotFoundError(f"There is no run yet: `{program()} train ppo CartPole-v1` makes the first.")
    return client.get(newest[0].run_id)


def find_runs(client: Client, names: Sequence[str]) -> list[RunRecord]:
    """Several runs, each once, in the order they were named."""
    found = [find_run(client, name) for name in names]
    return list({run.run_id: run for run in found}.values())


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
