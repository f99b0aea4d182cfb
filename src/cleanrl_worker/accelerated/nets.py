"""Networks of two hidden relu layers and one head or more, a batch at a time.

Numbers of a batch lie unit by unit: a row for each unit, a column for each member of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cleanrl_worker.agents.continuous import HIDDEN, QNetwork
from cleanrl_worker.kit.torch_backend import Adam, Target

Floats = NDArray[np.float32]
_threshold_backward: Any = torch.ops.aten.threshold_backward.grad_input


@dataclass(frozen=True)
class Layer:
    """A linear layer: weights (out, in), biases, and the gradients of both."""

    weight: Floats
    bias: Floats
    weight_grad: Floats
    bias_grad: Floats

    def learn(self, grad: Floats, x: Floats, ones: Floats) -> None:
        """Write the gradients, given that of the outputs; a product with ones sums faster than `sum`."""
        np.matmul(grad, x.T, out=self.weight_grad)
        np.matmul(grad, ones, out=self.bias_grad)


def view_layers(net: nn.Module, weights: Tensor, gradient: Tensor | None = None) -> list[dict[str, Layer]]:
    """The layers by name of each network like `net`, of which one or more lie in flat memory."""
    if gradient is None:
        # Nobody learns here: this memory is never touched.
        gradient = torch.empty_like(weights)
    size = sum(parameter.numel() for parameter in net.parameters())
    networks: list[dict[str, Layer]] = []
    for start in range(0, weights.numel(), size):
        layers: dict[str, Layer] = {}
        for name, layer in net.named_children():
            assert isinstance(layer, nn.Linear)
            middle = start + layer.weight.numel()
            end = middle + layer.out_features
            parts = [
                part.numpy()
                for flat in (weights, gradient)
                for part in (flat[start:middle].view_as(layer.weight), flat[middle:end])
            ]
            layers[name] = Layer(*parts)
            start = end
        networks.append(layers)
    return networks


class Rows:
    """Memory for rows of numbers, as an array and as a tensor: some passes are faster in torch."""

    def __init__(self, count: int, length: int) -> None:
        self.tensor = torch.empty((count, length))
        self.array: Floats = self.tensor.numpy()


class Memory:
    """Where a network's activations lie from its forward to its backward pass.

    Networks that are never between the two at the same time share one, so that it stays in the cache.
    """

    def __init__(self, batch: int, width: int) -> None:
        self.first, self.second = Rows(width, batch), Rows(width, batch)


class Scratch:
    """What a backward pass notes on its way; all networks of a width can share one."""

    def __init__(self, batch: int, width: int, outputs: int) -> None:
        self.active = Rows(width, batch)
        self.grad = Rows(width + outputs, batch)
        self.weight = Rows(width + outputs, width)
        self.weight_grad = Rows(width + outputs, width)
        self.ones = np.ones(batch, np.float32)


MOST_MIXED = 0.85
"""With more mixed units than this share of all, to leave out the others would cost more than it saves."""


@dataclass(frozen=True)
class Folded:
    """The second layer's gradient without the units that need no product of their own.

    In training a good part of the units is off for a whole batch, and as many are on. The gradient of
    the former is zero. The latter are linear, so each output has all of them in one row, after those of the
    `mixed` units: its own gradient, and the sum of their weights. `steady` is what the outputs make of
    the units that are on: (output, unit). Where nothing is left out, `mixed` is None.
    """

    grad: Floats
    weight: Floats
    mixed: NDArray[np.int64] | None
    steady: Floats


class Net:
    """Forward and backward passes of one network."""

    def __init__(
        self, layers: dict[str, Layer], heads: Sequence[str], memory: Memory, scratch: Scratch | None = None
    ) -> None:
        """One that only goes forward needs no `scratch`."""
        self._first, self._second = (layer for name, layer in layers.items() if name not in heads)
        self._first_bias, self._second_bias = (
            torch.from_numpy(layer.bias[:, None]) for layer in (self._first, self._second)
        )
        self._heads = [layers[name] for name in heads]
        self._memory = memory
        self._scratch = scratch

    def forward(self, x: Floats) -> list[Floats]:
        """What each head gives, a row for each of `x`."""
        first, second = self._memory.first, self._memory.second
        np.matmul(self._first.weight, x.T, out=first.array)
        torch._add_relu_(first.tensor, self._first_bias)
        np.matmul(self._second.weight, first.array, out=second.array)
        torch._add_relu_(second.tensor, self._second_bias)
        return [(head.weight @ second.array).T + head.bias for head in self._heads]

    def backward(self, grads: Sequence[Floats], x: Floats) -> None:
        """Write the gradients of all layers, given those of the heads and the inputs of the last forward.

        The activations are overwritten on the way.
        """
        assert self._scratch is not None
        memory, ones = self._memory, self._scratch.ones
        for head, head_grad in zip(self._heads, grads, strict=True):
            head.learn(head_grad.T, memory.second.array, ones)
        folded = self._fold(_join([grad.T for grad in grads]))
        if folded.mixed is None:
            self._second.learn(folded.grad, memory.first.array, ones)
        else:
            self._unfold(folded, folded.mixed, self._scratch)
        self._first.learn(self._first_grad(folded), x.T, ones)

    def slope(self, shares: Floats, first: int) -> Floats:
        """How the only output, times a share for each row, changes with the inputs from column `first` on.

        The activations are overwritten on the way.
        """
        grad = self._first_grad(self._fold(shares[None]))
        slope: Floats = grad.T @ self._first.weight[:, first:]
        return slope

    def _fold(self, grad: Floats) -> Folded:
        """The gradient of the second layer, given that of all outputs."""
        assert self._scratch is not None
        scratch, second = self._scratch, self._memory.second
        heads = _join([head.weight for head in self._heads])
        on = torch.amin(second.tensor, 1).numpy() > 0.0
        (mixed,) = np.nonzero((torch.amax(second.tensor, 1).numpy() > 0.0) ^ on)
        steady, count, size = heads * on, len(mixed), len(mixed) + len(grad)
        if count > MOST_MIXED * len(on):
            folded = scratch.grad.array[: len(on)]
            _put_product(heads.T, grad, folded)
            _relu_backward(folded, second.array)
            return Folded(folded, self._second.weight, None, steady)
        folded, weight = scratch.grad.array[:size], scratch.weight.array[:size]
        active = second.array.take(mixed, axis=0, out=scratch.active.array[:count], mode="clip")
        _put_product(heads.T[mixed], grad, folded[:count])
        _relu_backward(folded[:count], active)
        folded[count:] = grad
        self._second.weight.take(mixed, axis=0, out=weight[:count], mode="clip")
        np.matmul(steady, self._second.weight, out=weight[count:])
        return Folded(folded, weight, mixed, steady)

    def _unfold(self, folded: Folded, mixed: NDArray[np.int64], scratch: Scratch) -> None:
        """Write the gradients of the second layer."""
        layer, count, out = self._second, len(mixed), scratch.weight_grad.array[: len(folded.grad)]
        weight_grad = np.matmul(folded.grad, self._memory.first.array.T, out=out)
        bias_grad = folded.grad @ scratch.ones
        _put_product(folded.steady.T, weight_grad[count:], layer.weight_grad)
        layer.weight_grad[mixed] = weight_grad[:count]
        np.matmul(bias_grad[count:], folded.steady, out=layer.bias_grad)
        layer.bias_grad[mixed] = bias_grad[:count]

    def _first_grad(self, folded: Folded) -> Floats:
        """The gradient of the first layer, in the place of the second layer's activations."""
        grad = np.matmul(folded.weight.T, folded.grad, out=self._memory.second.array)
        _relu_backward(grad, self._memory.first.array)
        return grad


