"""Which module or file trains an algorithm.

Ours are the files of `algorithms/`, by their names. Those of other packages are found by entry points of the
group `mosaic.algorithms`, and a file of the user's is one when it binds `SPEC`. None is imported here.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

ENTRY_POINT_GROUP = "mosaic.algorithms"
SPEC_NAME = "SPEC"
COPY_FOLDER = "algorithm"
"""Where a run keeps a copy of the file that it was trained by."""
_OURS = Path(__file__).parents[1] / "algorithms"
_BINDS_SPEC = re.compile(rb"^SPEC\s*[:=]", re.MULTILINE)


class AlgorithmRegistry(Mapping[str, str]):
    """The module of each algorithm by its name, `module:NAME` where its spec is not called `SPEC`."""

    def __getitem__(self, name: str) -> str:
        # Most runs are of ours: they need not look at what else is installed.
        return _ours()[name] if name in _ours() else _plug_ins()[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**_ours(), **_plug_ins()})

    def __len__(self) -> int:
        return len({**_ours(), **_plug_ins()})


DEFAULT_ALGO_REGISTRY: Mapping[str, str] = AlgorithmRegistry()


@functools.cache
def _ours() -> dict[str, str]:
    names = [path.stem for path in _OURS.glob("[!_]*.py")]
    # What is recommended first learns on most tasks with the parameters that it has: that is PPO.
    names.sort(key=lambda name: (not name.startswith("ppo"), name))
    return {name: f"cleanrl_worker.algorithms.{name}" for name in names}


@functools.cache
def _plug_ins() -> dict[str, str]:
    return {
        point.name: point.value.partition("[")[0].replace(" ", "").removesuffix(f":{SPEC_NAME}")
        for point in entry_points(group=ENTRY_POINT_GROUP)
        if point.name not in _ours()
    }


@dataclass(frozen=True)
class AlgorithmFile:
    """A file of the user's that a run was trained by."""

    path: str
    sha256: str
    """Of its content when the run began."""

    @classmethod
    def of(cls, path: Path) -> AlgorithmFile:
        return cls(str(path), hashlib.sha256(path.read_bytes()).hexdigest())

    @classmethod
    def in_json(cls, content: Mapping[str, Any]) -> AlgorithmFile | None:
        """The one that a card or the head of a checkpoint names; ValueError when it cannot be one."""
        named = content.get("file")
        if named is None:
            return None
        found = cls(**named)
        if not all(isinstance(part, str) for part in (found.path, found.sha256)):
            raise ValueError(named)
        return found if Path(found.path).is_absolute() else None

    @property
    def changed(self) -> bool:
        """Whether it has another content by now."""
        path = Path(self.path)
        return path.is_file() and AlgorithmFile.of(path).sha256 != self.sha256


def is_path(algo: str) -> bool:
    """Whether `algo` is the path of a Python file."""
    return algo.endswith(".py") or "/" in algo


def find_algorithm_file(algo: str, folder: Path | None = None) -> str | None:
    """The absolute path of a file that binds `SPEC` at its top level; None for every other script.

    It is told without running it. A relative path counts from `folder`, the user's own.
    """
    if not is_path(algo):
        return None
    try:
        path = ((folder or Path.cwd()) / Path(algo).expanduser()).resolve()
        return str(path) if path.is_file() and _binds_spec(path.read_bytes()) else None
    except (OSError, RuntimeError, ValueError):
        return None


def _binds_spec(source: bytes) -> bool:
    if SPEC_NAME.encode() not in source:
        return False
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError):
        # Whoever loads it will say what is wrong.
        return _BINDS_SPEC.search(source) is not None
    return any(SPEC_NAME in _bound(statement) for statement in body)


def _bound(statement: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in statement.names]
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return []
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]
