"""Networks of linear layers with relu between and one head or more, a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Layer:
    """A linear layer: weights (out, in), biases, and the gradients of both."""

    weight: Floats
    bias: Floats
    weight_grad: Floats
    bias_grad: Floats

    def learn(self, grad: Floats, x: Floats, ones: Floats) -> None:
        """Write the gradients, given that of the outputs; a product with ones sums faster than `sum`."""
        np.matmul(grad.T, x, out=self.weight_grad)
        np.matmul(ones, grad, out=self.bias_grad)


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
    """Memory for numbers of a batch, as an array and as a tensor: some passes are faster in torch."""

    def __init__(self, batch: int, width: int) -> None:
        self.tensor = torch.empty((batch, width))
        self.array: Floats = self.tensor.numpy()


class Memory:
    """Where a network's activations lie from its forward to its backward pass.

    Networks that are never between the two at the same time share one, so that it stays in the cache.
    """

    def __init__(self, batch: int, width: int, depth: int) -> None:
        self.activations = [Rows(batch, width) for _ in range(depth)]
        self.spare = Rows(batch, width)
        self.ones = np.ones(batch, np.float32)


class Net:
    """Forward and backward passes of one network."""

    def __init__(self, layers: dict[str, Layer], heads: Sequence[str], memory: Memory) -> None:
        self._hidden = [layer for name, layer in layers.items() if name not in heads]
        self._biases = [torch.from_numpy(layer.bias) for layer in self._hidden]
        self._heads = [layers[name] for name in heads]
        self._memory = memory

    def forward(self, x: Floats) -> list[Floats]:
        """What each head gives, a row for each of `x`."""
        for layer, bias, out in zip(self._hidden, self._biases, self._memory.activations, strict=True):
            np.matmul(x, layer.weight.T, out=out.array)
            torch._add_relu_(out.tensor, bias)
            x = out.array
        return [x @ head.weight.T + head.bias for head in self._heads]

    def backward(self, grads: Sequence[Floats], x: Floats) -> None:
        """Write the gradients of all layers, given those of the heads and the inputs of the last forward.

        The activations are overwritten on the way.
        """
        memory = self._memory
        grad = memory.spare
        for number, (head, head_grad) in enumerate(zip(self._heads, grads, strict=True)):
            head.learn(head_grad, memory.activations[-1].array, memory.ones)
            _add_product(head_grad, head.weight, grad, first=number == 0)
        for index in range(len(self._hidden) - 1, -1, -1):
            layer, activation = self._hidden[index], memory.activations[index]
            _relu_backward(grad.tensor, activation.tensor, out=grad.tensor)
            layer.learn(grad.array, memory.activations[index - 1].array if index else x, memory.ones)
            if index:
                np.matmul(grad.array, layer.weight, out=activation.array)
                grad = activation

    def slope(self, rows: Any, first: int) -> Floats:
        """How the only output changes with the inputs from the column `first` on, in some rows.

        The activations are overwritten on the way when the rows are a slice.
        """
        (head,) = self._heads
        grad = torch.from_numpy(head.weight)
        for layer, activation in zip(self._hidden[::-1], self._memory.activations[::-1], strict=True):
            kept = activation.array[rows]
            masked = self._memory.spare.array[: len(kept)]
            _relu_backward(grad.expand(kept.shape), torch.from_numpy(kept), out=torch.from_numpy(masked))
            if layer is not self._hidden[0]:
                grad = torch.from_numpy(np.matmul(masked, layer.weight, out=kept))
        slope: Floats = masked @ self._hidden[0].weight[:, first:]
        return slope


def _add_product(left: Floats, right: Floats, out: Rows, first: bool) -> None:
    """Put the product in `out`, or add it to what is there after the `first`."""
    # A product of a column and a row is what BLAS is slowest at.
    column, row = torch.from_numpy(left), torch.from_numpy(right)
    if left.shape[1] == 1 and first:
        torch.mul(column, row, out=out.tensor)
    elif left.shape[1] == 1:
        out.tensor.addcmul_(column, row)
    elif first:
        np.matmul(left, right, out=out.array)
    else:
        out.array += left @ right


def _relu_backward(grad: Tensor, activation: Tensor, out: Tensor) -> None:
    """The gradient, cleared where the activation is zero: one pass in torch, two in numpy."""
    torch.ops.aten.threshold_backward.grad_input(grad, activation, 0, grad_input=out)
