"""What a worker package says of itself. Light: every worker process imports this."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

PROTO_VERSION = "MOSAIC/1.0"
NO_ENVIRONMENT = "none"
"""Stands for the environment of a script that names none."""


@dataclass(frozen=True)
class WorkerCapabilities:
    """The descriptor behind a `mosaic.workers` entry point."""

    worker_type: str
    display_name: str
    cli_module: str
    """Run as `python -m <cli_module> --config …` by the daemon."""
    supported_paradigms: tuple[str, ...]
    env_families: tuple[str, ...]
    action_spaces: tuple[str, ...]
    observation_spaces: tuple[str, ...]
    max_agents: int = 1
    supports_checkpointing: bool = False
    requires_gpu: bool = False
    estimated_memory_mb: int = 512
    requires_live_telemetry: bool = False
    provides_fast_analytics: bool = False
    supports_policy_load: bool = False
    player_module: str = ""
    """Run as `python -m <player_module> --policy-path=…` to play a policy: see docs/interactive.md."""
    forms: Mapping[str, str] = field(default_factory=dict)
    """Form widgets by purpose, as `module:Class`."""
    presenter: str = ""
    catalog: str = ""
    """`module:name` of the worker's `WorkerCatalog`; loaded only when something must be checked."""

    def load_catalog(self) -> WorkerCatalog:
        """What this worker can train."""
        module, _, name = self.catalog.partition(":")
        loaded: WorkerCatalog = getattr(import_module(module), name)
        return loaded

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class WorkerCatalog(Protocol):
    """What a worker can train, for clients that build or check a config."""

    def algorithms(self) -> list[str]:
        """The names of the worker's own algorithms."""

    def knows(self, algo: str) -> bool:
        """Whether `algo` is one of them, or a script or module that the worker can run."""

    def parameters(self, algo: str) -> Sequence[Parameter]:
        """The parameters of one of its algorithms; none for a foreign script."""

    def default_timesteps(self, algo: str) -> int:
        """The budget of a run that names none."""

    def environments(self) -> Sequence[str]:
        """Environment ids known without asking the training interpreter."""

    def check(self, config: Mapping[str, Any], python: str | None, folder: Path | None) -> dict[str, Any]:
        """The worker config with typed values, or a UserError. `folder` is the user's own: with it,
        names that no catalog knows are looked up in the training interpreter; without, they pass."""


@dataclass(frozen=True)
class CheckpointFacts:
    """What a run can go on from; a model alone has no step and no budget, and may not say what it is of."""

    path: str
    algo: str | None
    env_id: str | None
    step: int | None
    total_timesteps: int | None


@runtime_checkable
class ResumingCatalog(WorkerCatalog, Protocol):
    """The catalog of a worker that takes the extras `mode: resume_training` and `checkpoint_path`.

    Such a config may leave algorithm, environment, budget and seed out: `check` fills them in.
    """

    def checkpoint(self, name: str, folder: Path) -> CheckpointFacts:
        """What lies behind a path, counted from `folder`, or a run's id; UserError when nothing does."""

    def explain_resume(self, config: Mapping[str, Any]) -> str:
        """One line about what a config that `check` has given restores and what it does not."""


@runtime_checkable
class ScriptCatalog(WorkerCatalog, Protocol):
    """The catalog of a worker that runs shell scripts; their heads may tell environment and budget."""

    def scripts(self) -> Sequence[dict[str, Any]]:
        """The scripts that are found by name: `name`, `path`, `shipped`, what their heads say, `problem`."""

    def is_script(self, algo: str) -> bool:
        """Whether `algo` names a shell script."""


@dataclass(frozen=True)
class PolicyFacts:
    """A policy in a file: a model, or a full checkpoint. What the file does not tell is None."""

    path: str
    is_model: bool
    best: bool
    """Whether it is kept as the best of its run, not as the newest."""
    size: int
    modified: float
    run_id: str | None = None
    algo: str | None = None
    env_id: str | None = None
    seed: int | None = None
    step: int | None = None
    last_return: float | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@runtime_checkable
class PolicyCatalog(WorkerCatalog, Protocol):
    """The catalog of a worker that takes the extras `mode: policy_eval` and `policy_path`.

    Such a config may leave algorithm, environment and seed out: `check` fills them in.
    """

    def policies(self, var: Path) -> Sequence[PolicyFacts]:
        """Every policy under a var folder, of the newest run first."""

    def policy(self, name: str, folder: Path, var: Path | None = None) -> PolicyFacts:
        """What a path, counted from `folder`, or a run's id means; UserError when it means nothing."""


@runtime_checkable
class DescribingCatalog(WorkerCatalog, Protocol):
    """The catalog of a worker that can tell all about a run before it starts."""

    def describe(
        self, config: Mapping[str, Any], python: str | None, folder: Path, typed: Collection[str]
    ) -> dict[str, Any]:
        """What would run: `module`, `command`, `environment`, `parameters` (each with `name`, `value` and
        `source`: default, config, cli or checkpoint; `typed` are those said on a command line), `device`,
        `estimated_memory_mb`, `missing_extras`. UserError when the config is wrong."""


class Parameter(Protocol):
    """One parameter of an algorithm."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def default(self) -> Any: ...
    @property
    def help(self) -> str: ...
    @property
    def runtime_only(self) -> bool: ...
