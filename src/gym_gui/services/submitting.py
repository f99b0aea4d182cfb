"""Submitting several runs as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mosaic.client import Client, RunRecord
from mosaic.contract.errors import ConflictError, MosaicError


def submit_all(client: Client, configs: Sequence[Mapping[str, Any]]) -> list[RunRecord]:
    """Submit all configs or none: when one is refused, those before it are cancelled."""
    runs: list[RunRecord] = []
    try:
        for config in configs:
            runs.append(client.submit(config))
    except MosaicError:
        for run in runs:
            try:
                client.cancel(run.run_id, "another run of the same submission was refused")
            except ConflictError:
                continue
        raise
    return runs
