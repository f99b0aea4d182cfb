"""What every form's presenter is: it holds the fields and makes an order of them, without Qt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from gym_gui.models.form_choices import (
    EnvironmentList,
    ListRow,
    Requirement,
    environments_for,
    find_misfits,
    installed_sets,
    missing,
    trainable,
)
from gym_gui.models.form_state import Field, FormState, about_seeds, parse_seeds, problem_in
from gym_gui.models.run_settings import ALL, TRUST, RunSettings
from mosaic.client import RunRecord
from mosaic.contract.capabilities import EnvironmentFacts, FormCatalog, WorkerCapabilities, WorkerCatalog
from mosaic.contract.errors import MosaicError, UserError
from mosaic.tracking import TITLES

Config = dict[str, Any]
T = TypeVar("T")

_ROLLOUT = ("num_envs", "num_steps", "num_minibatches")
_read: dict[str, tuple[list[str], Sequence[EnvironmentFacts], dict[str, dict[str, str]]]] = {}
"""Algorithms, environments and misfits of each catalog, which never change and are too much for each form."""


@dataclass(frozen=True)
class Order:
    """What a form asks for, as it was when somebody pressed the button; used by another thread."""

    build: Callable[..., Config]
    """`train_config`, `resume_config` or `eval_config`, which are told what is `asked` for by name."""
    asked: Mapping[str, Any]
    settings: RunSettings
    seeds: tuple[int, ...] = ()
    """One run for each; without any there is one run, whose seed is among what is asked for."""

    def configs(self) -> list[Config]:
        """The run configs, checked by the worker; UserError when something is wrong. May take a while."""
        seed = {"seed": self.seeds[0]} if self.seeds else {}
        config = self.settings.finish(self.build(**{**self.settings.asked(), **seed, **self.asked}))
        configs = [deepcopy(config) for _ in self.seeds or (None,)]
        for one, run_seed in zip(configs, self.seeds, strict=False):
            one["metadata"]["worker"]["config"]["seed"] = run_seed
        return configs


@dataclass(frozen=True)
class FormSource:
    """Everything that forms are built from; read beside the window."""

    capabilities: WorkerCapabilities
    catalog: FormCatalog
    var: Path
    folder: Path
    """The user's own: modules and scripts there can be named."""
    algorithms: Sequence[str]
    """Those that can be trained: of another package's that cannot be loaded, the command line says why."""
    environments: Sequence[EnvironmentFacts]
    misfits: Mapping[str, Mapping[str, str]]
    """Of each algorithm the environments on which it cannot train, with the reason."""
    installed: dict[str, bool]
    """Of each optional set whether it is there."""

    @classmethod
    def read(cls, capabilities: WorkerCapabilities, var: Path) -> FormSource:
        """Load the worker's catalog; UserError when nothing in it is for forms."""
        catalog = capabilities.load_catalog()
        if not isinstance(catalog, FormCatalog):
            raise UserError(f"{capabilities.display_name} lacks the information for a form.")
        if capabilities.catalog not in _read:
            algorithms = [algo for algo in catalog.algorithms() if _is_whole(catalog, algo)]
            facts = catalog.environment_facts()
            _read[capabilities.catalog] = algorithms, facts, find_misfits(catalog, facts, algorithms)
        return cls(capabilities, catalog, var, Path.cwd(), *_read[capabilities.catalog], installed_sets())

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

    build: Callable[..., Config]
    """What makes the config of a run: see `Order`."""

    def __init__(self, source: FormSource, fields: Iterable[Field]) -> None:
        self.source = source
        self.run = FormState([*fields, *ALL])
        self.params = FormState([])
        """The parameters of the algorithm, where the form has any."""
        self._environments: dict[str, EnvironmentList] = {}

    @abstractmethod
    def asked(self, settings: RunSettings) -> dict[str, Any]:
        """What the run is about; nothing is wrong with it as far as can be seen here."""

    @abstractmethod
    def primary(self) -> str:
        """What the button will do, in words."""

    @abstractmethod
    def load(self, prefill: Mapping[str, Any]) -> None:
        """Fill the form for what it was opened for. May read files: not for the thread of the window."""

    def env_id(self) -> str:
        """The environment that the run is for."""
        return self.run.said("env_id")

    def order(self) -> Order:
        """What is asked for now; UserError names a field that is wrong."""
        problems = self.problems()
        if problems:
            raise UserError(problems[0])
        settings, source = RunSettings.of(self.run), self.source
        always = {"worker_type": source.capabilities.worker_type, "folder": source.folder}
        asked = {**always, "python": settings.python, **self.asked(settings)}
        return Order(self.build, asked, settings, self.seeds())

    def speed(self, runs: Iterable[RunRecord]) -> float | None:
        """Steps per second of the newest run that trained the same; None when there is none."""
        return None

    def problems(self) -> list[str]:
        """What can be seen to be wrong without asking anybody."""
        return [*self.run.problems(), *self.params.problems()]

    def missing(self) -> list[Requirement]:
        """The optional sets that this run needs and that are not there; another interpreter has its own."""
        return [] if self.run.said("python") else missing(self.needs(), self.source.installed)

    def needs(self) -> Iterator[tuple[str, str]]:
        """Optional sets, each with what asks for it."""
        yield self.source.extra_of(self.env_id()), self.env_id()
        if self.is_on("capture_video"):
            yield "video", "Recording a video"
        for name, title in TITLES.items():
            if self.is_on(name):
                yield name, f"Tracking with {title}"
        if self.is_on("upload_model"):
            yield "hub", "Uploading the model"

    def is_on(self, name: str) -> bool:
        """Whether there is a switch of this name, and it is on."""
        return any(name in state.fields and state.is_on(name) for state in (self.run, self.params))

    def environments_of(self, algo: str) -> EnvironmentList:
        """The environments as an algorithm sees them now."""
        if algo not in self._environments:
            source = self.source
            offered, misfits = trainable(source.environments, source.misfits), source.misfits.get(algo, {})
            self._environments[algo] = environments_for(offered, misfits, source.installed, algo)
        return self._environments[algo]

    def trust(self, module: str) -> None:
        """The person says yes to a module that only a file names."""
        known = filter(None, self.run.said(TRUST).split(","))
        self.run.put(TRUST, ",".join([*known, module]))

    def take_installed(self, installed: Mapping[str, bool]) -> None:
        """Optional sets have been installed meanwhile."""
        self.source.installed.update(installed)
        self._environments.clear()

    def seeds(self) -> tuple[int, ...]:
        """Those that each get a run of their own; none where the form has no field for them."""
        return parse_seeds(self.run.text("seeds")) if "seeds" in self.run.fields else ()

    def about_seeds(self) -> str:
        return about_seeds(self.run.text("seeds"))

    def seeds_problem(self) -> str:
        return problem_in(self.seeds)

    def count(self) -> int:
        """How many runs it will be, as far as the seeds can be read."""
        return 1 if self.seeds_problem() else len(self.seeds())