def _join(parts: list[Floats]) -> Floats:
    """The rows of all parts; one part is not copied."""
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def _put_product(left: Floats, right: Floats, out: Floats) -> None:
    """The product of two matrices."""
    if left.shape[1] == 1:
        # A column times a row is what BLAS is slowest at.
        torch.mul(torch.from_numpy(left), torch.from_numpy(right), out=torch.from_numpy(out))
    else:
        np.matmul(left, right, out=out)


def _relu_backward(grad: Floats, activation: Floats) -> None:
    """Clear the gradient where the activation is zero: one pass in torch, two in numpy."""
    tensor = torch.from_numpy(grad)
    _threshold_backward(tensor, torch.from_numpy(activation), 0, grad_input=tensor)


class Settings(Protocol):
    """The arguments that the updates of a policy and its Q networks read."""

    gamma: float
    batch_size: int
    num_envs: int


class Critics:
    """The Q networks of an algorithm and their targets, on the memory of their optimizer."""

    def __init__(
        self, nets: nn.ModuleList, optimizer: Adam, target: Target[nn.ModuleList], judges: int, batch: int
    ) -> None:
        """The first `judges` networks are those that a policy learns from."""
        (like, *_) = nets
        assert isinstance(like, QNetwork)
        # What two judges think of an action is needed at the same time; all else takes its turn.
        memories, scratch = [Memory(batch, HIDDEN) for _ in range(judges)], Scratch(batch, HIDDEN, outputs=1)
        layers = view_layers(like, optimizer.weights, optimizer.gradient)
        self._nets = [Net(parts, ["fc3"], memories[0], scratch) for parts in layers]
        self._judges = [
            Net(parts, ["fc3"], memory, scratch) for parts, memory in zip(layers, memories, strict=False)
        ]
        self._targets = [Net(parts, ["fc3"], memories[0]) for parts in view_layers(like, target.weights)]
        self._inputs = np.empty((batch, like.fc1.in_features), np.float32)

    def target_values(self, next_obs: Floats, next_actions: Floats) -> Floats:
        """The least of the target networks' values of what comes next."""
        inputs = self._join(next_obs, next_actions)
        least: Floats = np.minimum.reduce([target.forward(inputs)[0][:, 0] for target in self._targets])
        return least

    def gradient(self, obs: Floats, actions: Floats, targets: Floats) -> Floats:
        """Leave the gradients of all networks in memory; gives the mean values, then the losses."""
        inputs, size = self._join(obs, actions), len(targets)
        means, losses = [], []
        for net in self._nets:
            values = net.forward(inputs)[0][:, 0]
            error = values - targets
            means.append(float(np.add.reduce(values)) / size)
            losses.append(float(np.dot(error, error)) / size)
            error *= np.float32(2.0 / size)
            net.backward([error[:, None]], inputs)
        return np.array(means + losses)

    def judge(self, obs: Floats, actions: Floats) -> list[Floats]:
        """The values that each judge gives."""
        inputs = self._join(obs, actions)
        return [judge.forward(inputs)[0][:, 0] for judge in self._judges]

    def slopes(self, action_size: int, shares: Sequence[Floats]) -> Floats:
        """How the values change with the actions just judged; each judge has its share in each row."""
        first = self._inputs.shape[1] - action_size
        slopes = [judge.slope(share, first) for judge, share in zip(self._judges, shares, strict=True)]
        total: Floats = np.add.reduce(slopes)
        return total

    def _join(self, obs: Floats, actions: Floats) -> Floats:
        return np.concatenate([obs, actions], axis=1, out=self._inputs)
