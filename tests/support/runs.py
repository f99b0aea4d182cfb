"""Run configs of scripts that need no torch, for tests of the daemon."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from mosaic.client import Client, RunRecord, train_config

SCRIPTS = Path(__file__).parent.parent / "scripts"


def script_config(name: str, steps: int = 3, **options: Any) -> dict[str, Any]:
    """A config that runs one of tests/scripts; `params` become its flags."""
    return train_config(str(SCRIPTS / name), "None-v0", total_timesteps=steps, **options)


def long_config(**options: Any) -> dict[str, Any]:
    """A run that goes on until it is ended."""
    return script_config("steps.py", steps=100_000, params={"pause": 0.05}, **options)


def wait_for_status(client: Client, run_id: str, status: str, seconds: float = 60) -> RunRecord:
    """The run once it is in `status`; an ended run that never got there fails the test."""
    deadline = time.monotonic() + seconds
    run = client.get(run_id)
    while run.status != status:
        assert not run.ended, f"run {run_id} ended {run.outcome} ({run.reason}) and never was {status}"
        assert time.monotonic() < deadline, f"run {run_id} is still {run.status}"
        for _ in client.watch(run_id, run.history[-1].seq, timeout=deadline - time.monotonic()):
            break
        run = client.get(run_id)
    return run


def end(client: Client, *runs: RunRecord) -> None:
    """Cancel runs and wait until they are gone."""
    for run in runs:
        client.cancel(run.run_id)
    for run in runs:
        client.wait(run.run_id, timeout=90)
