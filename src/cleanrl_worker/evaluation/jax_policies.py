"""Networks of JAX as players: observations in, actions that the environments take out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.kit.discrete_actions import DiscreteActions, choice_slices
from cleanrl_worker.kit.policy import Floats, Policy, PolicyOutput
from cleanrl_worker.kit.spec import ARGS, Misfit, split_model, told_args

ArgsT = TypeVar("ArgsT")

Network = Callable[[Any], Any]
"""What is computed for observations, a row for each of them; it may be compiled."""
DISTRIBUTION = {"model_weights": "network", "args": ARGS}
"""The form of a model file of distributions of returns."""
MIN_ATOMS = 2


class JaxPolicy(Policy):
    """A policy whose networks are JAX's."""

    def __init__(self, images: bool = False) -> None:
        """`images`: let its networks have observations as they are, else as vectors of floats."""
        self._images = images
        self._random = np.random.default_rng()
        self._rows = 0

    def seed(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def _compute(self, network: Network, obs: NDArray[Any]) -> list[Floats]:
        """What a network gives for observations, each array of it. Each number of rows would be compiled
        anew, so fewer than before are filled up with zeros."""
        rows, seen = len(obs), np.asarray(obs)
        if not self._images:
            seen = seen.astype(np.float32).reshape(rows, -1)
            seen = self.normaliser(seen) if self.normaliser else seen
        self._rows = max(self._rows, rows)
        if rows < self._rows:
            seen = np.concatenate([seen, np.zeros((self._rows - rows, *seen.shape[1:]), seen.dtype)])
        found = network(seen)
        return [np.asarray(one)[:rows] for one in (found if isinstance(found, tuple) else (found,))]


class GreedyPolicy(JaxPolicy):
    """Takes the action of the highest value; else, in a share `epsilon` of all steps, any."""

    def __init__(self, values: Network, action_space: Any, epsilon: float, images: bool = False) -> None:
        """`values` gives the value of each action."""
        super().__init__(images)
        self._values = values
        self._actions = DiscreteActions(action_space)
        self._epsilon = epsilon

    def act(self, obs: NDArray[Any], deterministic: bool = True, memory: Floats | None = None) -> list[Any]:
        (values,) = self._compute(self._values, obs)
        choices = values.argmax(axis=1)
        if not deterministic:
            random = self._random.integers(0, values.shape[1], len(values))
            choices = np.where(self._random.random(len(values)) < self._epsilon, random, choices)
        return self._actions.for_envs(choices[:, None])

    def judge(self, obs: NDArray[Any], memory: Floats | None = None) -> PolicyOutput:
        (values,) = self._compute(self._values, obs)
        return PolicyOutput(values=values.max(axis=1), action_values=values)


class CategoricalPolicy(JaxPolicy):
    """Draws each choice from probabilities; the best is the likeliest."""

    def __init__(self, agent: Network, action_space: Any, images: bool = False) -> None:
        """`agent` gives logits and values."""
        super().__init__(images)
        self._agent = agent
        self._actions = DiscreteActions(action_space)
        self._slices = choice_slices(self._actions.nvec)

    def act(self, obs: NDArray[Any], deterministic: bool = True, memory: Floats | None = None) -> list[Any]:
        logits, _ = self._compute(self._agent, obs)
        if not deterministic:
            # The greatest of logits plus Gumbel noise is a sample of their distribution.
            logits = logits + self._random.gumbel(size=logits.shape).astype(np.float32)
        return self._actions.for_envs(self._actions.best(logits))

    def judge(self, obs: NDArray[Any], memory: Floats | None = None) -> PolicyOutput:
        logits, values = self._compute(self._agent, obs)
        chances = [_softmax(logits[:, part]) for part in self._slices]
        return PolicyOutput(values=values, probabilities=np.concatenate(chances, axis=1))


class ActorPolicy(JaxPolicy):
    """Gives the action of a deterministic policy, or that with the noise of training."""

    def __init__(self, actor_critic: Network, action_space: Any, noise: float) -> None:
        """`actor_critic` gives actions and their values; `noise` is a share of half an action's range."""
        super().__init__()
        self._actor_critic = actor_critic
        self._space = action_space
        self._deviation = noise * (action_space.high - action_space.low) / 2.0

    def act(self, obs: NDArray[Any], deterministic: bool = True, memory: Floats | None = None) -> list[Any]:
        actions = self._compute(self._actor_critic, obs)[0].reshape(-1, *self._space.shape)
        if not deterministic:
            actions = actions + self._random.standard_normal(actions.shape) * self._deviation
        return list(np.clip(actions, self._space.low, self._space.high).astype(self._space.dtype))

    def judge(self, obs: NDArray[Any], memory: Floats | None = None) -> PolicyOutput:
        return PolicyOutput(values=self._compute(self._actor_critic, obs)[1])


def open_distribution(content: Any, args: ArgsT) -> tuple[Any, ArgsT]:
    """The weights in a model file of distributions, and the arguments that say over which returns they
    spread: those in the file, where it has them."""
    split_model(DISTRIBUTION, content)
    known: Any = told_args(content["args"], args, ("n_atoms", "v_min", "v_max", "end_e"))
    if known.n_atoms < MIN_ATOMS or known.v_min >= known.v_max:
        raise Misfit("its args do not describe a distribution of returns")
    return content["model_weights"], known


def _softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances: Floats = powers / powers.sum(axis=1, keepdims=True)
    return chances
