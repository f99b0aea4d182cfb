"""A transformer that remembers: Transformer-XL for pictures and vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cleanrl_worker.agents.mlp import init_layer
from cleanrl_worker.agents.nature import FEATURES, NatureCNN

_NEVER = -1e9


class TransformerLayer(nn.Module):
    """Attention of the newest step to itself and to what is remembered, then a hidden layer."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_query = nn.LayerNorm(dim)
        self.norm_keys = nn.LayerNorm(dim)
        self.queries = nn.Linear(dim, dim, bias=False)
        self.keys = nn.Linear(dim, dim, bias=False)
        self.values = nn.Linear(dim, dim, bias=False)
        self.outputs = nn.Linear(dim, dim)
        self.norm_hidden = nn.LayerNorm(dim)
        self.hidden = nn.Linear(dim, dim)

    def forward(self, newest: Tensor, seen: Tensor, ages: Tensor, barred: Tensor) -> Tensor:
        """`newest` (row, dim), `seen` (row, step, dim) with itself as the last, `ages` (step, dim) tell how
        long ago each was, `barred` (row, step) is true where there is nothing to remember yet."""
        rows, steps, dim = seen.shape
        known = self.norm_keys(seen + ages)
        split = (rows, steps, self.heads, dim // self.heads)
        query = self.queries(self.norm_query(newest)).view(rows, self.heads, -1)
        scores = torch.einsum("rhd,rshd->rhs", query, self.keys(known).view(split)) / math.sqrt(split[-1])
        weights = scores.masked_fill(barred[:, None], _NEVER).softmax(dim=2)
        found = torch.einsum("rhs,rshd->rhd", weights, self.values(known).view(split)).reshape(rows, dim)
        newest = newest + self.outputs(found)
        added: Tensor = newest + torch.relu(self.hidden(self.norm_hidden(newest)))
        return added


class TransformerAgent(nn.Module):
    """A policy over discrete actions and a value, on layers of attention to the newest steps of the episode.

    Each layer remembers its own inputs. The memory of an environment is one row: those of the newest `length`
    steps, the oldest first, then how many of them there are. No gradient runs into it.
    """

    ages: Tensor

    def __init__(
        self,
        shape: Sequence[int],
        num_actions: int | Sequence[int],
        layers: int = 3,
        heads: int = 4,
        dim: int = 384,
        length: int = 119,
    ) -> None:
        super().__init__()
        self.nvec = (num_actions,) if isinstance(num_actions, int) else tuple(num_actions)
        self.length = length
        self.item = (layers, dim)
        """The shape of what is remembered of a step."""
        self.memory_size = length * layers * dim + 1
        if len(shape) == 3:
            self.encoder = nn.Sequential(NatureCNN(shape), init_layer(nn.Linear(FEATURES, dim)), nn.ReLU())
        else:
            self.encoder = nn.Sequential(init_layer(nn.Linear(math.prod(shape), dim)), nn.ReLU())
        self.layers = nn.ModuleList([TransformerLayer(dim, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(dim)
        self.actor = init_layer(nn.Linear(dim, sum(self.nvec)), gain=0.01)
        self.critic = init_layer(nn.Linear(dim, 1), gain=1.0)
        self.register_buffer("ages", _waves(length + 1, dim).flip(0), persistent=False)

    def forward(self, obs: Tensor, window: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, values and what is to be remembered (row, layer, dim) of observations.

        `window` (row, step, layer, dim) is what is remembered, of which the newest `counts` steps are there.
        """
        newest = self.encoder(obs)
        places = torch.arange(self.length + 1, device=obs.device)
        barred = places < self.length - counts[:, None]
        items = []
        for number, layer in enumerate(self.layers):
            items.append(newest.detach())
            seen = torch.cat((window[:, :, number], newest[:, None]), dim=1)
            newest = layer(newest, seen, self.ages, barred)
        features = self.norm(newest)
        return self.actor(features), torch.squeeze(self.critic(features), -1), torch.stack(items, dim=1)

    def step(self, obs: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, values and the next memory for one observation of each environment."""
        window = memory[:, :-1].view(len(obs), self.length, *self.item)
        logits, values, items = self(obs, window, memory[:, -1])
        newer = torch.cat((window, items[:, None]), dim=1)[:, 1:].flatten(1)
        counts = (memory[:, -1:] + 1.0).clamp(max=self.length)
        return logits, values, torch.cat((newer, counts), dim=1)


def _waves(steps: int, dim: int) -> Tensor:
    """Sines and cosines of each number of steps, of wavelengths from 2π to 10,000 times that."""
    rates = torch.exp(torch.arange(0, dim, 2) * (-math.log(10_000.0) / dim))
    angles = torch.arange(steps)[:, None] * rates
    return torch.cat((angles.sin(), angles.cos()), dim=1)[:, :dim]
