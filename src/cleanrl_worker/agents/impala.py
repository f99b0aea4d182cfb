"""The residual convolutional network of IMPALA, and an agent on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from cleanrl_worker.agents.mlp import ActorCritic, init_layer

FEATURES = 256
CHANNELS = (16, 32, 32)
_BLOCKS = 2
"""Of each sequence."""


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


def _scale_layers(module: nn.Module) -> None:
    """Give each layer filters, or rows, of one length and no bias: those of phasic policy gradient."""
    block = math.sqrt(1.0 / math.sqrt(len(CHANNELS)) / math.sqrt(_BLOCKS))
    for name, layer in module.named_modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            length = block if "res_block" in name else 1.0 if isinstance(layer, nn.Conv2d) else 1.4
            scale_layer(layer, length)


def scale_layer(layer: nn.Conv2d | nn.Linear, length: float) -> nn.Module:
    """The layer with filters, or rows, of this length and no bias to begin with."""
    weight = layer.weight.data
    weight *= length / torch.linalg.vector_norm(weight, dim=tuple(range(1, weight.dim())), keepdim=True)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer


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


class PhasicAgent(ImpalaAgent):
    """As `ImpalaAgent`, with a value that teaches the network nothing, and a second one that does."""

    def __init__(self, shape: Sequence[int], num_actions: int | Sequence[int]) -> None:
        super().__init__(shape, num_actions)
        _scale_layers(self.network)
        self.actor = scale_layer(nn.Linear(FEATURES, sum(self.nvec)), 0.1)
        self.critic = scale_layer(nn.Linear(FEATURES, 1), 0.1)
        self.aux_critic = scale_layer(nn.Linear(FEATURES, 1), 0.1)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and value, with the features computed once."""
        logits, value, _ = self.all_outputs(obs)
        return logits, value

    def all_outputs(self, obs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, the value and the second one."""
        features = self.features(obs)
        value, second = self.critic(features.detach()), self.aux_critic(features)
        return self.actor(features), torch.squeeze(value, -1), torch.squeeze(second, -1)
