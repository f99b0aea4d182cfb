"""The files of a run as a tree of folders with sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from mosaic.analytics.artifacts import Artifact

MOST_IN_FOLDER = 300
"""A folder may hold thousands of pieces of one buffer; the newest of them are enough."""

_DIGITS = re.compile(r"(\d+)")
_KINDS = {
    "model": "model",
    "checkpoint": "checkpoint",
    "events": "events",
    "video": "video",
    "log": "log",
    "manifest": "manifest",
    "provenance": "provenance",
}


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
        return _KINDS.get(self.artifact.kind, "") if self.artifact is not None else ""

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
    node.children = [
        *sorted(folders, key=_counting),
        *sorted(files, key=_counting),
    ]


def _counting(node: Node) -> list[tuple[int, str]]:
    """An order in which `episode-8` comes before `episode-64`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(node.name)]
