"""Trained networks as players: observations in, actions that the environments take out."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cleanrl_worker.agents.continuous import Actor, QNetwork
from cleanrl_worker.kit.policy import Floats, Policy, PolicyOutput, Spaces
from cleanrl_worker.kit.torch_backend import load_weights
from cleanrl_worker.training.box_actions import BoxActions
from cleanrl_worker.training.discrete_actions import DiscreteActions, choice_slices


class TorchPolicy(Policy):
    """A policy whose networks are torch's; those without memory need say only how they choose and judge."""

    def __init__(self) -> None:
        self._generator = torch.Generator()

    def seed(self, seed: int) -> None:
        self._generator.manual_seed(seed)

    @torch.no_grad()
    def act(self, obs: NDArray[Any], deterministic: bool = True, memory: Floats | None = None) -> list[Any]:
        return self._choose(self._prepare(obs), deterministic)

    @torch.no_grad()
    def judge(self, obs: NDArray[Any], memory: Floats | None = None) -> PolicyOutput:
        return self._judge(self._prepare(obs))

    def _prepare(self, obs: NDArray[Any]) -> Tensor:
        flat: Floats = np.asarray(obs, dtype=np.float32).reshape(len(obs), -1)
        return torch.from_numpy(self.normaliser(flat) if self.normaliser else flat)

    @abstractmethod
    def _choose(self, obs: Tensor, deterministic: bool) -> list[Any]: ...

    @abstractmethod
    def _judge(self, obs: Tensor) -> PolicyOutput: ...


class CategoricalPolicy(TorchPolicy):
    """Draws each choice from probabilities; the best is the likeliest."""

    def __init__(
        self, logits: Callable[[Tensor], Tensor], value: Callable[[Tensor], Tensor], action_space: Any
    ) -> None:
        super().__init__()
        self._logits = logits
        self._value = value
        self._actions = DiscreteActions(action_space)
        self._slices = choice_slices(self._actions.nvec)

    def _choose(self, obs: Tensor, deterministic: bool) -> list[Any]:
        logits = self._logits(obs)
        if not deterministic:
            # The greatest of logits plus Gumbel noise is a sample of their distribution.
            logits = logits - torch.empty_like(logits).exponential_(generator=self._generator).log_()
        choices = torch.stack([logits[:, part].argmax(dim=1) for part in self._slices], dim=1)
        return self._actions.for_envs(choices.numpy())

    def _judge(self, obs: Tensor) -> PolicyOutput:
        logits = self._logits(obs)
        chances = torch.cat([logits[:, part].softmax(dim=1) for part in self._slices], dim=1)
        return PolicyOutput(values=self._value(obs).numpy(), probabilities=chances.numpy())


class GreedyPolicy(TorchPolicy):
    """Takes the action of the highest value; else, in a share `epsilon` of all steps, any."""

    def __init__(self, values: Callable[[Tensor], Tensor], action_space: Any, epsilon: float) -> None:
        super().__init__()
        self._values = values
        self._actions = DiscreteActions(action_space)
        self._epsilon = epsilon

    def _choose(self, obs: Tensor, deterministic: bool) -> list[Any]:
        values = self._values(obs)
        choices = values.argmax(dim=1)
        if not deterministic:
            random = torch.randint(values.shape[1], choices.shape, generator=self._generator)
            explore = torch.rand(choices.shape, generator=self._generator) < self._epsilon
            choices = torch.where(explore, random, choices)
        return self._actions.for_envs(choices.unsqueeze(1).numpy())

    def _judge(self, obs: Tensor) -> PolicyOutput:
        values = self._values(obs)
        return PolicyOutput(values=values.amax(dim=1).numpy(), action_values=values.numpy())


class BoxPolicy(TorchPolicy):
    """Makes real numbers within bounds out of observations and noise; the best is without noise."""

    def __init__(
        self,
        draw: Callable[[Tensor, Tensor], Tensor],
        action_space: Any,
        value: Callable[[Tensor], Tensor] | None = None,
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
