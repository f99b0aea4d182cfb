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
        self.network = nature_layers(shape, num_actions)

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
    """For each action a distribution of the return over fixed `atoms`, on two hidden relu layers or on the
    `NatureCNN` of pictures."""

    atoms: Tensor

    def __init__(
        self, obs: int | Sequence[int], num_actions: int, num_atoms: int, v_min: float, v_max: float
    ) -> None:
        """`obs`: the size of the vectors that it reads, or the shape of the pictures."""
        super().__init__()
        self.num_actions = num_actions
        self.register_buffer("atoms", torch.linspace(v_min, v_max, num_atoms))
        outputs = num_actions * num_atoms
        self.network = relu_layers(obs, outputs) if isinstance(obs, int) else nature_layers(obs, outputs)

    def logits(self, obs: Tensor) -> Tensor:
        """Unnormalised log probabilities of shape (observation, action, atom)."""
        logits: Tensor = self.network(obs)
        return logits.view(len(obs), self.num_actions, -1)

    def forward(self, obs: Tensor) -> Tensor:
        """Values of the actions, a row for each observation: the means of their distributions."""
        return self.logits(obs).softmax(dim=2) @ self.atoms


class QuantileNetwork(nn.Module):
    """Two hidden relu layers, and for each action the quantiles of the return at fixed `fractions`."""

    fractions: Tensor

    def __init__(self, obs_size: int, num_actions: int, num_quantiles: int) -> None:
        super().__init__()
        self.num_actions = num_actions
        # The middles of as many equal parts of the distribution.
        self.register_buffer("fractions", (torch.arange(num_quantiles) + 0.5) / num_quantiles)
        self.network = relu_layers(obs_size, num_actions * num_quantiles)

    def quantiles(self, obs: Tensor) -> Tensor:
        """Returns of shape (observation, action, quantile)."""
        quantiles: Tensor = self.network(obs)
        return quantiles.view(len(obs), self.num_actions, -1)

    def forward(self, obs: Tensor) -> Tensor:
        """Values of the actions, a row for each observation: the means of their quantiles."""
        return self.quantiles(obs).mean(dim=2)


def relu_layers(obs_size: int, outputs: int) -> nn.Sequential:
    """Two hidden relu layers and a linear one."""
    first, second = HIDDEN
    return nn.Sequential(
        nn.Linear(obs_size, first), nn.ReLU(), nn.Linear(first, second), nn.ReLU(), nn.Linear(second, outputs)
    )


def nature_layers(shape: Sequence[int], outputs: int) -> NatureCNN:
    """The layers for pictures, and a linear one."""
    network = NatureCNN(shape, orthogonal=False)
    network.append(nn.Linear(FEATURES, outputs))
    return network
