"""The residual convolutional network of IMPALA, and an agent on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from cleanrl_worker.agents.mlp import ActorCritic, init_layer

FEATURES = 256
CHANNELS = (16, 32, 32)


class ResidualBlock(nn.Module):
    """Two convolutions whose result is added to what they were given."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv0 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, seen: Tensor) -> Tensor:
        found = nn.functional.relu(self.conv0(nn.functional.relu(seen)), inplace=True)
        return cast(Tensor, self.conv1(found)) + seen


class ConvSequence(nn.Module):
    """A convolution, the greatest of each 3 × 3 at half the height and width, and two residual blocks."""

    def __init__(self, channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out_channels, 3, padding=1)
        self.res_block0 = ResidualBlock(out_channels)
        self.res_block1 = ResidualBlock(out_channels)

    def forward(self, seen: Tensor) -> Tensor:
        found = nn.functional.max_pool2d(self.conv(seen), kernel_size=3, stride=2, padding=1)
        return cast(Tensor, self.res_block1(self.res_block0(found)))


class ImpalaCNN(nn.Sequential):
    """256 features of pictures of bytes: (row, height, width, channels), or with the channels first.

    Layers that are appended read the features. Channels come last in memory, in the activations and in the
    filters.
    """

    def __init__(self, shape: Sequence[int]) -> None:
        first = shape[0] < min(shape[1:])
        height, width, channels = (*shape[1:], shape[0]) if first else shape
        sequences = []
        for out_channels in CHANNELS:
            sequences.append(ConvSequence(channels, out_channels))
            height, width, channels = (height + 1) // 2, (width + 1) // 2, out_channels
        super().__init__(
            *sequences,
            nn.Flatten(),
            nn.ReLU(inplace=True),
            nn.Linear(channels * height * width, FEATURES),
            nn.ReLU(inplace=True),
        )
        self._first = first
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)

    def forward(self, pictures: Tensor) -> Tensor:
        pictures = pictures if self._first else pictures.permute(0, 3, 1, 2)
        found = pictures.to(torch.float32, memory_format=torch.channels_last) / 255.0
        for layer in self:
            found = cast(Tensor, layer(found))
        return found


class ImpalaAgent(ActorCritic):
    """A policy over discrete actions and a value, on one `ImpalaCNN`."""

    def __init__(self, shape: Sequence[int], num_actions: int | Sequence[int]) -> None:
        super().__init__(num_actions)
        self.network = ImpalaCNN(shape)
        self.actor = init_layer(nn.Linear(FEATURES, sum(self.nvec)), gain=0.01)
        self.critic = init_layer(nn.Linear(FEATURES, 1), gain=1.0)

    def features(self, obs: Tensor) -> Tensor:
        features: Tensor = self.network(obs)
        return features
