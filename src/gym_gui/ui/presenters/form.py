"""What every form's presenter is: it holds the fields and makes an order of them, without Qt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from gym_gui.models.environments import EnvironmentList, environments_for, find_misfits, trainable
from gym_gui.models.form_state import FormState
from gym_gui.models.requirements import Requirement, installed_sets
from gym_gui.models.run_fields import TRUST
from mosaic.contract.capabilities import EnvironmentFacts, FormCatalog, WorkerCapabilities
from mosaic.contract.errors import MosaicError, UserError

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
