"""A small network for continuous actions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from cleanrl_worker.agents.mlp import hidden_layers, init_layer


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
