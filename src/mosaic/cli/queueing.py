"""The queue as the daemon has it: what lives, what waits and in which order, and changes of the order."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

from mosaic.cli import words
from mosaic.cli.finding import find_run
from mosaic.cli.reserved import Request
from mosaic.cli.shapes import run_json
from mosaic.client import Client, HealthRecord, RunQuery, RunRecord
from mosaic.client.records import WHOLE
from mosaic.contract.errors import ConflictError, UserError

_LIVE = ("HSHK", "RDY", "EXEC", "PAUSE")
_WAITING = ("INIT",)


@dataclass(frozen=True)
class Queue:
    """Live runs by start, waiting runs in the order in which they will start."""

    live: list[RunRecord] = field(default_factory=list)
    waiting: list[RunRecord] = field(default_factory=list)
    health: HealthRecord | None = None
    """None where no run ever was, and so no daemon."""

    @classmethod
    def read(cls, client: Client, most: int = 0) -> Queue:
        """With `most` only so many of those that wait, the first to start."""
        live = sorted(client.runs(_LIVE), key=lambda run: run.started_at or 0.0)
        waiting = RunQuery(statuses=_WAITING, order_by="queue", ascending=True, fields=WHOLE)
        return cls(live, list(client.each(waiting, most)), client.health())

    def as_json(self) -> dict[str, Any]:
        health = self.health
        runs = {
            "live": [_json(run) for run in self.live],
            "waiting": [{**_json(run), "waits_for": run.reason} for run in self.waiting],
        }
        if health is None:
            return {**runs, "cpus": None, "memory_mb": None, "gpus": None}
        return {
            **runs,
            "cpus": {"reserved": health.cpus_reserved, "total": health.cpus},
            "memory_mb": {"reserved": health.memory_mb_reserved, "total": health.memory_mb},
            "gpus": {"reserved": health.gpus_reserved, "total": health.gpus},
        }


def reorder(client: Client, args: argparse.Namespace) -> None:
    """Give a waiting run the place that the options say."""
    run = _find_waiting(client, args.run)
    if args.priority is not None:
        client.reorder(run.run_id, priority=args.priority)
        return
    if args.first:
        other = Queue.read(client, most=1).waiting[0]
    else:
        other = _find_waiting(client, args.before)
        if other.run_id == run.run_id:
            raise UserError(f"Run {run.run_id} cannot stand before itself: name another run with --before.")
    if other.run_id != run.run_id:
        client.reorder(run.run_id, before=other.run_id)


def _find_waiting(client: Client, name: str) -> RunRecord:
    run = find_run(client, name)
    if run.status not in _WAITING:
        state = words.state(run.status, run.outcome)
        raise ConflictError(f"Run {run.run_id} is {state}: only a waiting run has a place in the queue.")
    return run


def _json(run: RunRecord) -> dict[str, Any]:
    return {**run_json(run), **Request.of(run).as_json()}
