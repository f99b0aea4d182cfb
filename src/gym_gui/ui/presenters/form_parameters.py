"""The parameters of algorithms as a form shows them: in groups, each algorithm with its own changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gym_gui.models.form_state import Field, FormState
from mosaic.contract.capabilities import WorkerCatalog

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
