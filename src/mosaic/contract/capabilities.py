"""What a worker package says of itself to daemon and clients, and finding the installed ones."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from mosaic.contract.errors import NotFoundError, UserError, closest

EVALUATES, RESUMES = "policy_eval", "resume_training"
"""What `extras.mode` says of a run that plays a policy, and of one that goes on from a checkpoint."""
NO_ENVIRONMENT = "none"
"""Stands for the environment of a script that names none."""


ParamType = Literal["bool", "int", "float", "str"]


@dataclass(frozen=True)
class ParamSchema:
    """One parameter; `optional` ones may be null, `runtime_only` ones are filled in by the run itself."""

    name: str
    type: ParamType
    default: bool | int | float | str | None
    help: str
    choices: tuple[bool | int | float | str, ...] | None = None
    minimum: float | None = None
    maximum: float | None = None
    optional: bool = False
    runtime_only: bool = False

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ParamSchema:
        choices = data.get("choices")
        return cls(**{**data, "choices": None if choices is None else tuple(choices)})


@dataclass(frozen=True)
class WorkerCapabilities:
    """The descriptor behind a `mosaic.workers` entry point."""

    worker_type: str
    display_name: str
    cli_module: str
    """Run as `python -m <cli_module> --config …` by the daemon."""
    requires_live_telemetry: bool = False
    provides_fast_analytics: bool = False
    supports_policy_load: bool = False
    tracks_wandb: bool = False
    """Whether `extras.track_wandb` in its config tracks a run with Weights & Biases."""
    secrets: tuple[str, ...] = ()
    """Names in its config that are secrets: `@env:NAME` stands there for it, and the variable has them."""
    waits_for_others: bool = False
    """Its runs train nothing themselves, but wait for runs that they submit: no CPU is reserved for them."""
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

    def told_to_track(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """This worker's config for a run whose `artifacts.wandb` is enabled."""
        if not self.tracks_wandb:
            raise UserError(
                f"The {self.display_name} does not track with Weights & Biases: leave 'artifacts.wandb' out."
            )
        extras = config.get("extras") or {}
        if isinstance(extras, Mapping):
            extras = {"track_wandb": True, **extras}
        return {**config, "extras": extras}


class WorkerCatalog(Protocol):
    """What a worker can train, for clients that build or check a config."""

    def algorithms(self) -> list[str]:
        """The names of the worker's own algorithms."""

    def knows(self, algo: str) -> bool:
        """Whether `algo` is one of them, or a script or module that the worker can run."""

    def parameters(self, algo: str) -> Sequence[ParamSchema]:
        """The parameters of one of its algorithms; of a foreign script those that can be told."""

    def default_timesteps(self, algo: str) -> int | None:
        """The budget of a run that names none; None for a script, which knows its own."""

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
    args: Mapping[str, Any] = field(default_factory=dict)
    """The parameters that it was trained with, as far as it tells."""


@runtime_checkable
class ResumingCatalog(WorkerCatalog, Protocol):
    """The catalog of a worker that takes the extras `mode` (`RESUMES`) and `checkpoint_path`.

    Such a config may leave algorithm, environment, budget and seed out: `check` fills them in.
    """

    def checkpoint(self, name: str, folder: Path) -> CheckpointFacts:
        """What lies behind a path, counted from `folder`, or a run's id; UserError when nothing does."""

    def explain_resume(self, config: Mapping[str, Any]) -> str:
        """One line about what a config that `check` has given restores and what it does not."""


@runtime_checkable
class ChangingCatalog(ResumingCatalog, Protocol):
    """The catalog of a worker whose resumed runs may have other values of some parameters.

    The parameter `resume_changes` names them; `stop_at` ends a run at a step of its budget.
    """

    def changeable(self, algo: str) -> Sequence[str]:
        """Those parameters of an algorithm; none for what cannot be resumed."""


@runtime_checkable
class ScriptCatalog(WorkerCatalog, Protocol):
    """The catalog of a worker that runs shell scripts; their heads may tell environment and budget."""

    def scripts(self) -> Sequence[dict[str, Any]]:
        """The scripts that are found by name: `name`, `path`, `shipped`, what their heads say, `problem`."""

    def is_script(self, algo: str) -> bool:
        """Whether `algo` names a shell script."""

    def script(self, name: str, folder: Path) -> dict[str, Any]:
        """The same of one script, by its name or by its path, counted from `folder`; UserError for none."""


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
    mean_return: float | None = None
    """What it earned: its evaluation's mean, else that of its run's last episodes."""
    repo: str | None = None
    """USER/MODEL of one that was pulled from the hub."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@runtime_checkable
class PolicyCatalog(WorkerCatalog, Protocol):
    """The catalog of a worker that takes the extras `mode` (`EVALUATES`) and `policy_path`.

    Such a config may leave algorithm, environment and seed out: `check` fills them in.
    """

    def policies(self, var: Path, run: str = "") -> Iterator[PolicyFacts]:
        """Every policy under a var folder, of the newest run first, as they are found: there may be very
        many. With `run` only those of runs whose id begins so."""

    def policy(self, name: str, folder: Path, var: Path | None = None) -> PolicyFacts:
        """What a path, counted from `folder`, or a run's id means; UserError when it means nothing."""


