"""How the models of each algorithm are played, those of other people's scripts too.

An algorithm's `SPEC` says it itself, by `load_policy(weights, spaces, args)`; this registry finds it there.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from cleanrl_worker.config.checkpoint_files import CHECKPOINT_SUFFIX, Origin, holds_flax, read_origin
from cleanrl_worker.config.policy_card import read_card
from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY, find_algorithm_file
from cleanrl_worker.config.resuming import as_object
from cleanrl_worker.config.trust import require_trust, require_trusted_algorithm
from cleanrl_worker.evaluation.episodes import Evaluation, evaluate
from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.backend import find_backend
from cleanrl_worker.kit.envs import EpisodeEnvs
from cleanrl_worker.kit.loading import load_spec
from cleanrl_worker.kit.normalise import FrozenNormaliser, statistics_in
from cleanrl_worker.kit.open_envs import open_episodes
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.spec import AlgorithmSpec, Misfit, fill_model
from cleanrl_worker.kit.state import State, decode
from cleanrl_worker.schemas.model import load_schema, shipped_algorithms
from mosaic.contract.errors import MosaicError, NotFoundError, StorageError, UserError, closest
from mosaic.contract.extras import require_extra

NO_STATISTICS = (
    "The statistics of the observations that this policy was trained on are not beside its weights; "
    "it sees them as they are, and its returns will be lower."
)


@dataclass(frozen=True)
class EvalEntry:
    """What it takes to play a model of one algorithm."""

    spec: AlgorithmSpec
    evaluate: Callable[..., Evaluation] = evaluate

    @property
    def algo(self) -> str:
        return self.spec.name

    def checkpoint_weights(self, parts: State, args: CommonArgs) -> Any:
        """The weights among the parts of a full checkpoint, in the form of a model file."""
        content = fill_model(self.spec.model, parts.__getitem__, vars(args))
        return find_backend(self.spec.backend).decode_weights(content)

    def make_envs(self, args: CommonArgs, num_envs: int) -> EpisodeEnvs:
        """Environments as the algorithm trains on, those of Python where it has them."""
        return open_episodes(self.spec, args, num_envs)


def find_entry(algo: str) -> EvalEntry:
    """How models of an algorithm are played; UserError when there is none of that name."""
    if algo not in DEFAULT_ALGO_REGISTRY and find_algorithm_file(algo) is None:
        hint = closest(algo, DEFAULT_ALGO_REGISTRY) or f"; known are {', '.join(DEFAULT_ALGO_REGISTRY)}."
        raise UserError(f"There is no algorithm '{algo}' whose models can be played{hint}")
    schema = load_schema(algo)
    for name in schema.requires if schema is not None else ():
        require_extra(name, algo)
    return EvalEntry(load_spec(find_algorithm_file(algo) or algo))


@dataclass(frozen=True)
class SavedModel:
    """The weights of a policy, and all that is known of how they came about."""

    name: str
    entry: EvalEntry
    args: CommonArgs
    weights: Any
    statistics: dict[str, Any] | None = None
    """Those of the observations it was trained on, if it was so."""
    step: int | None = None
    parts: State | None = None
    """Those of a full checkpoint, which are in place of the weights."""

    def make_envs(self, num_envs: int) -> EpisodeEnvs:
        """Environments that the policy was trained on, by its arguments."""
        return self.entry.make_envs(self.args, num_envs)

    def load_policy(self, spaces: Spaces) -> Policy:
        """The policy, for environments of these spaces; UserError says what does not fit."""
        try:
            weights = self.weights
            if self.parts is not None:
                weights = self._weights_in(self.parts)
            policy: Policy = self.entry.spec.load_policy(weights, spaces, self.args)
        except Misfit as misfit:
            raise UserError(
                f"{self.name} is not a model of {self.entry.algo} for {self.args.env_id}: {misfit}."
            ) from misfit
        if self.statistics is not None:
            try:
                policy.normaliser = FrozenNormaliser(self.statistics)
            except (KeyError, TypeError, ValueError) as error:
                raise UserError(
                    f"The card beside {self.name} has broken statistics of observations."
                ) from error
            if policy.normaliser.size != math.prod(spaces.observation_space.shape):
                raise UserError(f"The card beside {self.name} has statistics of other observations.")
        elif self.entry.spec.normalises:
            policy.notes = (NO_STATISTICS,)
        return policy

    def _weights_in(self, parts: State) -> Any:
        try:
            return self.entry.checkpoint_weights(parts, self.args)
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise Misfit("it does not hold the weights of its networks") from error


def open_model(
    path: Path,
    algo: str | AlgorithmSpec | None = None,
    env_id: str | None = None,
    env_kwargs: str | None = None,
    trusted: Collection[str] = (),
) -> SavedModel:
    """The policy in a model file or a full checkpoint.

    What is not given is taken from the card beside a model, or told by its parameters' names; a checkpoint
    holds its own. A module or an algorithm's file that only these name is refused unless it is `trusted`.
    """
    is_model = path.suffix != CHECKPOINT_SUFFIX
    if is_model and not path.is_file():
        raise NotFoundError(f"There is no model file {path}.")
    origin = read_origin(path)
    if algo is None:
        require_trusted_algorithm(origin, trusted)
    given = {"env_id": env_id, "env_kwargs": env_kwargs}
    if not is_model:
        return _open_checkpoint(origin, algo, given, trusted)
    card = read_card(path)
    _require_trust(path, card.args if card else {}, given, trusted)
    if algo is None:
        algo = origin.algo if card is not None else guess_algo(path)
    entry = EvalEntry(algo) if isinstance(algo, AlgorithmSpec) else find_entry(str(algo))
    weights = find_backend(entry.spec.backend).read_model(path)
    args = _arguments(entry, card.args if card else {}, given)
    if card is None:
        return SavedModel(str(path), entry, args, weights)
    return SavedModel(str(path), entry, args, weights, card.normaliser, card.step)


def _require_trust(
    path: Path, known: Mapping[str, Any], given: Mapping[str, Any], trusted: Collection[str]
) -> None:
    """Who names the environment has a say in what is imported; else only the file has."""
    if given["env_id"] is None:
        kwargs = as_object(known.get("env_kwargs")) if given["env_kwargs"] is None else None
        require_trust(path, [known.get("env_id")], kwargs, trusted)


def _open_checkpoint(
    origin: Origin, algo: str | AlgorithmSpec | None, given: Mapping[str, Any], trusted: Collection[str]
) -> SavedModel:
    path = origin.path
    _require_trust(path, origin.args, given, trusted)
    entry = EvalEntry(algo) if isinstance(algo, AlgorithmSpec) else find_entry(algo or str(origin.algo))
    if entry.algo != origin.name:
        raise UserError(f"{path} is of {origin.name}, not of {entry.algo}.")
    parts = decode(path)["parts"]
    seen = parts.get("normaliser")
    args = _arguments(entry, origin.args, given)
    try:
        statistics = None if seen is None else statistics_in(seen)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise StorageError(f"The checkpoint {path} has broken statistics of observations.") from error
    return SavedModel(str(path), entry, args, None, statistics, origin.step, parts)


def _arguments(entry: EvalEntry, known: Mapping[str, Any], given: Mapping[str, Any]) -> CommonArgs:
    fields = {field.name for field in dataclasses.fields(entry.spec.args)}
    taken = {name: value for name, value in known.items() if name in fields}
    if given["env_id"] not in (None, taken.get("env_id")):
        # The keyword arguments are those of the environment that it was trained on.
        taken.pop("env_kwargs", None)
    return entry.spec.args(**taken | {name: value for name, value in given.items() if value is not None})


def guess_algo(path: Path) -> str:
    """The one algorithm whose models have a file's parameters; UserError when there is none, or several."""
    backend = "jax" if holds_flax(path) else "torch"
    if backend == "jax":
        require_extra("jax", str(path))
    weights = find_backend(backend).read_model(path)
    found: dict[Callable[..., Policy], str] = {}
    for entry in _entries(backend):
        try:
            entry.spec.load_policy(weights, _SmallSpaces(entry), entry.spec.args())
        except Misfit as misfit:
            if not misfit.only_shapes:
                continue
        # Algorithms with the same loader differ in training only: each plays the other's models.
        found.setdefault(entry.spec.load_policy, entry.algo)
    names = list(found.values())
    if len(names) == 1:
        return names[0]
    which = f"may be of {' or '.join(names)}" if names else "has the parameters of no algorithm known here"
    raise UserError(f"{path} {which}; say which algorithm made it.")


def _entries(backend: str) -> Iterator[EvalEntry]:
    """Those of the algorithms whose networks a backend computes; what they need is there if it is."""
    for algo in shipped_algorithms():
        schema = load_schema(algo)
        if schema is not None and ("jax" in schema.requires) == (backend == "jax"):
            yield find_entry(algo)


class _SmallSpaces:
    """Spaces for a network of which only the names matter."""

    def __init__(self, entry: EvalEntry) -> None:
        self.observation_space: Any = Box(-1.0, 1.0, (1,))
        if "image" in entry.spec.observation_spaces:
            self.observation_space = Box(0, 255, (84, 84, 1), np.uint8)
        self.action_space: Any = (
            Discrete(2) if "discrete" in entry.spec.action_spaces else Box(-1.0, 1.0, (1,))
        )


def main(path: str, algo: str, env_id: str, env_kwargs: str) -> int:
    """Whether a model file fits, as one JSON line, for a process that has no torch."""
    found: dict[str, str] = {}
    try:
        model = open_model(Path(path), algo, env_id, env_kwargs)
        with model.make_envs(1) as envs:
            model.load_policy(envs)
    except MosaicError as error:
        found = {"error": str(error)}
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
