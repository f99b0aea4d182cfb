"""What every form's presenter is: it holds the fields and makes an order of them, without Qt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from gym_gui.models.form_choices import (
    EnvironmentList,
    Requirement,
    environments_for,
    find_misfits,
    installed_sets,
    trainable,
)
from gym_gui.models.form_state import Field, FormState
from gym_gui.models.run_settings import TRUST, RunSettings
from mosaic.client import RunRecord, eval_config, resume_config, train_config
from mosaic.contract.capabilities import EnvironmentFacts, FormCatalog, WorkerCapabilities, WorkerCatalog
from mosaic.contract.errors import MosaicError, UserError


def speed_of(runs: Iterable[RunRecord], algo: str, env_id: str) -> float | None:
    """Steps per second of the newest run that trained this algorithm there; None when there is none."""
    fitting = [
        run
        for run in runs
        if (run.worker_config.get("algo"), run.worker_config.get("env_id")) == (algo, env_id)
        and (run.worker_config.get("extras") or {}).get("mode", "train") == "train"
        and run.headline.get("sps")
    ]
    newest = max(fitting, key=lambda run: run.submitted_at, default=None)
    return None if newest is None else float(newest.headline["sps"])


Config = dict[str, Any]
T = TypeVar("T")


class Order(Protocol):
    """What a form asks for, as it was when somebody pressed the button; used by another thread."""

    def configs(self) -> list[Config]:
        """The run configs, checked by the worker; UserError when something is wrong. May take a while."""


_read: dict[str, tuple[list[str], Sequence[EnvironmentFacts], dict[str, dict[str, str]]]] = {}
"""Algorithms, environments and misfits of each catalog, which never change and are too much for each form."""


@dataclass(frozen=True)
class FormSource:
    """Everything that forms are built from; read beside the window."""

    capabilities: WorkerCapabilities
    catalog: FormCatalog
    var: Path
    folder: Path = field(default_factory=Path.cwd)
    """The user's own: modules and scripts there can be named."""
    algorithms: Sequence[str] = ()
    """Those that can be trained: of another package's that cannot be loaded, the command line says why."""
    environments: Sequence[EnvironmentFacts] = ()
    misfits: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of each algorithm the environments on which it cannot train, with the reason."""
    installed: dict[str, bool] = field(default_factory=dict)
    """Of each optional set whether it is there."""

    @classmethod
    def read(cls, capabilities: WorkerCapabilities, var: Path) -> FormSource:
        """Load the worker's catalog; UserError when nothing in it is for forms."""
        catalog = capabilities.load_catalog()
        if not isinstance(catalog, FormCatalog):
            raise UserError(f"{capabilities.display_name} says too little of itself to be put in a form.")
        if capabilities.catalog not in _read:
            algorithms = [algo for algo in catalog.algorithms() if _is_whole(catalog, algo)]
            facts = catalog.environment_facts()
            _read[capabilities.catalog] = algorithms, facts, find_misfits(catalog, facts, algorithms)
        algorithms, facts, misfits = _read[capabilities.catalog]
        return cls(
            capabilities,
            catalog,
            var,
            algorithms=algorithms,
            environments=facts,
            misfits=misfits,
            installed=installed_sets(),
        )

    def environments_for(self, algo: str) -> EnvironmentList:
        """The environments as an algorithm sees them now."""
        offered = trainable(self.environments, self.misfits)
        return environments_for(offered, self.misfits.get(algo, {}), self.installed)

    def extra_of(self, env_id: str) -> str:
        """The optional set that an environment needs; empty for none."""
        return next((one.extra or "" for one in self.environments if one.env_id == env_id), "")


def _is_whole(catalog: FormCatalog, algo: str) -> bool:
    """Whether an algorithm tells what it takes; one of another package may be broken."""
    try:
        return bool(catalog.parameters(algo))
    except MosaicError:
        return False


