"""A small network for observations that are vectors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn


def init_layer(layer: nn.Linear | nn.Conv2d, gain: float = math.sqrt(2)) -> nn.Module:
    """The layer with orthogonal weights and no bias to begin with."""
    nn.init.orthogonal_(layer.weight, gain)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer


class ActorCritic(nn.Module, ABC):
    """A policy over discrete actions and a value, both of the same features of an observation.

    Several choices made at once have their logits one after the other; `nvec` says between how many values
    each of them is.
    """

    actor: nn.Module
    critic: nn.Module

    def __init__(self, num_actions: int | Sequence[int]) -> None:
        super().__init__()
        self.nvec = (num_actions,) if isinstance(num_actions, int) else tuple(num_actions)

    @abstractmethod
    def features(self, obs: Tensor) -> Tensor:
        """What policy and value read."""

    def logits(self, obs: Tensor) -> Tensor:
        """Unnormalised log probabilities of the actions."""
        logits: Tensor = self.actor(self.features(obs))
        return logits

    def value(self, obs: Tensor) -> Tensor:
        """The expected discounted return."""
        value: Tensor = self.critic(self.features(obs)).squeeze(-1)
        return value

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and value, with the features computed once."""
        features = self.features(obs)
        return self.actor(features), torch.squeeze(self.critic(features), -1)


class MLPAgent(ActorCritic):
    """Two hidden tanh layers of 64 for a policy over discrete actions and for a value.

    Each has layers of its own, or both read one `trunk` when `shared_trunk` is set.
    """

    actor: nn.Sequential
    critic: nn.Sequential

    def __init__(
        self, obs_size: int, num_actions: int | Sequence[int], shared_trunk: bool = False, hidden: int = 64
    ) -> None:
        super().__init__(num_actions)
        critic_layers: list[nn.Module] = [init_layer(nn.Linear(hidden, 1), gain=1.0)]
        actor_layers: list[nn.Module] = [init_layer(nn.Linear(hidden, sum(self.nvec)), gain=0.01)]
        self.trunk = nn.Sequential()
        if shared_trunk:
            self.trunk.extend(hidden_layers(obs_size, hidden))
        else:
            critic_layers = [*hidden_layers(obs_size, hidden), *critic_layers]
            actor_layers = [*hidden_layers(obs_size, hidden), *actor_layers]
        self.critic = nn.Sequential(*critic_layers)
        self.actor = nn.Sequential(*actor_layers)

    def features(self, obs: Tensor) -> Tensor:
        features: Tensor = self.trunk(obs)
        return features


def hidden_layers(obs_size: int, hidden: int) -> list[nn.Module]:
    """Two tanh layers."""
    return [
        init_layer(nn.Linear(obs_size, hidden)),
        nn.Tanh(),
        init_layer(nn.Linear(hidden, hidden)),
        nn.Tanh(),
    ]
