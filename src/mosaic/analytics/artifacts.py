"""The files that a run leaves in its folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from mosaic.contract.outside import read_json
from mosaic.contract.paths import RunPaths

Kind = Literal["model", "checkpoint", "events", "video", "log", "manifest", "provenance", "other"]

_KIND_OF_PATH: dict[str, Kind] = {"analytics.json": "manifest", "provenance.json": "provenance"}
# Not `videos`: a recorder leaves notes of its own beside each film.
_KIND_OF_FOLDER: dict[str, Kind] = {"checkpoints": "checkpoint", "logs": "log"}
_KIND_OF_SUFFIX: dict[str, Kind] = {
    ".cleanrl_model": "model",
    ".mp4": "video",
    ".webm": "video",
    ".mkv": "video",
    ".avi": "video",
    ".gif": "video",
    ".log": "log",
}
# Parts of the machinery that runs the run, and copies that trackers make: not results.
_NOT_RESULTS = frozenset(
    {"supervisor.lock", "bridge", "bin", "wandb", "tracking", ".analytics.json.spare", ".waits_for_space"}
)

CACHE_NAME = ".metrics.cache"
"""What was read of the event files, for the next time: see `metric_cache`."""


@dataclass(frozen=True)
class Artifact:
    """One file: its path relative to the run's folder, what it is, bytes, and seconds since 1970."""

    path: str
    kind: Kind
    size: int
    modified: float


def list_artifacts(run_dir: Path) -> list[Artifact]:
    """All results of a run, sorted by path; empty when its folder is gone. Links are left out."""
    found = []
    for place, folders, names in os.walk(run_dir):
        if Path(place) == run_dir:
            folders[:] = [name for name in folders if name not in _NOT_RESULTS]
            names = [name for name in names if name not in _NOT_RESULTS]
        for name in names:
            path = Path(place, name)
            if name.lstrip(".").startswith(CACHE_NAME[1:]):
                continue
            try:
                status = path.lstat()
            except OSError:
                continue
            if not path.is_symlink():
                relative = path.relative_to(run_dir).as_posix()
                found.append(Artifact(relative, kind_of(relative), status.st_size, status.st_mtime))
    return sorted(found, key=lambda artifact: artifact.path)


def kind_of(path: str) -> Kind:
    """What the file at a path inside a run's folder is, by its place and name."""
    file = PurePosixPath(path)
    if path in _KIND_OF_PATH:
        return _KIND_OF_PATH[path]
    if "tfevents" in file.name:
        return "events"
    if file.suffix in _KIND_OF_SUFFIX:
        return _KIND_OF_SUFFIX[file.suffix]
    # A run of several trainings has such folders further down.
    return next((_KIND_OF_FOLDER[name] for name in file.parts[:-1] if name in _KIND_OF_FOLDER), "other")


def read_losses(run_dir: Path) -> dict[str, dict[str, str]]:
    """What computes each loss of a run (`by` a kernel or torch) and `why`; nothing where that is not told."""
    try:
        told = read_json(RunPaths(run_dir).provenance)["losses"]
        return {name: {"by": str(loss["by"]), "why": str(loss["why"])} for name, loss in told.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