@runtime_checkable
class ExaminingCatalog(WorkerCatalog, Protocol):
    """The catalog of a worker whose check tells what it has found, to be kept with the run."""

    def examine(
        self, config: Mapping[str, Any], python: str | None, folder: Path | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What `check` gives, and what was found on the way, as JSON holds it: `rows` (pairs of texts for a
        person), `versions`, `environment` with its spaces, `warning`. Of one config the same each time."""


@runtime_checkable
class DescribingCatalog(WorkerCatalog, Protocol):
    """The catalog of a worker that can tell all about a run before it starts."""

    def describe(
        self, config: Mapping[str, Any], python: str | None, folder: Path, typed: Collection[str]
    ) -> dict[str, Any]:
        """What would run: `module`, `command`, `environment`, `parameters` (each with `name`, `value` and
        `source`: default, config, cli or checkpoint; `typed` are those said on a command line), `device`,
        `estimated_memory_mb`, `missing_extras`, `warning`. UserError when the config is wrong."""

    def warning(self, config: Mapping[str, Any]) -> str:
        """What will come of a config that is right, but hardly meant; empty when there is nothing to say."""


@dataclass(frozen=True)
class EnvironmentFamily:
    """Environments that come from one place, and an example that trains."""

    name: str
    title: str
    """What people call it."""
    algo: str
    """Trains on `env_id` as it is."""
    env_id: str


@dataclass(frozen=True)
class EnvironmentFacts:
    """An environment that is known without asking the training interpreter."""

    env_id: str
    family: str
    family_title: str
    extra: str | None
    """The optional set that installs it; None for one that is always there."""
    spaces: str
    """What an agent sees and does there, in a few words."""
    max_episode_steps: int | None = None
    backends: Mapping[str, str | None] = field(default_factory=dict)
    """What can step it, each with the optional set that it is in."""
    algorithms: tuple[str, ...] = ()
    """The worker's own that train on it as it is."""


@runtime_checkable
class FormCatalog(WorkerCatalog, Protocol):
    """The catalog of a worker whose trainings can be put together in a form."""

    def summary(self, algo: str) -> str:
        """One line about an algorithm."""

    def page(self, algo: str) -> Path | None:
        """The Markdown page about an algorithm, with its pictures beside it; None when there is none."""

    def environment_families(self) -> Sequence[EnvironmentFamily]:
        """The families of `environments`, in the order in which they are told."""

    def environment_facts(self) -> Sequence[EnvironmentFacts]:
        """What is known of each of `environments`, family by family."""

    def misfit(self, algo: str, env_id: str) -> str:
        """Why `algo` cannot train on an environment; empty when it can, or when nobody knows."""

    def requirements(self, algo: str, env_backend: str) -> Sequence[str]:
        """The optional sets that an algorithm needs with an `env_backend`, whatever the environment."""

    def curricula(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Curricula by name: the stages, each with `env_id` and perhaps `steps` or `condition`."""


ENTRY_POINT_GROUP = "mosaic.workers"

_log = logging.getLogger(__name__)


@cache
def discover_workers() -> Mapping[str, WorkerCapabilities]:
    """Every installed worker by its type. A broken one is logged and left out."""
    found: dict[str, WorkerCapabilities] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            capabilities = point.load()()
        except Exception:
            _log.exception("worker %s cannot be loaded", point.name)
            continue
        if isinstance(capabilities, WorkerCapabilities):
            found[capabilities.worker_type] = capabilities
        else:
            _log.error("worker %s gives %r instead of WorkerCapabilities", point.name, type(capabilities))
    return found


def find_worker(worker_type: str) -> WorkerCapabilities:
    """The worker of this type, or an error that names the nearest one."""
    workers = discover_workers()
    if worker_type not in workers:
        raise NotFoundError(
            f"No worker of type '{worker_type}' is installed{closest(worker_type, workers) or '.'} "
            f"Installed: {', '.join(sorted(workers)) or 'none'}."
        )
    return workers[worker_type]


def parameter_defaults(worker_type: str, algo: str) -> dict[str, Any]:
    """The defaults of an algorithm's parameters; none where nobody knows them. Catalogs load slowly."""
    try:
        worker = find_worker(worker_type)
    except NotFoundError:
        return {}
    parameters = worker.load_catalog().parameters(algo) if worker.catalog else ()
    return {one.name: one.default for one in parameters if not one.runtime_only}
