"""The policies of one run, to choose from."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from gym_gui.models import words
from mosaic.analytics.artifacts import list_artifacts
from mosaic.client import RunRecord
from mosaic.client.configs import evaluating_worker
from mosaic.contract.capabilities import PolicyFacts
from mosaic.contract.errors import MosaicError


@dataclass(frozen=True)
class PolicyChoice:
    """A policy in a file, and the words for it."""

    path: str
    text: str
    folder: Path
    """Where modules of the user's own are found."""


def policies_of(run: RunRecord) -> list[PolicyChoice]:
    """What a run has left to play, the last step first. Reads files: not for the GUI thread."""
    _, catalog = evaluating_worker(run.worker_type)
    place = Path(run.run_dir)
    found: list[PolicyFacts] = []
    for artifact in list_artifacts(place):
        if artifact.kind in ("model", "checkpoint"):
            # A run that still trains removes its older checkpoints.
            with contextlib.suppress(MosaicError, OSError):
                found.append(catalog.policy(str(place / artifact.path), place))
    known = [facts for facts in found if facts.algo is not None]
    known.sort(key=lambda facts: (-(facts.step or 0), not facts.is_model, facts.best))
    folder = own_folder(run)
    return [PolicyChoice(facts.path, describe(facts), folder) for facts in known]


def describe(facts: PolicyFacts) -> str:
    """`Model · 500,000 steps`, `Best checkpoint · 350,000 steps`."""
    kind = "model" if facts.is_model else "checkpoint"
    name = f"best {kind}" if facts.best else kind
    parts = [name.capitalize()]
    if facts.step is not None:
        parts.append(f"{words.steps(facts.step)} steps")
    if facts.mean_return is not None:
        parts.append(f"mean return {words.number(facts.mean_return)}")
    return " · ".join(parts)


def own_folder(run: RunRecord) -> Path:
    """The folder that the run was submitted from, else its own."""
    noted = str(run.config.get("metadata", {}).get("ui", {}).get("python_path") or "")
    folder = Path(noted.split(os.pathsep)[0]) if noted else Path(run.run_dir)
    return folder if folder.is_dir() else Path(run.run_dir)
