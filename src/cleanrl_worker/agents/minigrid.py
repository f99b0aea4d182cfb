"""A small convolutional network for the cells of a grid world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cleanrl_worker.agents.mlp import init_layer

VIEW = (7, 7, 3)
"""What an agent of MiniGrid and BabyAI sees: 7 × 7 cells with object, colour and state."""


MANY = 16
"""From so many rows on it pays to look for those that are there twice."""


class MinigridCNN(nn.Module):
    """128 features of a picture of cells."""

    def __init__(self, shape: Sequence[int] = VIEW, features: int = 128) -> None:
        super().__init__()
        self._shape = tuple(shape)
        height, width, channels = self._shape
        self.network = nn.Sequential(
            init_layer(nn.Conv2d(channels, 32, 3, padding=1)),
            nn.ReLU(),
            init_layer(nn.Conv2d(32, 64, 3, padding=1)),
            nn.ReLU(),
            init_layer(nn.Conv2d(64, 64, 3, padding=1)),
            nn.ReLU(),
            nn.Flatten(),
            init_layer(nn.Linear(64 * height * width, features)),
        )

    def forward(self, obs: Tensor) -> Tensor:
        """Features of pictures (row, height, width, 3) of bytes, or of the same numbers as flat rows."""
        rows = obs.reshape(-1, *self._shape)
        places: Tensor | None = None
        if rows.device.type == "cpu" and len(rows) >= MANY:
            # Half of a minibatch, or more, are views that another of its rows has too.
            rows, places = distinct(rows)
        # Channels come last in the observations, and the permuted view is in the layout that is fastest here.
        features: Tensor = self.network(rows.permute(0, 3, 1, 2).float() / 255.0)
        return features if places is None else features.index_select(0, places)


def distinct(rows: Tensor) -> tuple[Tensor, Tensor | None]:
    """Each row that is there once, and where among them each row is; None when all differ."""
    known = rows.reshape(len(rows), -1).contiguous().numpy()
    row = np.dtype((np.void, known.dtype.itemsize * known.shape[1]))
    _, firsts, places = np.unique(known.view(row), return_index=True, return_inverse=True)
    if len(firsts) == len(rows):
        return rows, None
    return rows[torch.from_numpy(firsts)], torch.from_numpy(places.reshape(-1))


class KnownViews:
    """A function of observations that is computed once for each view while the weights stay as they are."""

    def __init__(self, compute: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
        self._compute = compute
        self._known: dict[bytes, NDArray[Any]] = {}

    def __call__(self, obs: NDArray[Any]) -> NDArray[Any]:
        keys = [row.tobytes() for row in obs]
        new = {key: index for index, key in enumerate(keys) if key not in self._known}
        if new:
            self._known |= zip(new, self._compute(obs[list(new.values())]), strict=True)
        return np.stack([self._known[key] for key in keys])

    def forget(self) -> None:
        """The weights have changed."""
        self._known.clear()


class MinigridAgent(nn.Module):
    """A policy over discrete actions and a value, on one `MinigridCNN`."""

    def __init__(self, num_actions: int | Sequence[int], shape: Sequence[int] = VIEW) -> None:
        super().__init__()
        self.nvec = (num_actions,) if isinstance(num_actions, int) else tuple(num_actions)
        self.cnn = MinigridCNN(shape)
        self.actor = head(sum(self.nvec), gain=0.01)
        self.critic = head(1, gain=1.0)

    def logits(self, obs: Tensor) -> Tensor:
        """Unnormalised log probabilities of the actions."""
        logits: Tensor = self.actor(self.cnn(obs))
        return logits

    def value(self, obs: Tensor) -> Tensor:
        """The expected discounted return."""
        value: Tensor = self.critic(self.cnn(obs)).squeeze(-1)
        return value

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and value, with the pictures read once."""
        features = self.cnn(obs)
        return self.actor(features), torch.squeeze(self.critic(features), -1)


def head(outputs: int, gain: float, features: int = 128) -> nn.Sequential:
    """A hidden layer of its own and the outputs."""
    return nn.Sequential(
        init_layer(nn.Linear(features, features)), nn.ReLU(), init_layer(nn.Linear(features, outputs), gain)
    )
