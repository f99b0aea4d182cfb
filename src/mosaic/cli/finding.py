"""Runs by what a person types: an id, its beginning, or `last`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mosaic.cli.program import program
from mosaic.contract.errors import NotFoundError

if TYPE_CHECKING:
    from mosaic.client import Client, RunRecord

LAST = "last"
RUN_HELP = "a run id, the beginning of one, or 'last'"


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
