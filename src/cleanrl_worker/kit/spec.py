"""What an algorithm says of itself: its arguments, what it trains on, how it trains and plays."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from cleanrl_worker.config.registry import AlgorithmFile
from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.envs import AtariOptions
from mosaic.contract.outside import parse_json

if TYPE_CHECKING:
    from cleanrl_worker.kit.policy import Policy, Spaces
    from cleanrl_worker.kit.run import Run

ArgsT = TypeVar("ArgsT")

ARGS: Final = object()
"""Stands for the run's arguments in the form of a model file."""

ModelForm = Any
"""The form of a model file: the name of a kept part, a tuple or a dict of such forms, or `ARGS`."""


class Misfit(Exception):
    """Weights are not those of a network; the text says what is wrong with them, as part of a sentence."""

    def __init__(self, text: str, only_shapes: bool = False) -> None:
        super().__init__(text)
        self.only_shapes = only_shapes


Shapes = Mapping[str, tuple[int, ...]]
_NAMED = 3
"""How many names of parameters a sentence holds."""


def compare_weights(given: Shapes, wanted: Shapes) -> None:
    """Raise Misfit when weights of these shapes, by their names, are not those of a network."""
    problems = []
    if missing := [name for name in wanted if name not in given]:
        problems.append(f"it lacks {_listed(missing)}")
    if unexpected := [str(name) for name in given if name not in wanted]:
        problems.append(f"it has {_listed(unexpected)}, which have no place there")
    if problems:
        raise Misfit(" and ".join(problems))
    for name, needed in wanted.items():
        # Some scripts store bounds and spreads as one row of a table.
        if _without_ones(given[name]) != _without_ones(needed):
            raise Misfit(f"{name} has the shape {given[name]} where {needed} is needed", only_shapes=True)


def _without_ones(shape: Iterable[int]) -> list[int]:
    return [size for size in shape if size != 1]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


@dataclass(frozen=True)
class AlgorithmSpec:
    """One algorithm. A module binds it as `SPEC`."""

    name: str
    args: type[CommonArgs]
    train: Callable[[Run[Any]], None]
    """The whole training: it builds its networks, then loops over `run.updates`."""
    load_policy: Callable[[Any, Spaces, Any], Policy]
    """The policy in the content of a model file; raises Misfit when it is of something else."""
    action_spaces: tuple[str, ...]
    observation_spaces: tuple[str, ...]
    flat_observations: bool = True
    """Whether its networks read vectors of floats; else observations keep their own shape and dtype."""
    wrap: Callable[[Any, Any], Any] | None = None
    """An environment as the learner sees it, given the arguments: wrappers, frame stack, reward clipping.
    Episodes are counted beneath it, as the game counts them."""
    env_defaults: Callable[[str], Mapping[str, Any]] = lambda env_id: {}
    """Keyword arguments that it makes an environment with, by its id; those of the user override them."""
    atari: Callable[[Any], AtariOptions] | None = None
    """What `wrap` does to games of Atari, for backends that prepare their frames themselves."""
    pool_options: Callable[[Any, bool], Mapping[str, Any]] = lambda args, evaluating: {}
    """Keyword arguments for an environment of EnvPool's, given the arguments and whether a policy is played
    in it; those of the user override them."""
    env_backend: Literal["python", "envpool", "ale"] = "python"
    """What `auto` means for it: what steps its environments."""
    masks: bool = False
    """Whether it asks which actions are allowed, and takes no others."""
    model: ModelForm = "agent"
    """What a model file holds, by the names of kept parts."""
    normalises: bool = False
    """Whether its policies see normalised observations; the statistics are the kept part `normaliser`."""
    check: Callable[[Any], None] = lambda args: None
    """Raises UserError for arguments that each may be right, but not together."""
    backend: Literal["torch", "jax"] = "torch"
    requires: tuple[str, ...] = ()
    """Optional sets of packages that it needs, such as `atari`; asked for before anything starts."""
    exact: bool = True
    """Whether a resumed run goes on to the byte."""
    several_players: bool = False
    """Whether it trains all players of a game, each of which is a row of its; else one agent."""
    file: AlgorithmFile | None = None
    """The user's file that it was loaded from; filled in by whoever loads it."""

    def wrapper(self, args: Any) -> Callable[[Any], Any] | None:
        """What wraps each environment of a run with these arguments; None where nothing does."""
        wrap = self.wrap
        return None if wrap is None else lambda env: wrap(env, args)

    def env_kwargs(self, args: CommonArgs) -> str:
        """The keyword arguments of the environments of a run, as JSON: the user's over the algorithm's."""
        try:
            given = parse_json(args.env_kwargs)
            return json.dumps({**self.env_defaults(args.env_id), **given})
        except (TypeError, ValueError):
            # What is wrong with them is told by who makes the environments.
            return args.env_kwargs


def fill_model(form: ModelForm, parts: Callable[[str], Any], args: Mapping[str, Any]) -> Any:
    """The content of a model file, out of kept parts."""
    if form is ARGS:
        return dict(args)
    if isinstance(form, tuple):
        return tuple(fill_model(part, parts, args) for part in form)
    if isinstance(form, Mapping):
        return {name: fill_model(part, parts, args) for name, part in form.items()}
    name, _, inner = str(form).partition(".")
    weights = parts(name)
    if not inner:
        return weights
    if inner in weights:
        return weights[inner]
    return {key[len(inner) + 1 :]: value for key, value in weights.items() if key.startswith(f"{inner}.")}


def split_model(form: ModelForm, content: Any) -> dict[str, dict[str, Any]]:
    """The weights of each kept part, out of the content of a model file; Misfit when it has another form."""
    found: dict[str, dict[str, Any]] = {}
    _split(form, content, found)
    return found


def _split(form: ModelForm, content: Any, found: dict[str, dict[str, Any]]) -> None:
    if form is ARGS:
        return
    if isinstance(form, tuple):
        if not isinstance(content, tuple | list) or len(content) != len(form):
            number = f"{len(content)} parts" if isinstance(content, tuple | list) else "one part"
            raise Misfit(f"it has {number} where {len(form)} are needed")
        for part, own in zip(form, content, strict=True):
            _split(part, own, found)
    elif isinstance(form, Mapping):
        if not isinstance(content, Mapping) or not content.keys() >= form.keys():
            raise Misfit(f"it does not have {' and '.join(form)}")
        if len(content) != len(form):
            raise Misfit(f"it has {len(content)} parts where {len(form)} are needed")
        for name, part in form.items():
            _split(part, content[name], found)
    else:
        name, _, inner = str(form).partition(".")
        if not isinstance(content, Mapping):
            raise Misfit("it does not hold the weights of one network by their names")
        prefix = f"{inner}." if inner else ""
        found.setdefault(name, {}).update({f"{prefix}{key}": value for key, value in content.items()})


def told_args(content: Any, args: ArgsT, names: Iterable[str]) -> ArgsT:
    """Arguments in which those of these names, all of them numbers, are as a model file says; Misfit when
    it says something else of them."""
    if not isinstance(content, Mapping):
        raise Misfit("its args are not a table by name")
    told = {name: content[name] for name in names if name in content}
    for name, value in told.items():
        whole = isinstance(getattr(type(args), name), int)
        kind = int if whole else int | float
        if isinstance(value, bool) or not isinstance(value, kind) or not math.isfinite(value):
            raise Misfit(f"its args say that {name} is {value!r}")
    known: Any = args
    changed: ArgsT = dataclasses.replace(known, **told)
    return changed
