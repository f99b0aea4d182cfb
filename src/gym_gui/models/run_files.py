"""What a run has left in its folder: files, policies, the summary of an evaluation."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath

from gym_gui.models import words
from gym_gui.models.words import is_evaluation
from mosaic.analytics.artifacts import Artifact, list_artifacts, read_losses
from mosaic.analytics.eval_summary import EvalSummary, read_eval_summary
from mosaic.analytics.store import RunMetrics
from mosaic.client import RunRecord
from mosaic.client.configs import evaluating_worker
from mosaic.contract.capabilities import PolicyFacts
from mosaic.contract.errors import MosaicError, StorageError
from mosaic.contract.paths import RunPaths
from mosaic.fastlane.layout import segment_path
from mosaic.hub.uploads import FAILED, read_upload
from mosaic.tracking import OFFLINE, ONLINE, TrackerLink, links
from mosaic.tracking.wandb import sync_command

MOST_IN_FOLDER = 300
"""A folder may hold thousands of pieces of one buffer; the newest of them are enough."""

_DIGITS = re.compile(r"(\d+)")
_RUN_PAGE = re.compile(rb"https?://[^\s/]+/[^\s/]+/[^\s/]+/runs/[\w-]+")
_HEAD_BYTES = 256 * 1024


@dataclass
class Node:
    """A folder or a file. `path` counts from the run's folder."""

    name: str
    path: str
    artifact: Artifact | None = None
    children: list[Node] = field(default_factory=list)
    size: int = 0
    modified: float = 0.0
    files: int = 0
    hidden: int = 0
    """How many files of this folder are left out."""

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return "" if self.artifact is None or self.artifact.kind == "other" else self.artifact.kind

    @property
    def playable(self) -> bool:
        return self.artifact is not None and self.artifact.kind == "video"

    @property
    def policy(self) -> bool:
        """Whether it can be evaluated."""
        return self.artifact is not None and (
            self.artifact.kind == "model"
            or (self.artifact.kind == "checkpoint" and self.name.endswith(".npz"))
        )


def tree_of(artifacts: Sequence[Artifact]) -> Node:
    """The root of the tree: folders first, each level by name."""
    root = Node("", "")
    folders: dict[str, Node] = {"": root}
    for artifact in artifacts:
        file = PurePosixPath(artifact.path)
        parent = _folder(folders, file.parent)
        parent.children.append(
            Node(file.name, artifact.path, artifact, [], artifact.size, artifact.modified, 1)
        )
    _sum_up(root)
    return root


def _folder(folders: dict[str, Node], path: PurePosixPath) -> Node:
    name = "" if str(path) == "." else str(path)
    if name not in folders:
        folders[name] = Node(path.name, name)
        _folder(folders, path.parent).children.append(folders[name])
    return folders[name]


def _sum_up(node: Node) -> None:
    for child in node.children:
        if child.artifact is None:
            _sum_up(child)
    node.size = sum(child.size for child in node.children)
    node.files = sum(child.files for child in node.children)
    node.modified = max((child.modified for child in node.children), default=0.0)
    folders = [child for child in node.children if child.artifact is None]
    files = [child for child in node.children if child.artifact is not None]
    if len(files) > MOST_IN_FOLDER:
        node.hidden = len(files) - MOST_IN_FOLDER
        files = sorted(files, key=lambda child: child.modified)[-MOST_IN_FOLDER:]
    node.children = [*sorted(folders, key=_counting), *sorted(files, key=_counting)]


def _counting(node: Node) -> list[tuple[int, str]]:
    """An order in which `episode-8` comes before `episode-64`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(node.name)]


@dataclass(frozen=True)
class RunFacts:
    """Which tabs of a run make sense now."""

    has_scalars: bool = False
    has_frames: bool = False
    has_policy: bool = False
    has_files: bool = False
    is_evaluation: bool = False
    has_media: bool = False
    """Whether its event files hold more than numbers."""
    trackers: tuple[TrackerLink, ...] = ()


@lru_cache(maxsize=4)
def metrics_of(folder: Path) -> RunMetrics:
    """What the runs that were looked at last have measured; `refresh` it. It is shared, so that all who ask
    read it once."""
    return RunMetrics(folder)


def read_facts(run: RunRecord) -> RunFacts:
    """Look at the run's folder. It takes a moment: not for the thread of the window."""
    folder = Path(run.run_dir)
    files = list_artifacts(folder)
    kinds = {file.kind for file in files}
    metrics = metrics_of(folder)
    metrics.refresh()
    return RunFacts(
        has_media=bool(metrics.media()),
        has_scalars="events" in kinds,
        has_frames=not run.ended and segment_path(run.run_id).exists(),
        has_policy="model" in kinds or "checkpoint" in kinds,
        has_files=bool(files),
        is_evaluation=is_evaluation(run),
        trackers=trackers_of(run),
    )


def trackers_of(run: RunRecord) -> tuple[TrackerLink, ...]:
    """Where the run is tracked. It reads files: not for the thread of the window."""
    folder = Path(run.run_dir)
    found = links(folder)
    if not any(link.name == "wandb" for link in found):
        found = [*_own_wandb(folder), *found]
    return tuple(found)


def _own_wandb(run_dir: Path) -> list[TrackerLink]:
    """What a script that calls `wandb` itself has left: its files, and the address that it has printed."""
    folder = run_dir / "wandb"
    online, offline = (any(folder.glob(pattern)) for pattern in ("run-*", "offline-run-*"))
    if not online and not offline:
        return []
    if online:
        return [TrackerLink("wandb", ONLINE, _printed_address(RunPaths(run_dir)), str(folder))]
    return [TrackerLink("wandb", OFFLINE, "", str(folder), sync_command(folder))]


def _printed_address(paths: RunPaths) -> str:
    for log in (paths.stderr, paths.stdout):
        try:
            with log.open("rb") as file:
                found = _RUN_PAGE.search(file.read(_HEAD_BYTES))
        except OSError:
            continue
        if found:
            return found[0].decode()
    return ""


def summary_of(run: RunRecord) -> EvalSummary | None:
    """The run's newest summary: None before the first batch, and when it cannot be read."""
    try:
        return read_eval_summary(Path(run.run_dir))
    except StorageError:
        return None


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


def computed_by(run: RunRecord) -> str:
    """What computes the losses of a run, a kernel or torch, and why; empty where it does not say."""
    losses = read_losses(Path(run.run_dir)).values()
    return "; ".join(dict.fromkeys(f"{loss['by']}: {loss['why']}" for loss in losses))


def hub_text(run: RunRecord) -> str:
    """Where the model of a run is on Hugging Face, or why it is not; empty when nobody has asked for it."""
    upload = read_upload(Path(run.run_dir))
    if upload is None:
        return ""
    again = " Repeat the upload from its menu (⋯)." if upload.state == FAILED else ""
    return f"Hugging Face: {upload.told()}{again}"
