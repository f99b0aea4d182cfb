"""Layers whose weights have learned noise, and the network of Rainbow on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor, nn

from cleanrl_worker.agents.nature import FEATURES, NatureCNN

SPREAD = 0.5
"""How much noise there is to begin with."""

Noise = tuple[Tensor, Tensor]
"""Of a layer's inputs and of its outputs, a row for each observation or one for all."""


class NoisyLinear(nn.Module):
    """A linear layer whose weights are means with as much factorised Gaussian noise as it learns to want.

    The noise of a weight is the product of that of its input and that of its output. So it need not be
    formed: inputs and outputs are multiplied by theirs.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.sizes = [inputs, outputs]
        bound = 1.0 / math.sqrt(inputs)
        self.weight_mu = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((outputs, inputs), SPREAD * bound))
        self.bias_mu = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.bias_sigma = nn.Parameter(torch.full((outputs,), SPREAD / math.sqrt(outputs)))

    def draw(self, rows: int, generator: torch.Generator | None = None) -> Noise:
        """Noise for as many observations, each with its own."""
        drawn = torch.randn(rows, sum(self.sizes), generator=generator, device=self.weight_mu.device)
        inputs, outputs = torch.split(drawn.sign() * drawn.abs().sqrt(), self.sizes, dim=1)
        return inputs, outputs

    def forward(self, seen: Tensor, noise: Noise | None = None) -> Tensor:
        """The outputs; without noise those of the mean weights."""
        means = nn.functional.linear(seen, self.weight_mu, self.bias_mu)
        if noise is None:
            return means
        inputs, outputs = noise
        return means + outputs * nn.functional.linear(seen * inputs, self.weight_sigma, self.bias_sigma)


class RainbowNetwork(nn.Module):
    """For each action a distribution of the return over fixed atoms, the `support`, of pictures.

    It is the sum of one part for all actions and of one for each, which have noisy layers.
    """

    support: Tensor

    def __init__(
        self, shape: Sequence[int], num_actions: int, num_atoms: int, v_min: float, v_max: float
    ) -> None:
        super().__init__()
        self.register_buffer("support", torch.linspace(v_min, v_max, num_atoms))
        self.network = NatureCNN(shape, orthogonal=False)
        layer = self.network[-2]
        assert isinstance(layer, nn.Linear)
        del self.network[-2:]
        self.value_head, self.advantage_head = (
            nn.Sequential(
                NoisyLinear(layer.in_features, FEATURES),
                nn.ReLU(inplace=True),
                NoisyLinear(FEATURES, outputs),
            )
            for outputs in (num_atoms, num_actions * num_atoms)
        )

    def draw_noise(self, rows: int = 1, generator: torch.Generator | None = None) -> list[Noise]:
        """Noise for every noisy layer: a row for each observation, or one for all of a minibatch."""
        layers = chain(self.value_head, self.advantage_head)
        return [layer.draw(rows, generator) for layer in layers if isinstance(layer, NoisyLinear)]

    def logits(self, obs: Tensor, noise: Sequence[Noise | None] = (None,) * 4) -> Tensor:
        """Unnormalised log probabilities of shape (observation, action, atom)."""
        features, atoms = self.network(obs), len(self.support)
        value = _through(self.value_head, features, noise[:2]).view(len(obs), 1, atoms)
        advantage = _through(self.advantage_head, features, noise[2:]).view(len(obs), -1, atoms)
        return value + advantage - advantage.mean(dim=1, keepdim=True)

    def forward(self, obs: Tensor, noise: Sequence[Noise | None] = (None,) * 4) -> Tensor:
        """Values of the actions, a row for each observation: the means of their distributions."""
        return self.logits(obs, noise).softmax(dim=2) @ self.support


def _through(head: nn.Sequential, seen: Tensor, noise: Sequence[Noise | None]) -> Tensor:
    first, relu, second = head
    out: Tensor = second(relu(first(seen, noise[0])), noise[1])
    return out
