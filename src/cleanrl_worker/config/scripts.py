"""Which script a run executes: one of ours, an installed module or a file of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cleanrl_worker.config.modes import MODE_TARGETS
from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY, find_algorithm_file
from cleanrl_worker.config.script_flags import OWN_BUDGET, ScriptFlags, find_source, looks_foreign, read_flags
from cleanrl_worker.config.shell_scripts import ScriptHead, find_shell_script, is_shell_script, read_head
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig
from mosaic.contract.errors import UserError, closest
from mosaic.contract.paths import named_path
from mosaic.worker.environment import user_places

Kind = Literal["algorithm", "mode", "foreign", "shell"]


@dataclass(frozen=True)
class Script:
    """What the launcher runs."""

    target: str
    """A dotted module or an absolute path."""
    kind: Kind
    """An algorithm on the training kit, which has a schema: of ours, of a plug-in or in a file of the user's;
    the module of a mode; anybody's Python; a shell script."""
    head: ScriptHead = field(default_factory=ScriptHead)
    """What a shell script says of itself."""
    flags: ScriptFlags = field(default_factory=ScriptFlags)
    """What somebody's Python script takes, as far as its source tells."""

    @property
    def ours(self) -> bool:
        """Whether it trains an algorithm on the training kit."""
        return self.kind == "algorithm"

    @property
    def has_main(self) -> bool:
        """Whether it is something of ours that is called, not a foreign script."""
        return self.kind in ("algorithm", "mode")

    @property
    def is_file(self) -> bool:
        return self.target.startswith("/")

    def makes_environments(self) -> bool:
        """Whether it is known to make environments with gymnasium: ours do, and files that speak of it."""
        if self.kind != "foreign" or not self.is_file:
            return self.has_main
        try:
            return b"gymnasium" in Path(self.target).read_bytes()
        except OSError:
            return False


def resolve_script(
    config: CleanRLWorkerConfig,
    folder: Path | None = None,
    registry: Mapping[str, str] = DEFAULT_ALGO_REGISTRY,
    python: str | None = None,
) -> Script:
    """The script for a config's mode and algo; a relative path counts from `folder`, the user's own.

    `python` is the interpreter that a module is looked for in, when it is not this one.
    """
    algo = config.algo
    if config.mode in MODE_TARGETS:
        return Script(MODE_TARGETS[config.mode], "mode")
    source = config.extras.get("module_source", "mosaic")
    if source not in ("mosaic", "upstream"):
        raise UserError(f"'extras.module_source' is {source!r}, but it must be 'mosaic' or 'upstream'.")
    if source == "upstream":
        return foreign_module(f"cleanrl.{algo}", folder, python)
    if algo in registry:
        return Script(registry[algo], "algorithm")
    if (own_file := find_algorithm_file(algo, folder)) is not None:
        return Script(own_file, "algorithm")
    if is_shell_script(algo):
        path = find_shell_script(algo, folder)
        return Script(str(path), "shell", read_head(path))
    if algo.endswith(".py") or "/" in algo:
        path = named_path(algo, folder)
        if not path.is_file():
            raise UserError(f"The script {path} does not exist: check the path.")
        return Script(str(path.resolve()), "foreign", flags=read_flags(path))
    if looks_foreign(algo):
        return foreign_module(algo, folder, python)
    raise UserError(
        f"'{algo}' is not a known algorithm{closest(algo, registry) or '.'} "
        f"Known: {', '.join(registry)}; the path of a script or a dotted module will do as well."
    )


def foreign_module(name: str, folder: Path | None, python: str | None) -> Script:
    """A dotted module of somebody else's, with its flags if its source is found."""
    source = find_source(name, python, [folder or Path.cwd(), *user_places()])
    return Script(name, "foreign", flags=read_flags(source) if source is not None else ScriptFlags())


def flags_of(algo: str, source: Any, folder: Path) -> ScriptFlags:
    """The flags of somebody's script, by what a config calls it."""
    if source != "upstream" and (algo.endswith(".py") or "/" in algo):
        return read_flags(named_path(algo, folder))
    return foreign_module(f"cleanrl.{algo}" if source == "upstream" else algo, folder, None).flags


def own_budget(algo: str, source: Any, folder: Path) -> int | None:
    """How long somebody's script trains when nobody tells it; None for an algorithm, which must be told."""
    if source != "upstream" and not looks_foreign(algo):
        return None
    default = flags_of(algo, source, folder).default("total_timesteps")
    return int(default) if isinstance(default, int | float) and default >= 1 else OWN_BUDGET
