"""How an evaluation stands."""

from __future__ import annotations

from pathlib import Path

from mosaic.analytics.eval_summary import EvalSummary, read_eval_summary
from mosaic.client import RunRecord
from mosaic.contract.errors import StorageError


def summary_of(run: RunRecord) -> tuple[str, EvalSummary | None]:
    """The run's id with its newest summary: None before the first batch, and when it cannot be read."""
    try:
        return run.run_id, read_eval_summary(Path(run.run_dir))
    except StorageError:
        return run.run_id, None
