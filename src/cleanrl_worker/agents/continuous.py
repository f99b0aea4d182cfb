"""Networks for continuous actions: policies that give an action, and values of pairs of both."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from cleanrl_worker.agents.mlp import hidden_layers, init_layer

HIDDEN = 256
LOG_STD_MIN = -5.0
LOG_STD_MAX = 2.0


class _BoundedActor(nn.Module):
    """Two hidden layers for a policy whose actions lie between bounds of their own in each dimension."""

    action_scale: Tensor
    action_bias: Tensor

    def __init__(self, obs_size: int, low: Tensor, high: Tensor) -> None:
        super().__init__()
        self.fc1 = nn.Linear(obs_size, HIDDEN)
        self.fc2 = nn.Linear(HIDDEN, HIDDEN)
        self.register_buffer("action_scale", (high - low) / 2.0)
        self.register_buffer("action_bias", (high + low) / 2.0)

    def features(self, obs: Tensor) -> Tensor:
        return torch.relu(self.fc2(torch.relu(self.fc1(obs))))


class Actor(_BoundedActor):
    """A deterministic policy."""

    def __init__(self, obs_size: int, low: Tensor, high: Tensor) -> None:
        super().__init__(obs_size, low, high)
        self.fc_mu = nn.Linear(HIDDEN, low.numel())

    def forward(self, obs: Tensor) -> Tensor:
        return torch.tanh(self.fc_mu(self.features(obs))) * self.action_scale + self.action_bias


class GaussianActor(_BoundedActor):
    """A policy that draws from a normal distribution and squashes the draw into the bounds."""

    def __init__(self, obs_size: int, low: Tensor, high: Tensor) -> None:
        super().__init__(obs_size, low, high)
        self.fc_mean = nn.Linear(HIDDEN, low.numel())
        self.fc_logstd = nn.Linear(HIDDEN, low.numel())

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log standard deviation before squashing."""
        features = self.features(obs)
        position = (torch.tanh(self.fc_logstd(features)) + 1.0) / 2.0
        return self.fc_mean(features), LOG_STD_MIN + (LOG_STD_MAX - LOG_STD_MIN) * position

    def draw(self, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions made from standard normal noise, and the logarithm of their density."""
        mean, log_std = self(obs)
        drawn = mean + log_std.exp() * noise
        log_normal = -0.5 * noise.square() - log_std - 0.5 * math.log(2.0 * math.pi)
        # The slope of tanh in a form that stays exact near the bounds, where 1 - tanh^2 is all rounding.
        log_slope = 2.0 * (math.log(2.0) - drawn - nn.functional.softplus(-2.0 * drawn))
        log_probs = (log_normal - log_slope - self.action_scale.log()).sum(1)
        return torch.tanh(drawn) * self.action_scale + self.action_bias, log_probs

    def act(self, obs: Tensor, noise: Tensor) -> Tensor:
        """Actions made from standard normal noise."""
        return self.draw(obs, noise)[0]


class QNetwork(nn.Module):
    """The expected discounted return after an action."""

    def __init__(self, obs_size: int, action_size: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(obs_size + action_size, HIDDEN)
        self.fc2 = nn.Linear(HIDDEN, HIDDEN)
        self.fc3 = nn.Linear(HIDDEN, 1)

    def forward(self, obs: Tensor, actions: Tensor) -> Tensor:
        hidden = torch.relu(self.fc1(torch.cat([obs, actions], dim=1)))
        values: Tensor = self.fc3(torch.relu(self.fc2(hidden))).squeeze(1)
        return values


class GaussianAgent(nn.Module):
    """Two hidden tanh layers of 64 each for the actions' means and for a value; the spread is a parameter."""

    def __init__(self, obs_size: int, action_size: int, hidden: int = 64) -> None:
        super().__init__()
        self.critic = nn.Sequential(
            *hidden_layers(obs_size, hidden), init_layer(nn.Linear(hidden, 1), gain=1.0)
        )
        self.actor_mean = nn.Sequential(
            *hidden_layers(obs_size, hidden), init_layer(nn.Linear(hidden, action_size), gain=0.01)
        )
        self.actor_logstd = nn.Parameter(torch.zeros(1, action_size))

    def means(self, obs: Tensor) -> Tensor:
        means: Tensor = self.actor_mean(obs)
        return means

    def value(self, obs: Tensor) -> Tensor:
        value: Tensor = self.critic(obs).squeeze(-1)
        return value