class FormPresenter(ABC):
    """The fields of one form. All of it runs on the thread of the window and never blocks."""

    title: str
    """What the form is for."""

    def __init__(self, source: FormSource) -> None:
        self.source = source

    @abstractmethod
    def states(self) -> Sequence[FormState]:
        """All fields."""

    @abstractmethod
    def order(self) -> Order:
        """What is asked for now; UserError names a field that is wrong."""

    @abstractmethod
    def primary(self) -> str:
        """What the button will do, in words."""

    @abstractmethod
    def missing(self) -> list[Requirement]:
        """The optional sets that this run needs and that are not there."""

    def speed_key(self) -> tuple[str, str] | None:
        """Algorithm and environment, to ask earlier runs how fast it will be."""
        return None

    def problems(self) -> list[str]:
        """What can be seen to be wrong without asking anybody."""
        return [problem for state in self.states() for problem in state.problems()]

    def trust(self, module: str) -> None:
        """The person says yes to a module that only a file names."""
        for state in self.states():
            if TRUST in state.fields:
                known = filter(None, state.said(TRUST).split(","))
                state.put(TRUST, ",".join([*known, module]))

    def take_installed(self, installed: Mapping[str, bool]) -> None:
        """Optional sets have been installed meanwhile."""
        self.source.installed.update(installed)


class ChoosingForm(FormPresenter, Generic[T]):
    """A form about one thing that lies in a file: it is named, read, and taken."""

    trouble = ""
    """Why what was named cannot be taken."""

    @abstractmethod
    def read(self, named: str) -> T:
        """What a path, a name or an id means; UserError when nothing. Not for the thread of the window."""

    @abstractmethod
    def take(self, found: T | None) -> None:
        """Make the form about this; None while nothing is chosen."""

    def choose(self, named: str) -> None:
        """Read and take in one; what cannot be read leaves the form without a choice, with the reason."""
        if named:
            try:
                self.take(self.read(named))
            except MosaicError as error:
                self.refuse(str(error))

    def refuse(self, why: str) -> None:
        """Nothing is chosen, because of this."""
        self.take(None)
        self.trouble = why


@dataclass(frozen=True)
class TrainOrder:
    """Runs that differ in their seed only."""

    algo: str
    env_id: str | None
    total_timesteps: int | None
    seeds: tuple[int, ...]
    params: Mapping[str, Any]
    extras: Mapping[str, Any]
    settings: RunSettings
    worker_type: str | None = None
    folder: Path | None = None

    def configs(self) -> list[Config]:
        config = train_config(
            self.algo,
            self.env_id,
            total_timesteps=self.total_timesteps,
            seed=self.seeds[0],
            params=self.params,
            extras=self.extras,
            tags=self.settings.tags,
            run_name=self.settings.run_name,
            python=self.settings.python,
            worker_type=self.worker_type,
            folder=self.folder,
            secrets=self.settings.secrets,
            plain=self.settings.plain,
        )
        return for_seeds(self.settings.finish(config), self.seeds)


def for_seeds(config: Config, seeds: Sequence[int]) -> list[Config]:
    """The same config once for each seed."""
    found = []
    for seed in seeds:
        one = deepcopy(config)
        one["metadata"]["worker"]["config"]["seed"] = seed
        found.append(one)
    return found


@dataclass(frozen=True)
class ResumeOrder:
    """A new run that goes on from a checkpoint or a model."""

    checkpoint: str
    settings: RunSettings
    params: Mapping[str, Any]
    total_timesteps: int | None = None
    extend: int | None = None
    algo: str | None = None
    env_id: str | None = None
    worker_type: str | None = None
    folder: Path | None = None

    def configs(self) -> list[Config]:
        config = resume_config(
            self.checkpoint,
            total_timesteps=self.total_timesteps,
            extend=self.extend,
            algo=self.algo,
            env_id=self.env_id,
            params=self.params,
            extras=self.settings.extras,
            tags=self.settings.tags,
            run_name=self.settings.run_name,
            python=self.settings.python,
            worker_type=self.worker_type,
            folder=self.folder,
            secrets=self.settings.secrets,
            plain=self.settings.plain,
        )
        return [self.settings.finish(config)]


