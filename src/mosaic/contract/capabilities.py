"""What a worker package says of itself. Light: every worker process imports this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

PROTO_VERSION = "MOSAIC/1.0"


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
