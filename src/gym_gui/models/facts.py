"""What a run has to show, found by looking at its files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from mosaic.analytics.artifacts import list_artifacts
from mosaic.analytics.event_files.reader import find_event_files
from mosaic.client import RunRecord
from mosaic.contract.paths import RunPaths
from mosaic.fastlane.layout import segment_path

_WANDB_RUN = re.compile(rb"https?://[^\s/]+/[^\s/]+/[^\s/]+/runs/[\w-]+")
_HEAD_BYTES = 256 * 1024


@dataclass(frozen=True)
class RunFacts:
    """Which tabs of a run make sense now."""

    has_scalars: bool = False
    has_frames: bool = False
    has_policy: bool = False
    has_videos: bool = False
    has_files: bool = False
    is_evaluation: bool = False
    wandb_url: str | None = None
    tensorboard_dir: str | None = None


def is_evaluation(run: RunRecord) -> bool:
    """Whether the run plays a policy and trains none."""
    return (run.worker_config.get("extras") or {}).get("mode") == "policy_eval"


def read_facts(run: RunRecord) -> RunFacts:
    """Look at the run's folder. It takes a moment: not for the thread of the window."""
    folder = Path(run.run_dir)
    files = list_artifacts(folder)
    kinds = {file.kind for file in files}
    has_scalars = "events" in kinds
    return RunFacts(
        has_scalars=has_scalars,
        has_frames=not run.ended and segment_path(run.run_id).exists(),
        has_policy="model" in kinds or "checkpoint" in kinds,
        has_videos="video" in kinds,
        has_files=bool(files),
        is_evaluation=is_evaluation(run),
        wandb_url=_wandb_url(run, RunPaths(folder)),
        tensorboard_dir=_tensorboard_dir(folder) if has_scalars else None,
    )


def _tensorboard_dir(folder: Path) -> str:
    """The folder that TensorBoard is to be shown: that of the curves where there is one, else the run's."""
    curves = RunPaths(folder).event_files
    return str(curves if find_event_files(curves) else folder)


def _wandb_url(run: RunRecord, paths: RunPaths) -> str | None:
    """Where the run is at Weights & Biases, as its library has printed it."""
    if not (run.worker_config.get("extras") or {}).get("track_wandb"):
        return None
    for log in (paths.stderr, paths.stdout):
        try:
            with log.open("rb") as file:
                found = _WANDB_RUN.search(file.read(_HEAD_BYTES))
        except OSError:
            continue
        if found:
            return found[0].decode()
    return None
