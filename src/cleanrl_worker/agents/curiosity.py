"""Networks of random network distillation: an agent with two values, and a network that guesses another."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cleanrl_worker.agents.mlp import init_layer
from cleanrl_worker.agents.nature import NatureCNN

_HIDDEN = (256, 448)
_GUESSED = 512


class CuriousAgent(nn.Module):
    """A policy over discrete actions, the value of the game's rewards and that of what is new."""

    def __init__(self, shape: Sequence[int], num_actions: int | Sequence[int]) -> None:
        super().__init__()
        self.nvec = (num_actions,) if isinstance(num_actions, int) else tuple(num_actions)
        size = _HIDDEN[-1]
        self.network = NatureCNN(shape, hidden=_HIDDEN)
        self.extra_layer = nn.Sequential(init_layer(nn.Linear(size, size), gain=0.1), nn.ReLU())
        self.actor = nn.Sequential(
            init_layer(nn.Linear(size, size), gain=0.01),
            nn.ReLU(),
            init_layer(nn.Linear(size, sum(self.nvec)), gain=0.01),
        )
        self.critic_ext = init_layer(nn.Linear(size, 1), gain=0.01)
        self.critic_int = init_layer(nn.Linear(size, 1), gain=0.01)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits and both values."""
        hidden = self.network(obs)
        seen = self.extra_layer(hidden) + hidden
        ext, new = self.critic_ext(seen), self.critic_int(seen)
        return self.actor(hidden), torch.squeeze(ext, -1), torch.squeeze(new, -1)

    def logits(self, obs: Tensor) -> Tensor:
        """Unnormalised log probabilities of the actions."""
        return self(obs)[0]  # type: ignore[no-any-return]

    def value(self, obs: Tensor) -> Tensor:
        """The expected discounted return of the game."""
        return self(obs)[1]  # type: ignore[no-any-return]


class RandomDistillation(nn.Module):
    """How badly a network guesses the features that another one, drawn at random, has of a picture."""

    def __init__(self, shape: Sequence[int]) -> None:
        """`shape` is the height and width of the pictures, which are normalised and have one channel."""
        super().__init__()
        self.predictor = _layers(shape, extra=2)
        self.target = _layers(shape, extra=0).requires_grad_(False)

    def forward(self, pictures: Tensor) -> Tensor:
        """The mean squared error of the guess, for each of (row, height, width)."""
        seen = pictures[:, None]
        guessed, given = self.predictor(seen), self.target(seen)
        return torch.square(guessed - given).mean(dim=1)


def _layers(shape: Sequence[int], extra: int) -> nn.Sequential:
    height, width = shape
    layers: list[nn.Module] = []
    channels = 1
    for filters, kernel, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
        height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
        convolution = nn.Conv2d(channels, filters, kernel, stride=stride)
        layers += [init_layer(convolution), nn.LeakyReLU(inplace=True)]
        convolution.weight.data = convolution.weight.data.contiguous(memory_format=torch.channels_last)
        channels = filters
    layers += [nn.Flatten(), init_layer(nn.Linear(channels * height * width, _GUESSED))]
    for _ in range(extra):
        layers += [nn.ReLU(inplace=True), init_layer(nn.Linear(_GUESSED, _GUESSED))]
    return nn.Sequential(*layers)
