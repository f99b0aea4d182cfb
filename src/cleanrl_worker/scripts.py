"""Which script a run executes: one of ours, an installed module or a file of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.registry import DEFAULT_ALGO_REGISTRY
from mosaic.contract.errors import UserError, closest


@dataclass(frozen=True)
class Script:
    """What the launcher runs. `ours` scripts have a schema and a `main()`."""

    target: str
    """A dotted module or an absolute path."""
    ours: bool

    @property
    def is_file(self) -> bool:
        return self.target.startswith("/")


def looks_foreign(algo: str) -> bool:
    """Whether `algo` names a file or a dotted module instead of an algorithm."""
    return algo.endswith(".py") or "/" in algo or "." in algo


def resolve_script(
    config: CleanRLWorkerConfig,
    folder: Path | None = None,
    registry: Mapping[str, str] = DEFAULT_ALGO_REGISTRY,
) -> Script:
    """The script for `config.algo`; a relative path counts from `folder`, the user's own."""
    algo = config.algo
    source = config.extras.get("module_source", "mosaic")
    if source not in ("mosaic", "upstream"):
        raise UserError(f"'extras.module_source' is {source!r}, but it must be 'mosaic' or 'upstream'.")
    if source == "upstream":
        return Script(f"cleanrl.{algo}", ours=False)
    if algo in registry:
        return Script(registry[algo], ours=True)
    if algo.endswith(".py") or "/" in algo:
        path = (folder or Path.cwd()) / Path(algo).expanduser()
        if not path.is_file():
            raise UserError(f"The script {path} does not exist: check the path.")
        return Script(str(path.resolve()), ours=False)
    if looks_foreign(algo):
        return Script(algo, ours=False)
    raise UserError(
        f"'{algo}' is no known algorithm{closest(algo, registry) or '.'} "
        f"Known: {', '.join(registry)}; the path of a script or a dotted module will do as well."
    )