class ChoosingForm(FormPresenter, Generic[T]):
    """A form about one thing that lies in a file: it is named, read, and taken."""

    key: str
    """The field that names it, which is also what a prefill may hold."""
    nothing: str
    """What is wrong while nothing is chosen."""

    def __init__(self, source: FormSource, fields: Iterable[Field], rows: Sequence[ListRow]) -> None:
        """`rows` are those things that were found."""
        super().__init__(source, fields)
        self.rows = rows
        self.facts: T | None = None
        self.trouble = ""
        """Why what was named cannot be taken."""

    @abstractmethod
    def read(self, named: str) -> T:
        """What a path, a name or an id means; UserError when nothing. Not for the thread of the window."""

    @abstractmethod
    def chosen(self) -> str:
        """The key of the row that is chosen; empty for none."""

    def take(self, found: T | None) -> None:
        """Make the form about this; None while nothing is chosen."""
        self.facts, self.trouble = found, ""

    def refuse(self, why: str) -> None:
        """Nothing is chosen, because of this."""
        self.take(None)
        self.trouble = why

    def load(self, prefill: Mapping[str, Any]) -> None:
        """What cannot be read leaves the form without a choice."""
        given = (prefill.get(self.key), prefill.get("run_dir"), prefill.get("run_id"), self.first())
        named = str(next(filter(None, given), ""))
        self.run.put(self.key, named)
        if named:
            try:
                self.take(self.read(named))
            except MosaicError as error:
                self.refuse(str(error))

    def first(self) -> str:
        """What is chosen where nothing was named."""
        return ""

    def problems(self) -> list[str]:
        return [self.trouble or self.nothing] if self.facts is None else super().problems()


@dataclass(frozen=True)
class Group:
    """Parameters that stand together; the first group has no title and is never folded."""

    title: str
    names: tuple[str, ...]


class ParameterSheet:
    """A form's view of every algorithm's parameters, each algorithm with its own changes."""

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
