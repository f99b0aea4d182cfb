"""The convolutional network of the Nature paper on DQN, and agents on it, without and with memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from cleanrl_worker.agents.mlp import ActorCritic, init_layer

FEATURES = 512
MEMORY = 128
_STRIDE = 4
"""Of the first convolution."""
_SHORTEST = 36
"""The least height and width of a picture that the three convolutions leave something of."""
_MANY = 96
"""From so many pictures on the wide layer learns faster as a convolution."""


class NatureCNN(nn.Sequential):
    """Features of pictures of bytes: (row, height, width, channels), or with the channels first.

    Channels come last in memory, in the activations and in the filters, which on a CPU takes little more than
    half of the time that torch's default layout does. With `normed` each layer is normalised before its relu,
    which keeps values in bounds without a target network. Layers that are appended
    read the features, of which there are as many as the last of the layers `hidden` has.
    """

    def __init__(
        self,
        shape: Sequence[int],
        orthogonal: bool = True,
        normed: bool = False,
        hidden: Sequence[int] = (FEATURES,),
    ) -> None:
        """`orthogonal`: what its weights are to begin with; else they are as torch draws them."""
        first = shape[0] < min(shape[1:])
        height, width, channels = (*shape[1:], shape[0]) if first else shape
        if min(height, width) < _SHORTEST:
            raise ValueError(f"an image of {height} × {width} is too small for this network")
        begin = init_layer if orthogonal else _as_drawn
        layers: list[nn.Module] = []
        for filters, kernel, stride in ((32, 8, _STRIDE), (64, 4, 2), (64, 3, 1)):
            height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
            layers.append(begin(nn.Conv2d(channels, filters, kernel, stride=stride)))
            layers += [nn.LayerNorm((filters, height, width))] if normed else []
            # What is normalised is a view, in which nothing is changed in place without copies.
            layers.append(nn.ReLU(inplace=not normed))
            channels = filters
        layers.append(nn.Flatten())
        for inputs, outputs in itertools.pairwise((channels * height * width, *hidden)):
            layers.append(begin(nn.Linear(inputs, outputs)))
            layers += [nn.LayerNorm(outputs)] if normed else []
            layers.append(nn.ReLU(inplace=True))
        super().__init__(*layers)
        self._first = first
        for layer in self:
            if isinstance(layer, nn.Conv2d):
                layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)

    def forward(self, pictures: Tensor) -> Tensor:
        convolution, *layers = self
        assert isinstance(convolution, nn.Conv2d)
        # Bytes become numbers up to 1 in the filters, of which there are a thousand times fewer than pixels.
        filters = convolution.weight / 255.0
        pictures = pictures if self._first else pictures.permute(0, 3, 1, 2)
        seen = pictures.to(torch.float32, memory_format=torch.channels_last)
        found = nn.functional.conv2d(seen, filters, convolution.bias, stride=_STRIDE)
        for layer in layers:
            if found.dim() == 2 or not isinstance(layer, nn.Flatten | nn.Linear | nn.LayerNorm):
                found = cast(Tensor, layer(found))
            elif isinstance(layer, nn.LayerNorm):
                found = _normalise(layer, found)
            elif isinstance(layer, nn.Linear):
                # As a convolution with filters of the whole picture it learns in half of the time.
                filters = layer.weight.view(-1, *found.shape[1:])
                found = nn.functional.conv2d(found, filters, layer.bias).flatten(1)
            elif not found.requires_grad:
                found = found.flatten(1)
            elif len(found) < _MANY:
                # Its gradient comes with the channels first; the relu before it would take it so, slowly.
                found.register_hook(_channels_last)
                found = found.flatten(1)
        return found.flatten(1)


def _normalise(layer: nn.LayerNorm, found: Tensor) -> Tensor:
    """What a layer that normalises (channels, height, width) gives, without moving the channels in memory."""
    weight, bias = layer.weight.permute(1, 2, 0).contiguous(), layer.bias.permute(1, 2, 0).contiguous()
    seen = found.permute(0, 2, 3, 1)
    return nn.functional.layer_norm(seen, seen.shape[1:], weight, bias, layer.eps).permute(0, 3, 1, 2)


def _channels_last(grad: Tensor) -> Tensor:
    return grad.contiguous(memory_format=torch.channels_last)


def _as_drawn(layer: nn.Module) -> nn.Module:
    return layer


class NatureAgent(ActorCritic):
    """A policy over discrete actions and a value, on one `NatureCNN`."""

    def __init__(self, shape: Sequence[int], num_actions: int | Sequence[int]) -> None:
        super().__init__(num_actions)
        self.network = NatureCNN(shape)
        self.actor = init_layer(nn.Linear(FEATURES, sum(self.nvec)), gain=0.01)
        self.critic = init_layer(nn.Linear(FEATURES, 1), gain=1.0)

    def features(self, obs: Tensor) -> Tensor:
        features: Tensor = self.network(obs)
        return features


class NormedNatureQNetwork(nn.Module):
    """A value for each action, on one `NatureCNN` with normalised layers."""

    def __init__(self, shape: Sequence[int], num_actions: int) -> None:
        super().__init__()
        self.network = NatureCNN(shape, normed=True)
        self.network.append(init_layer(nn.Linear(FEATURES, num_actions)))

    def forward(self, obs: Tensor) -> Tensor:
        """Values of the actions, a row for each observation."""
        values: Tensor = self.network(obs)
        return values


class NatureLSTM(nn.Module):
    """A `NatureCNN` with an LSTM behind it.

    The memory of an environment is one row: hidden state, then cell state, zero at the start of an episode.
    """

    memory_size = 2 * MEMORY

    def __init__(self, shape: Sequence[int], normed: bool = False) -> None:
        super().__init__()
        self.network = NatureCNN(shape, normed=normed)
        self.lstm = nn.LSTM(FEATURES, MEMORY)
        for name, parameter in self.lstm.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
            else:
                nn.init.orthogonal_(parameter, 1.0)

    def remember(self, obs: Tensor, memory: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """What the LSTM gives for sequences (step, environment, …), and the memory after them.

        Where `starts` is 1 an episode begins, and with it the memory. Between such steps the LSTM runs
        through all of them at once.
        """
        steps, rows = obs.shape[:2]
        features = self.network(obs.flatten(0, 1)).view(steps, rows, FEATURES)
        begins = [*starts.any(dim=1).nonzero().flatten().tolist(), steps]
        if begins[0] > 0:
            begins.insert(0, 0)
        outputs = []
        for begin, end in itertools.pairwise(begins):
            memory = memory * (1.0 - starts[begin])[:, None]
            hidden, cell = memory[None].chunk(2, dim=2)
            found, (hidden, cell) = self.lstm(features[begin:end], (hidden.contiguous(), cell.contiguous()))
            outputs.append(found)
            memory = torch.cat((hidden[0], cell[0]), dim=1)
        return torch.cat(outputs), memory


class NatureLSTMAgent(NatureLSTM):
    """As `NatureAgent`, with an LSTM between the features and the outputs."""

    def __init__(self, shape: Sequence[int], num_actions: int | Sequence[int]) -> None:
        super().__init__(shape)
        self.nvec = (num_actions,) if isinstance(num_actions, int) else tuple(num_actions)
        self.actor = init_layer(nn.Linear(MEMORY, sum(self.nvec)), gain=0.01)
        self.critic = init_layer(nn.Linear(MEMORY, 1), gain=1.0)

    def step(self, obs: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, values and the next memory for one observation of each environment."""
        logits, values, memory = self(obs[None], memory, torch.zeros(1, len(obs)))
        return logits[0], values[0], memory

    def forward(self, obs: Tensor, memory: Tensor, starts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits and values of sequences (step, environment, …), and the memory after them."""
        seen, memory = self.remember(obs, memory, starts)
        return self.actor(seen), torch.squeeze(self.critic(seen), -1), memory


class NatureLSTMQNetwork(NatureLSTM):
    """As `NormedNatureQNetwork`, with an LSTM between the features and the values."""

    def __init__(self, shape: Sequence[int], num_actions: int) -> None:
        super().__init__(shape, normed=True)
        self.q_func = init_layer(nn.Linear(MEMORY, num_actions))

    def step(self, obs: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Values of the actions and the next memory for one observation of each environment."""
        values, memory = self(obs[None], memory, torch.zeros(1, len(obs)))
        return values[0], memory

    def forward(self, obs: Tensor, memory: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Values of sequences (step, environment, …), and the memory after them."""
        seen, memory = self.remember(obs, memory, starts)
        return self.q_func(seen), memory
