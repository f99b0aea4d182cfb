"""What is asked of the daemon about sweeps: all of it runs in a task, never in the window's thread."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mosaic.client import Client, RunRecord
from mosaic.contract.errors import ConflictError
from mosaic.sweeps.configs import best_configs, cancel_trials, continue_config
from mosaic.sweeps.study import Trial, read_study


def train_with(
    client: Client, run: RunRecord, trial: Trial, seeds: Sequence[int], steps: int | None
) -> list[dict[str, Any]]:
    """Configs of runs with the parameters of a trial."""
    return best_configs(client.get(run.run_id), trial, seeds, steps)


def go_on(client: Client, run: RunRecord, more: int) -> RunRecord:
    """A new sweep with so many trials more, on the study of one that has ended."""
    whole = client.get(run.run_id)
    config = continue_config(whole, read_study(Path(whole.run_dir)), more)
    cancel_trials(client, run.run_id)
    return client.submit(config)


def stop(client: Client, run: RunRecord) -> None:
    """End a sweep, which ends its trials; one that has just ended is left alone."""
    with suppress(ConflictError):
        client.cancel(run.run_id, "stopped in the window")
