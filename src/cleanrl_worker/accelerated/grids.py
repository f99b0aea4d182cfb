"""The network of grid worlds, with each surrounding that repeats computed once.

What a convolution makes of a cell depends on the 3 × 3 cells around it, what two of them make on 5 × 5. Grid
worlds have few kinds of cells, so most surroundings are there many times over: in a minibatch of 128 views
(6,272 cells) there are 200 to 1,000 of 3 × 3 cells and 800 to 2,000 of 5 × 5. Here equal surroundings share a
number, and the products are made once for each number. A 3 × 3 convolution is then one product of the
numbered inputs with the weights of all nine places, and for each output a sum of nine of its rows.

Beyond the edge of a view is a surrounding of its own: the last number, whose inputs are always zero.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cleanrl_worker.accelerated.layers import Floats, Stack
from cleanrl_worker.agents.minigrid import MinigridAgent

Numbers = NDArray[np.int64]
NEAR = 9
"""Cells in a surrounding of 3 × 3."""
CELLS_AT_ONCE = 4096
"""So many cells of new views are computed together; more would only take more memory."""
MOST_KNOWN = 10_000
"""So many views are kept at most."""
_threshold_backward: Any = torch.ops.aten.threshold_backward


class Sums:
    """Adds up nine rows of a table for each output; the table has nine rows for each number."""

    def __init__(self, numbers: Numbers, count: int) -> None:
        """`numbers` has the nine surroundings of each output, out of `count`."""
        self.count = count
        self._rows = numbers * NEAR + np.arange(NEAR)
        self._indices = torch.from_numpy(self._rows)

    def add(self, table: Tensor) -> Tensor:
        """The sums of rows of `table`."""
        return nn.functional.embedding_bag(self._indices, table, mode="sum")

    def spread(self, grad: Tensor) -> Tensor:
        """The gradient of the table, given that of the sums."""
        rows, size = self._rows.reshape(-1), self.count * NEAR
        # Numbers of two bytes are sorted several times as fast as larger ones.
        order = np.argsort(rows.astype(np.min_scalar_type(size)), kind="stable")
        counts = np.bincount(rows, minlength=size)
        starts = torch.from_numpy(np.cumsum(counts) - counts)
        return nn.functional.embedding_bag(torch.from_numpy(order // NEAR), grad, starts, mode="sum")


@dataclass(frozen=True)
class Part:
    """Views to compute: what is near each numbered cell at first, and how it is summed up later."""

    near: Tensor
    second: Sums
    third: Sums


class Surroundings:
    """A rollout's observations with their views and surroundings numbered."""

    def __init__(self, obs: NDArray[Any], shape: Sequence[int]) -> None:
        self._around = around(*shape[:2])
        firsts, self._views = number(obs)
        cells = obs[firsts].reshape(-1, shape[2])
        kinds, numbers = number(cells)
        inner, numbers = self._number_near(numbers.reshape(len(firsts), -1), len(kinds))
        known = np.concatenate([cells[kinds], np.zeros_like(cells[:1])]) / np.float32(255.0)
        # As the first layer has its weights: channel by channel.
        self._inner = torch.from_numpy(known[inner].transpose(0, 2, 1).reshape(len(inner), -1))
        self._outer, self._numbers = self._number_near(numbers, len(inner) - 1)

    def _number_near(self, numbers: Numbers, count: int) -> tuple[Numbers, Numbers]:
        """What each new number stands for, in numbers below `count`, and the new numbers of all cells."""
        near = self._look_around(numbers, count)
        firsts, found = number(near.astype(np.int32))
        return np.concatenate([near[firsts], np.full((1, NEAR), count)]), found.reshape(numbers.shape)

    def _look_around(self, numbers: Numbers, outside: int) -> Numbers:
        """The nine numbers around each cell of each view."""
        padded = np.column_stack([numbers, np.full(len(numbers), outside)])
        return padded[:, self._around].reshape(-1, NEAR)

    def take(self, rows: Numbers) -> tuple[Part, Numbers]:
        """What there is to compute for some observations, and which of its views each of them has."""
        views, places = np.unique(self._views[rows], return_inverse=True)
        numbers = self._look_around(self._numbers[views], len(self._outer) - 1)
        outer, third = keep_used(numbers, len(self._outer))
        inner, second = keep_used(self._outer[outer], len(self._inner))
        near = self._inner.index_select(0, torch.from_numpy(inner))
        return Part(near, Sums(second, len(inner)), Sums(third, len(outer))), places


