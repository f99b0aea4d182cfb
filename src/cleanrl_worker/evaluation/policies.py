"""Trained networks as players: observations in, actions that the environments take out."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cleanrl_worker.agents.continuous import Actor, QNetwork
from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.box_actions import BoxActions
from cleanrl_worker.kit.discrete_actions import Choices, DiscreteActions, choice_slices
from cleanrl_worker.kit.policy import Floats, Policy, PolicyOutput, Spaces
from cleanrl_worker.kit.spec import Misfit
from cleanrl_worker.kit.torch_backend import load_weights

Network = Callable[[Tensor], Tensor]
ArgsT = TypeVar("ArgsT", bound=CommonArgs)
NetworkT = TypeVar("NetworkT", bound=nn.Module)
_IN_MODEL = ("n_atoms", "v_min", "v_max", "end_e")
"""The arguments in a model file that say how a distribution of returns is played."""


class TorchPolicy(Policy):
    """A policy whose networks are torch's; those without memory need say only how they choose and judge."""

    def __init__(self, images: bool = False) -> None:
        """`images`: let its networks have observations as they are, else as vectors of floats."""
        self._generator = torch.Generator()
        self._images = images

    def seed(self, seed: int) -> None:
        self._generator.manual_seed(seed)

    @torch.no_grad()
    def act(self, obs: NDArray[Any], deterministic: bool = True, memory: Floats | None = None) -> list[Any]:
        return self._choose(self._prepare(obs), deterministic)

    @torch.no_grad()
    def judge(self, obs: NDArray[Any], memory: Floats | None = None) -> PolicyOutput:
        return self._judge(self._prepare(obs))

    def _prepare(self, obs: NDArray[Any]) -> Tensor:
        if self._images:
            return torch.from_numpy(np.ascontiguousarray(obs))
        flat: Floats = np.asarray(obs, dtype=np.float32).reshape(len(obs), -1)
        return torch.from_numpy(self.normaliser(flat) if self.normaliser else flat)

    @abstractmethod
    def _choose(self, obs: Tensor, deterministic: bool) -> list[Any]: ...

    @abstractmethod
    def _judge(self, obs: Tensor) -> PolicyOutput: ...


class CategoricalPolicy(TorchPolicy):
    """Draws each choice from probabilities; the best is the likeliest."""

    def __init__(
        self, logits: Network, value: Network | None, action_space: Any, images: bool = False
    ) -> None:
        super().__init__(images)
        self._logits = logits
        self._value = value
        self._actions = DiscreteActions(action_space)
        self._slices = choice_slices(self._actions.nvec)

    def _choose(self, obs: Tensor, deterministic: bool) -> list[Any]:
        return self._choose_among(self._logits(obs), deterministic)

    def _choose_among(self, logits: Tensor, deterministic: bool) -> list[Any]:
        logits = self._permit(logits)
        if not deterministic:
            # The greatest of logits plus Gumbel noise is a sample of their distribution.
            logits = logits - torch.empty_like(logits).exponential_(generator=self._generator).log_()
        choices = torch.stack([logits[:, part].argmax(dim=1) for part in self._slices], dim=1)
        return self._actions.for_envs(choices.numpy())

    def _judge(self, obs: Tensor) -> PolicyOutput:
        return self._tell(self._logits(obs), None if self._value is None else self._value(obs))

    def _permit(self, logits: Tensor) -> Tensor:
        """Logits in which what is not allowed has no chance."""
        return (
            logits if self.allowed is None else logits.masked_fill(~torch.from_numpy(self.allowed), -math.inf)
        )

    def _tell(self, logits: Tensor, values: Tensor | None) -> PolicyOutput:
        logits = self._permit(logits)
        chances = torch.cat([logits[:, part].softmax(dim=1) for part in self._slices], dim=1)
        known = None if values is None else values.numpy()
        return PolicyOutput(values=known, probabilities=chances.numpy())


