"""A small convolutional network for the cells of a grid world."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from cleanrl_worker.agents.mlp import ActorCritic, init_layer

VIEW = (7, 7, 3)
"""What an agent of MiniGrid and BabyAI sees: 7 × 7 cells with object, colour and state."""


class MinigridCNN(nn.Module):
    """128 features of a picture of cells."""

    def __init__(self, shape: Sequence[int] = VIEW, features: int = 128) -> None:
        super().__init__()
        self.shape = tuple(shape)
        height, width, channels = self.shape
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
        # Channels come last in the observations, and the permuted view is in the layout that is fastest here.
        pictures = obs.reshape(-1, *self.shape).permute(0, 3, 1, 2)
        features: Tensor = self.network(pictures.float() / 255.0)
        return features


class MinigridAgent(ActorCritic):
    """A policy over discrete actions and a value, on one `MinigridCNN`."""

    actor: nn.Sequential
    critic: nn.Sequential

    def __init__(self, num_actions: int | Sequence[int], shape: Sequence[int] = VIEW) -> None:
        super().__init__(num_actions)
        self.cnn = MinigridCNN(shape)
        self.actor = head(sum(self.nvec), gain=0.01)
        self.critic = head(1, gain=1.0)

    def features(self, obs: Tensor) -> Tensor:
        features: Tensor = self.cnn(obs)
        return features


def head(outputs: int, gain: float, features: int = 128) -> nn.Sequential:
    """A hidden layer of its own and the outputs."""
    return nn.Sequential(
        init_layer(nn.Linear(features, features)), nn.ReLU(), init_layer(nn.Linear(features, outputs), gain)
    )