@dataclass(frozen=True)
class EvalOrder:
    """An evaluation of a policy."""

    policy: str
    settings: RunSettings
    episodes: int | None = None
    batch_size: int | None = None
    repeat: bool = False
    deterministic: bool = True
    gamma: float | None = None
    seed: int | None = None
    env_id: str | None = None
    algo: str | None = None
    capture_video: bool = False
    num_envs: int | None = None
    max_episode_steps: int | None = None
    max_seconds: float | None = None
    worker_type: str | None = None
    folder: Path | None = None
    var: Path | None = None

    def configs(self) -> list[Config]:
        config = eval_config(
            self.policy,
            episodes=self.episodes,
            batch_size=self.batch_size,
            repeat=self.repeat,
            deterministic=self.deterministic,
            gamma=self.gamma,
            seed=self.seed,
            env_id=self.env_id,
            algo=self.algo,
            capture_video=self.capture_video,
            num_envs=self.num_envs,
            max_episode_steps=self.max_episode_steps,
            max_seconds=self.max_seconds,
            extras=self.settings.extras,
            tags=self.settings.tags,
            run_name=self.settings.run_name,
            worker_type=self.worker_type,
            folder=self.folder,
            secrets=self.settings.secrets,
            plain=self.settings.plain,
            var=self.var,
        )
        return [self.settings.finish(config)]


_ROLLOUT = ("num_envs", "num_steps", "num_minibatches")


@dataclass(frozen=True)
class Group:
    """Parameters that stand together; the first group has no title and is never folded."""

    title: str
    names: tuple[str, ...]


class ParameterSheet:
    """A form's view of every algorithm's parameters."""

    def __init__(self, catalog: WorkerCatalog, kept: Sequence[str], sections: Sequence[Group]) -> None:
        """`kept` are parameters that stand beside what a run keeps; `sections` are folded away."""
        self._catalog, self._kept, self._sections = catalog, kept, sections
        self._states: dict[str, FormState] = {}

    def state(self, algo: str) -> FormState:
        """The parameters of an algorithm with the changes that were made to them."""
        if algo not in self._states:
            self._states[algo] = parameter_state(self._catalog, algo)
        return self._states[algo]

    def forget(self, algo: str) -> None:
        """Ask for an algorithm's parameters again: its file may have changed."""
        self._states.pop(algo, None)

    def groups(self, algo: str) -> list[Group]:
        """The parameters in the order in which they are shown."""
        names = [name for name in self.state(algo).fields if name not in self._kept]
        folded = {name for section in self._sections for name in section.names}
        first = Group("", tuple(name for name in names if name not in folded))
        others = [
            Group(one.title, tuple(name for name in one.names if name in names)) for one in self._sections
        ]
        return [first, *(one for one in others if one.names)]

    def kept(self, algo: str) -> list[str]:
        """Parameters about what a run keeps, such as its model."""
        return [name for name in self._kept if name in self.state(algo).fields]


def parameter_state(
    catalog: WorkerCatalog, algo: str, values: Mapping[str, Any] | None = None, only: Sequence[str] = ()
) -> FormState:
    """The parameters that a person may set; `values` stand in place of the defaults."""
    shown = [one for one in catalog.parameters(algo) if not one.runtime_only]
    fields = [Field.of(one) for one in shown if not only or one.name in only]
    known = values or {}
    return FormState(replace(one, default=known.get(one.name, one.default)) for one in fields)


def about_group(state: FormState, group: Group) -> str:
    """What is set in a folded group, in one line; changes come first."""
    order = sorted(group.names, key=lambda name: not state.is_changed(name))
    return " · ".join(f"{name} {state.text(name) or 'none'}" for name in order)


def help_of(state: FormState, name: str) -> str:
    """The text under a parameter; of minibatches it says how large they are."""
    if name != "num_minibatches" or any(one not in state.fields or state.problem(one) for one in _ROLLOUT):
        return state.fields[name].help
    envs, steps, parts = (state.whole(one) or 1 for one in _ROLLOUT)
    return f"{envs * steps:,} steps → {envs * steps // parts:,} each"