class RecurrentPolicy(CategoricalPolicy):
    """A policy whose probabilities depend on what it has seen in the episode."""

    def __init__(
        self,
        network: Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]],
        memory_size: int,
        action_space: Any,
        images: bool = True,
    ) -> None:
        """`network` gives logits, values and the next memory for observations and the memory before."""
        super().__init__(
            lambda obs: self._start(obs)[0], lambda obs: self._start(obs)[1], action_space, images
        )
        self._network = network
        self._memory_size = memory_size

    def initial_memory(self, rows: int) -> Floats:
        return np.zeros((rows, self._memory_size), np.float32)

    @torch.no_grad()
    def act(self, obs: NDArray[Any], deterministic: bool = True, memory: Floats | None = None) -> list[Any]:
        if memory is None:
            return super().act(obs, deterministic)
        logits, _, after = self._network(self._prepare(obs), torch.from_numpy(memory))
        memory[:] = after.numpy()
        return self._choose_among(logits, deterministic)

    @torch.no_grad()
    def judge(self, obs: NDArray[Any], memory: Floats | None = None) -> PolicyOutput:
        if memory is None:
            return super().judge(obs)
        logits, values, _ = self._network(self._prepare(obs), torch.from_numpy(memory))
        return self._tell(logits, values)

    def _start(self, obs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self._network(obs, torch.zeros(len(obs), self._memory_size))


class GreedyPolicy(TorchPolicy):
    """Takes the action of the highest value; else, in a share `epsilon` of all steps, any."""

    def __init__(self, values: Network, action_space: Any, epsilon: float, images: bool = False) -> None:
        super().__init__(images)
        self._values = values
        self._actions = DiscreteActions(action_space)
        self._epsilon = epsilon

    def _choose(self, obs: Tensor, deterministic: bool) -> list[Any]:
        epsilon = 0.0 if deterministic else self._epsilon
        return self._actions.for_envs(_explore(self._values(obs), epsilon, self._generator))

    def _judge(self, obs: Tensor) -> PolicyOutput:
        values = self._values(obs)
        return PolicyOutput(values=values.amax(dim=1).numpy(), action_values=values.numpy())


class NoisyPolicy(GreedyPolicy):
    """Takes the action of the highest value by the mean weights; else by weights with noise."""

    def __init__(
        self, values: Network, noisy_values: Callable[[Tensor, torch.Generator], Tensor], action_space: Any
    ) -> None:
        """`noisy_values` draws its noise, for each observation another, from the generator."""
        super().__init__(values, action_space, 0.0, images=True)
        self._noisy_values = noisy_values

    def _choose(self, obs: Tensor, deterministic: bool) -> list[Any]:
        if deterministic:
            return super()._choose(obs, deterministic)
        choices = self._noisy_values(obs, self._generator).argmax(dim=1)
        return self._actions.for_envs(choices.unsqueeze(1).numpy())


class RecurrentGreedyPolicy(RecurrentPolicy):
    """As `GreedyPolicy`, with values that depend on what it has seen in the episode."""

    def __init__(
        self,
        network: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
        memory_size: int,
        action_space: Any,
        epsilon: float,
    ) -> None:
        """`network` gives values of actions and the next memory for observations and the memory before."""

        def look(obs: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            # The values of the actions take the place of logits.
            values, after = network(obs, memory)
            return values, values.amax(dim=1), after

        super().__init__(look, memory_size, action_space)
        self._epsilon = epsilon

    def _choose_among(self, logits: Tensor, deterministic: bool) -> list[Any]:
        epsilon = 0.0 if deterministic else self._epsilon
        return self._actions.for_envs(_explore(logits, epsilon, self._generator))

    def _tell(self, logits: Tensor, values: Tensor | None) -> PolicyOutput:
        return PolicyOutput(values=logits.amax(dim=1).numpy(), action_values=logits.numpy())


def _explore(values: Tensor, epsilon: float, generator: torch.Generator) -> Choices:
    """The actions of the highest values, in a share `epsilon` of the rows any."""
    choices = values.argmax(dim=1)
    if epsilon > 0.0:
        random = torch.randint(values.shape[1], choices.shape, generator=generator)
        choices = torch.where(torch.rand(choices.shape, generator=generator) < epsilon, random, choices)
    chosen: Choices = choices.unsqueeze(1).numpy()
    return chosen


class BoxPolicy(TorchPolicy):
    """Makes real numbers within bounds out of observations and noise; the best is without noise."""

    def __init__(
        self, draw: Callable[[Tensor, Tensor], Tensor], action_space: Any, value: Network | None = None
    ) -> None:
        super().__init__()
        self._draw = draw
        self._space = action_space
        self._value = value

    def _choose(self, obs: Tensor, deterministic: bool) -> list[Any]:
        shape = (len(obs), math.prod(self._space.shape))
        noise = torch.zeros(shape) if deterministic else torch.randn(shape, generator=self._generator)
        actions = self._draw(obs, noise).numpy().reshape(-1, *self._space.shape)
        return list(np.clip(actions.astype(self._space.dtype), self._space.low, self._space.high))

    def _judge(self, obs: Tensor) -> PolicyOutput:
        return PolicyOutput(values=None if self._value is None else self._value(obs).numpy())


def actor_policy(
    actor_weights: Any, critic_weights: Any, spaces: Spaces, exploration_noise: float
) -> BoxPolicy:
    """A policy that gives an action as it is, or with the noise of training, and its value."""
    actions = BoxActions(spaces.action_space)
    obs_size = math.prod(spaces.observation_space.shape)
    actor = load_weights(Actor(obs_size, *actions.bounds), actor_weights)
    critic = load_weights(QNetwork(obs_size, actions.size), critic_weights)
    return BoxPolicy(
        lambda obs, noise: actor(obs) + noise * actor.action_scale * exploration_noise,
        spaces.action_space,
        lambda obs: critic(obs, actor(obs)),
    )


def open_distribution(
    content: Any, args: ArgsT, make_network: Callable[[ArgsT], NetworkT]
) -> tuple[NetworkT, ArgsT]:
    """The network in a model file with weights and arguments, of which some say over which returns its
    distributions spread, and `args` with those; Misfit when the file is of something else."""
    if not isinstance(content, dict) or content.keys() != {"model_weights", "args"}:
        raise Misfit("it has no model_weights and args")
    if not all(isinstance(part, dict) for part in content.values()):
        raise Misfit("its model_weights and args are not tables by name")
    told = {name: content["args"][name] for name in _IN_MODEL if name in content["args"]}
    known: Any = dataclasses.replace(args, **{name: told[name] for name in told if hasattr(args, name)})
    try:
        network = make_network(known)
        float(told.get("end_e", 0.0))
    except (TypeError, ValueError, RuntimeError) as error:
        raise Misfit(f"its args say {told}, which does not describe a distribution of returns") from error
    # Not every script stores the atoms, which follow from the arguments.
    atoms = dict(network.named_buffers())
    return load_weights(network, {**atoms, **content["model_weights"]}), known
