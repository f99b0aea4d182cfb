"""Which script a run executes: one of ours, an installed module or a file of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.modes import MODE_TARGETS
from cleanrl_worker.registry import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.script_head import ScriptHead, read_head
from cleanrl_worker.shell_scripts import find_shell_script, is_shell_script
from mosaic.contract.errors import UserError, closest

Kind = Literal["algorithm", "mode", "foreign", "shell"]


@dataclass(frozen=True)
class Script:
    """What the launcher runs."""

    target: str
    """A dotted module or an absolute path."""
    kind: Kind
    """One of our algorithms, which has a schema; the module of a mode; anybody's Python; a shell script."""
    head: ScriptHead = field(default_factory=ScriptHead)
    """What a shell script says of itself."""

    @property
    def ours(self) -> bool:
        """Whether it trains one of our algorithms."""
        return self.kind == "algorithm"

    @property
    def has_main(self) -> bool:
        """Whether it is a module of ours, whose `main()` is called."""
        return self.kind in ("algorithm", "mode")

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
    """The script for a config's mode and algo; a relative path counts from `folder`, the user's own."""
    algo = config.algo
    if config.mode in MODE_TARGETS:
        return Script(MODE_TARGETS[config.mode], "mode")
    source = config.extras.get("module_source", "mosaic")
    if source not in ("mosaic", "upstream"):
        raise UserError(f"'extras.module_source' is {source!r}, but it must be 'mosaic' or 'upstream'.")
    if source == "upstream":
        return Script(f"cleanrl.{algo}", "foreign")
    if algo in registry:
        return Script(registry[algo], "algorithm")
    if is_shell_script(algo):
        path = find_shell_script(algo, folder)
        return Script(str(path), "shell", read_head(path))
    if algo.endswith(".py") or "/" in algo:
        path = (folder or Path.cwd()) / Path(algo).expanduser()
        if not path.is_file():
            raise UserError(f"The script {path} does not exist: check the path.")
        return Script(str(path.resolve()), "foreign")
    if looks_foreign(algo):
        return Script(algo, "foreign")
    raise UserError(
        f"'{algo}' is no known algorithm{closest(algo, registry) or '.'} "
        f"Known: {', '.join(registry)}; the path of a script or a dotted module will do as well."
    )
