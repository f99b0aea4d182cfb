"""How the models of each algorithm are played, those of other people's scripts too.

An algorithm's `SPEC` says it itself, by `load_policy(weights, spaces, args)`; this registry finds it there.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from cleanrl_worker.config.checkpoint_files import (
    CHECKPOINT_SUFFIX,
    holds_flax,
    read_origin,
)
from cleanrl_worker.config.registry import DEFAULT_ALGO_REGISTRY, find_algorithm_file
from cleanrl_worker.config.resuming import as_object, require_trust, require_trusted_algorithm, unplayable
from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.backend import find_backend
from cleanrl_worker.kit.envs import EpisodeEnvs
from cleanrl_worker.kit.loading import load_spec, told_as_json
from cleanrl_worker.kit.normalise import FrozenNormaliser, statistics_in
from cleanrl_worker.kit.open_envs import open_episodes
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.spec import AlgorithmSpec, Misfit, fill_model
from cleanrl_worker.kit.state import State, decode
from cleanrl_worker.schemas.model import load_schema, shipped_algorithms
from mosaic.contract.errors import NotFoundError, StorageError, UserError
from mosaic.contract.extras import require_extra

NO_STATISTICS = (
    "The observation statistics of this policy are missing; it sees observations unnormalised, so its "
    "returns will be lower."
)


def find_spec(algo: str) -> AlgorithmSpec:
    """What plays the models of an algorithm; UserError when there is none of that name."""
    file = find_algorithm_file(algo)
    if algo not in DEFAULT_ALGO_REGISTRY and file is None:
        raise unplayable(algo)
    schema = load_schema(algo)
    for name in schema.requires if schema is not None else ():
        require_extra(name, algo)
    return load_spec(file or algo)


@dataclass(frozen=True)
class SavedModel:
    """The weights of a policy, and all that is known of how they came about."""

    name: str
    spec: AlgorithmSpec
    """The algorithm that it is of."""
    args: CommonArgs
    weights: Any
    statistics: dict[str, Any] | None = None
    """Those of the observations it was trained on, if it was so."""
    step: int | None = None
    parts: State | None = None
    """Those of a full checkpoint, which are in place of the weights."""

    def make_envs(self, num_envs: int) -> EpisodeEnvs:
        """Environments as the policy was trained on, those of Python where it has them."""
        return open_episodes(self.spec, self.args, num_envs)

    def load_policy(self, spaces: Spaces) -> Policy:
        """The policy, for environments of these spaces; UserError says what does not fit."""
        try:
            weights = self.weights
            if self.parts is not None:
                weights = self._weights_in(self.parts)
            with find_backend(self.spec.backend).unfilled():
                policy: Policy = self.spec.load_policy(weights, spaces, self.args)
        except Misfit as misfit:
            raise UserError(
                f"{self.name} is not a model of {self.spec.name} for {self.args.env_id}: {misfit}."
            ) from misfit
        if self.statistics is not None:
            try:
                policy.normaliser = FrozenNormaliser(self.statistics)
            except (KeyError, TypeError, ValueError) as error:
                raise UserError(f"The card beside {self.name} has invalid observation statistics.") from error
            if policy.normaliser.size != math.prod(spaces.observation_space.shape):
                raise UserError(f"The card beside {self.name} has statistics of different observations.")
        elif self.spec.normalises:
            policy.notes = (NO_STATISTICS,)
        return policy

    def _weights_in(self, parts: State) -> Any:
        """The weights among the parts of a full checkpoint, in the form of a model file."""
        try:
            content = fill_model(self.spec.model, parts.__getitem__, vars(self.args))
            return find_backend(self.spec.backend).decode_weights(content)
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
    # A run that wrote a model without a card knows what it trained, not what the model is.
    believed = origin.told or origin.pulled
    known = origin.args if believed else {}
    if algo is None:
        require_trusted_algorithm(origin, trusted)
    if env_id is None:
        # Who names the environment has a say in what is imported; else only the file has.
        kwargs = as_object(known.get("env_kwargs")) if env_kwargs is None else None
        require_trust(path, [known.get("env_id")], kwargs, trusted)
    if algo is None:
        algo = str(origin.algo) if believed and origin.algo else guess_algo(path)
    spec = algo if isinstance(algo, AlgorithmSpec) else find_spec(algo)
    if is_model:
        weights = find_backend(spec.backend).read_model(path)
        args = _arguments(spec, known, env_id, env_kwargs)
        return SavedModel(str(path), spec, args, weights, origin.normaliser, origin.trained)
    if spec.name != origin.name:
        raise UserError(f"{path} is of {origin.name}, not of {spec.name}.")
    parts = decode(path)["parts"]
    seen = parts.get("normaliser")
    args = _arguments(spec, known, env_id, env_kwargs)
    try:
        statistics = None if seen is None else statistics_in(seen)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise StorageError(f"The checkpoint {path} has invalid observation statistics.") from error
    return SavedModel(str(path), spec, args, None, statistics, origin.step, parts)


def _arguments(
    spec: AlgorithmSpec, known: Mapping[str, Any], env_id: str | None, env_kwargs: str | None
) -> CommonArgs:
    given = {"env_id": env_id, "env_kwargs": env_kwargs}
    fields = {field.name for field in dataclasses.fields(spec.args)}
    taken = {name: value for name, value in known.items() if name in fields}
    if env_id not in (None, taken.get("env_id")):
        # The keyword arguments are those of the environment that it was trained on.
        taken.pop("env_kwargs", None)
    return spec.args(**taken | {name: value for name, value in given.items() if value is not None})


def guess_algo(path: Path) -> str:
    """The one algorithm whose models have a file's parameters; UserError when there is none, or several."""
    backend = "jax" if holds_flax(path) else "torch"
    if backend == "jax":
        require_extra("jax", str(path))
    weights = find_backend(backend).read_model(path)
    found: dict[Callable[..., Policy], str] = {}
    for algo in shipped_algorithms():
        schema = load_schema(algo)
        # What the algorithms of a backend need is there if it is.
        if schema is None or ("jax" in schema.requires) != (backend == "jax"):
            continue
        spec = find_spec(algo)
        try:
            with find_backend(backend).unfilled():
                spec.load_policy(weights, _SmallSpaces(spec), spec.args())
        except Misfit as misfit:
            if not misfit.only_shapes:
                continue
        # Algorithms with the same loader differ in training only: each plays the other's models.
        found.setdefault(spec.load_policy, spec.name)
    names = list(found.values())
    if len(names) == 1:
        return names[0]
    which = f"may be of {' or '.join(names)}" if names else "matches no known algorithm"
    raise UserError(f"{path} {which}; name its algorithm.")


class _SmallSpaces:
    """Spaces for a network of which only the names matter."""

    def __init__(self, spec: AlgorithmSpec) -> None:
        image, discrete = "image" in spec.observation_spaces, "discrete" in spec.action_spaces
        self.observation_space: Any = Box(0, 255, (84, 84, 1), np.uint8) if image else Box(-1.0, 1.0, (1,))
        self.action_space: Any = Discrete(2) if discrete else Box(-1.0, 1.0, (1,))


def main(path: str, algo: str, env_id: str, env_kwargs: str) -> int:
    """Whether a model file fits, as one JSON line, for a process that has no torch."""
    with told_as_json():
        model = open_model(Path(path), algo, env_id, env_kwargs)
        with model.make_envs(1) as envs:
            model.load_policy(envs)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