def keep_used(numbers: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """The numbers that are used and the last one, and `numbers` counted among these."""
    used = np.zeros(count, bool)
    used[numbers] = True
    used[-1] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[numbers]


def number(rows: NDArray[Any]) -> tuple[Numbers, Numbers]:
    """Where the first of each kind of equal rows is, and the number of each row's kind."""
    whole = np.dtype((np.void, rows.itemsize * rows.shape[1]))
    found = np.unique(np.ascontiguousarray(rows).view(whole), return_index=True, return_inverse=True)
    return found[1], found[2].reshape(-1)


@functools.cache
def around(height: int, width: int) -> Numbers:
    """The 3 × 3 cells around each cell; those beyond the edge are one past the last."""
    outside = height * width
    padded = np.full((height + 2, width + 2), outside)
    padded[1:-1, 1:-1] = np.arange(outside).reshape(height, width)
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3)).reshape(outside, NEAR)


class KnownViews:
    """Logits and values of views, each computed once while the weights stay as they are.

    Few views are new at a time, and those go through the convolutions cell by cell.
    """

    def __init__(self, agent: MinigridAgent) -> None:
        self._shape = agent.cnn.shape
        layers: list[Any] = list(agent.cnn.network)
        self._convolutions, self._last = layers[0:6:2], layers[7]
        self._heads = Stack(agent.actor), Stack(agent.critic)
        self._known: dict[bytes, Floats] = {}
        self._weights: list[Floats] = []

    def weights_changed(self) -> None:
        """Forget what was made of the weights."""
        self._known.clear()
        self._weights.clear()

    def logits(self, obs: Floats) -> Floats:
        return self._outputs(obs)[:, :-1]

    def values(self, obs: Floats) -> Floats:
        return self._outputs(obs)[:, -1]

    def _outputs(self, obs: Floats) -> Floats:
        """Logits and value of each observation, one after the other."""
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        keys = [row.tobytes() for row in obs]
        new = {key: index for index, key in enumerate(keys) if key not in self._known}
        if new:
            several = max(1, CELLS_AT_ONCE // math.prod(self._shape[:2]))
            views = obs[list(new.values())]
            parts = [self._compute(views[start : start + several]) for start in range(0, len(views), several)]
            self._known |= zip(new, np.concatenate(parts), strict=True)
        return np.stack([self._known[key] for key in keys])

    def _compute(self, views: Floats) -> Floats:
        if not self._weights:
            # A row for each input, those of one of the nine places after those of another.
            laid_out = [layer.weight.detach().permute(2, 3, 1, 0) for layer in self._convolutions]
            self._weights = [weight.flatten(0, 2).numpy() for weight in laid_out]
        height, width, channels = self._shape
        near, cells = all_around(len(views), height, width), len(views) * height * width
        x = np.zeros((cells + 1, channels), np.float32)
        np.divide(views.reshape(cells, channels), np.float32(255.0), out=x[:-1])
        for layer, weight in zip(self._convolutions, self._weights, strict=True):
            inputs, x = x.take(near, axis=0), np.zeros((cells + 1, weight.shape[1]), np.float32)
            np.matmul(inputs.reshape(cells, -1), weight, out=x[:-1])
            torch._add_relu_(torch.from_numpy(x[:-1]), layer.bias.detach())
        flat = x[:-1].reshape(len(views), height * width, -1).transpose(0, 2, 1).reshape(len(views), -1)
        features = flat @ self._last.weight.detach().numpy().T + self._last.bias.detach().numpy()
        return np.column_stack([head.forward(features) for head in self._heads])


@functools.lru_cache(16)
def all_around(views: int, height: int, width: int) -> Numbers:
    """The nine cells around each cell of so many views, those of one view after those of another."""
    near, cells = around(height, width), height * width
    numbers = near + np.arange(views)[:, None, None] * cells
    numbers[:, near == cells] = views * cells
    return numbers.reshape(-1)


class Convolution:
    """A 3 × 3 convolution with its relu, on the layer's own memory."""

    def __init__(self, layer: nn.Conv2d) -> None:
        self._weight, self._bias = layer.weight.detach(), _present(layer.bias).detach()
        self._weight_grad, self._bias_grad = _present(layer.weight.grad), _present(_present(layer.bias).grad)
        self._table = torch.empty((0, NEAR * len(self._bias)))

    def forward(self, x: Tensor, sums: Sums) -> Tensor:
        """The activations of each output."""
        if len(self._table) < len(x):
            # The same memory each time: to get so much anew takes a good part of the product's time.
            self._table = torch.empty((len(x) * 5 // 4, self._table.shape[1]))
        # A row for each input, and in it one of the nine places after the other.
        self._places = self._weight.permute(1, 2, 3, 0).flatten(1)
        table = torch.mm(x, self._places, out=self._table[: len(x)])
        return torch._add_relu_(sums.add(table.view(-1, len(self._bias))), self._bias)

    def backward(self, grad: Tensor, x: Tensor, sums: Sums) -> Tensor:
        """Write the layer's gradients, given that of the sums; gives the gradient of the inputs."""
        spread = sums.spread(grad).view(len(x), -1)
        torch.sum(grad, 0, out=self._bias_grad)
        self._weight_grad.copy_(torch.mm(x.T, spread).view(-1, 3, 3, grad.shape[1]).permute(3, 0, 1, 2))
        return torch.mm(spread, self._places.T)


class Linear:
    """A linear layer on its own memory."""

    def __init__(self, layer: nn.Linear | nn.Conv2d) -> None:
        """Of a convolution: what it does to inputs of which each row is one surrounding."""
        bias = _present(layer.bias)
        self.weight, self._bias = layer.weight.detach().flatten(1), bias.detach()
        self._weight_grad, self._bias_grad = _present(layer.weight.grad).flatten(1), _present(bias.grad)

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self._bias, x, self.weight.T)

    def learn(self, grad: Tensor, x: Tensor) -> None:
        """Write the gradients, given that of the outputs."""
        torch.mm(grad.T, x, out=self._weight_grad)
        torch.sum(grad, 0, out=self._bias_grad)


def _present(tensor: Tensor | None) -> Tensor:
    assert tensor is not None
    return tensor


class GridNet:
    """Logits and values of views of a grid world, and the gradients of a `MinigridAgent`."""

    def __init__(self, agent: MinigridAgent) -> None:
        first, _, second, _, third, _, _, last = agent.cnn.network
        assert isinstance(first, nn.Conv2d) and isinstance(last, nn.Linear)
        assert isinstance(second, nn.Conv2d) and isinstance(third, nn.Conv2d)
        self._first, self._last = Linear(first), Linear(last)
        self._second, self._third = Convolution(second), Convolution(third)
        self._heads = Stack(agent.actor), Stack(agent.critic)
        self._shape = agent.cnn.shape
        self._cells = self._shape[0] * self._shape[1]
        self._known = KnownViews(agent)
        self.logits, self.values = self._known.logits, self._known.values
        self.weights_changed = self._known.weights_changed

    def prepare(self, obs: NDArray[Any]) -> None:
        """Number what repeats in a rollout, of which minibatches will come."""
        self._surroundings = Surroundings(obs.reshape(len(obs), -1), self._shape)

    def forward(self, batch: Any) -> tuple[Floats, Floats]:
        """Logits and values of a minibatch of the rollout; what `backward` needs is kept."""
        part, self._at = self._surroundings.take(batch.rows)
        first = self._first.forward(part.near).relu_()
        first[-1] = 0.0
        second = self._second.forward(first, part.second)
        second[-1] = 0.0
        third = self._third.forward(second, part.third)
        flat = torch.empty((len(third) // self._cells, self._last.weight.shape[1]))
        # The next layer has its weights channel by channel; numpy turns this round faster than torch.
        np.copyto(self._by_channel(flat), third.numpy().reshape(len(flat), self._cells, -1))
        self._kept = part, first, second, flat
        features = self._last.forward(flat).numpy()
        logits, values = (head.forward(features) for head in self._heads)
        return logits[self._at], values[self._at, 0]

    def backward(self, logits_grad: Floats, values_grad: Floats) -> None:
        """Write all gradients, given those of what `forward` gave."""
        part, first, second, flat = self._kept
        grad = torch.zeros((len(flat), len(self._last.weight)))
        for head, each in zip(self._heads, (logits_grad, values_grad[:, None]), strict=True):
            total = torch.zeros((len(flat), each.shape[1]))
            total.index_add_(0, torch.from_numpy(self._at), torch.from_numpy(each))
            head.backward(total.numpy())
            grad += torch.from_numpy(head.pass_on())
        self._last.learn(grad, flat)
        grad = _threshold_backward(torch.mm(grad, self._last.weight), flat, 0)
        grad = torch.from_numpy(self._by_channel(grad).reshape(len(flat) * self._cells, -1))
        grad = _threshold_backward(self._third.backward(grad, second, part.third), second, 0)
        grad = _threshold_backward(self._second.backward(grad, first, part.second), first, 0)
        self._first.learn(grad, part.near)

    def _by_channel(self, flat: Tensor) -> Floats:
        """What lies channel by channel in each row, as (row, cell, channel)."""
        turned: Floats = flat.numpy().reshape(len(flat), -1, self._cells).transpose(0, 2, 1)
        return turned
