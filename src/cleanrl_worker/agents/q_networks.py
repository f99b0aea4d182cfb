"""Networks that give the value of each action."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cleanrl_worker.agents.mlp import init_layer
from cleanrl_worker.agents.nature import FEATURES, NatureCNN

HIDDEN = (120, 84)


class QNetwork(nn.Module):
    """Two hidden relu layers, and a value for each action."""

    def __init__(self, obs_size: int, num_actions: int) -> None:
        super().__init__()
        self.network = relu_layers(obs_size, num_actions)

    def forward(self, obs: Tensor) -> Tensor:
        """Values of the actions, a row for each observation."""
        values: Tensor = self.network(obs)
        return values


class NatureQNetwork(nn.Module):
    """A value for each action on the `NatureCNN` of pictures."""

    def __init__(self, shape: Sequence[int], num_actions: int) -> None:
        super().__init__()
        self.network = NatureCNN(shape, orthogonal=False)
        self.network.append(nn.Linear(FEATURES, num_actions))

    def forward(self, obs: Tensor) -> Tensor:
        """Values of the actions, a row for each observation."""
        values: Tensor = self.network(obs)
        return values


class NormedQNetwork(nn.Module):
    """As `QNetwork` with normalised hidden layers, which keep values in bounds without a target network."""

    def __init__(self, obs_size: int, num_actions: int) -> None:
        super().__init__()
        first, second = HIDDEN
        self.network = nn.Sequential(
            init_layer(nn.Linear(obs_size, first)),
            nn.LayerNorm(first),
            nn.ReLU(),
            init_layer(nn.Linear(first, second)),
            nn.LayerNorm(second),
            nn.ReLU(),
            init_layer(nn.Linear(second, num_actions)),
        )

    def forward(self, obs: Tensor) -> Tensor:
        """Values of the actions, a row for each observation."""
        values: Tensor = self.network(obs)
        return values


class DistributionalQNetwork(nn.Module):
    """Two hidden relu layers, and for each action a distribution of the return over fixed `atoms`."""

    atoms: Tensor

    def __init__(self, obs_size: int, num_actions: int, num_atoms: int, v_min: float, v_max: float) -> None:
        super().__init__()
        self.num_actions = num_actions
        self.register_buffer("atoms", torch.linspace(v_min, v_max, num_atoms))
        self.network = relu_layers(obs_size, num_actions * num_atoms)

    def logits(self, obs: Tensor) -> Tensor:
        """Unnormalised log probabilities of shape (observation, action, atom)."""
        logits: Tensor = self.network(obs)
        return logits.view(len(obs), self.num_actions, -1)

    def forward(self, obs: Tensor) -> Tensor:
        """Values of the actions, a row for each observation: the means of their distributions."""
        return self.logits(obs).softmax(dim=2) @ self.atoms


def relu_layers(obs_size: int, outputs: int) -> nn.Sequential:
    """Two hidden relu layers and a linear one."""
    first, second = HIDDEN
    return nn.Sequential(
        nn.Linear(obs_size, first), nn.ReLU(), nn.Linear(first, second), nn.ReLU(), nn.Linear(second, outputs)
    )
