"""The files that a run leaves in its folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

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


def manifest_problems(run_dir: Path) -> list[str]:
    """What is wrong with a run's manifest, in sentences: it is damaged, or leads to what is not there.

    Checkpoints may be gone: they are cleaned up.
    """
    path = RunPaths(run_dir).manifest
    try:
        named = _named_files(read_json(path))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        return [f"The manifest {path.name} cannot be read ({error}): files are shown as they lie there."]
    gone = [name for name in named if not os.path.lexists(run_dir / name)]
    if not gone:
        return []
    more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
    return [
        f"The manifest {path.name} names {gone[0]:.200}{more}, not there any more: "
        "files are shown as they lie there."
    ]


def _named_files(told: Any) -> list[str]:
    """The event files, models and videos that a manifest names, whatever else it may hold."""
    if not isinstance(told, Mapping):
        raise ValueError("it is not an object")
    kept = told.get("artifacts")
    artifacts = kept if isinstance(kept, Mapping) else {}
    curves = artifacts.get("tensorboard")
    lists = [curves.get("event_files") if isinstance(curves, Mapping) else None]
    lists += [artifacts.get(name) for name in ("models", "videos")]
    listed = [name for names in lists if isinstance(names, list) for name in names]
    return [name for name in listed if isinstance(name, str) and "\0" not in name]


def read_losses(run_dir: Path) -> dict[str, dict[str, str]]:
    """What computes each loss of a run (`by` a kernel or torch) and `why`; nothing where that is not told."""
    try:
        told = read_json(RunPaths(run_dir).provenance)["losses"]
        return {name: {"by": str(loss["by"]), "why": str(loss["why"])} for name, loss in told.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
