"""Several equal networks side by side: linear layers with relu between, then one head or more."""

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
    """One linear layer of all the networks: weights (net, out, in), biases (net, 1, out), and gradients."""

    weight: Floats
    bias: Floats
    weight_grad: Floats
    bias_grad: Floats

    def forward(self, x: Floats, out: Floats) -> None:
        np.matmul(x, self.weight.transpose(0, 2, 1), out=out)
        torch.from_numpy(out).add_(torch.from_numpy(self.bias))

    def learn(self, grad: Floats, x: Floats, ones: Floats) -> None:
        """Write the gradients, given that of the outputs; a product with ones sums faster than `sum`."""
        np.matmul(grad.transpose(0, 2, 1), x, out=self.weight_grad)
        np.matmul(ones, grad, out=self.bias_grad)


def view_layers(net: nn.Module, weights: Tensor, gradient: Tensor | None = None) -> dict[str, Layer]:
    """The layers of networks like `net` that lie one after the other in flat memory, by name."""
    if gradient is None:
        # Nobody learns here: this memory is never touched.
        gradient = torch.empty_like(weights)
    count = weights.numel() // sum(parameter.numel() for parameter in net.parameters())
    flat, flat_grad = weights.view(count, -1).numpy(), gradient.view(count, -1).numpy()
    layers: dict[str, Layer] = {}
    start = 0
    for name, layer in net.named_children():
        assert isinstance(layer, nn.Linear)
        size, outputs = layer.weight.numel(), layer.out_features
        middle, end = start + size, start + size + outputs
        parts = [
            part
            for rows in (flat, flat_grad)
            for part in (
                rows[:, start:middle].reshape(count, outputs, -1),
                rows[:, middle:end].reshape(count, 1, outputs),
            )
        ]
        layers[name] = Layer(*parts)
        start = end
    return layers


class Nets:
    """Forward and backward passes for one size of batch, in memory that is allocated once."""

    def __init__(self, layers: dict[str, Layer], heads: Sequence[str], batch: int) -> None:
        self._hidden = [layer for name, layer in layers.items() if name not in heads]
        self._heads = [layers[name] for name in heads]
        self._activations = [_empty(layer, batch) for layer in self._hidden]
        self._zeros = np.zeros_like(self._activations[0])
        self._grads = [_empty(layer, batch) for layer in self._hidden]
        self._outputs = [_empty(layer, batch) for layer in self._heads]
        self._ones = np.ones((1, batch), dtype=np.float32)

    def forward(self, x: Floats) -> list[Floats]:
        """What each head gives, as (net, row, output); valid until the next call."""
        for layer, out in zip(self._hidden, self._activations, strict=True):
            layer.forward(x, out)
            # An array of zeros takes a fourth of the time that the number 0 takes.
            x = np.maximum(out, self._zeros, out=out)
        for layer, out in zip(self._heads, self._outputs, strict=True):
            layer.forward(x, out)
        return self._outputs

    def backward(self, grads: Sequence[Floats], x: Floats) -> None:
        """Write the gradients of all layers, given those of the heads and the inputs of the last forward."""
        for index, (head, grad) in enumerate(zip(self._heads, grads, strict=True)):
            head.learn(grad, self._activations[-1], self._ones)
            if index == 0:
                _product(grad, head.weight, self._grads[-1])
            else:
                self._grads[-1] += grad @ head.weight
        for index in range(len(self._hidden) - 1, -1, -1):
            layer, grad = self._hidden[index], self._grads[index]
            _relu_backward(grad, self._activations[index])
            layer.learn(grad, self._activations[index - 1] if index else x, self._ones)
            if index:
                np.matmul(grad, layer.weight, out=self._grads[index - 1])

    def slope(self, net: int, rows: Any, first: int) -> Floats:
        """How one network's only output changes with its inputs from the column `first` on, in some rows."""
        (head,) = self._heads
        activations = [activation[net, rows] for activation in self._activations]
        grad: Floats = np.repeat(head.weight[net], len(activations[-1]), axis=0)
        for layer, activation in zip(self._hidden[:0:-1], activations[:0:-1], strict=True):
            _relu_backward(grad, activation)
            grad = grad @ layer.weight[net]
        _relu_backward(grad, activations[0])
        slope: Floats = grad @ self._hidden[0].weight[net, :, first:]
        return slope


def _empty(layer: Layer, batch: int) -> Floats:
    count, outputs, _ = layer.weight.shape
    return np.empty((count, batch, outputs), dtype=np.float32)


def _product(left: Floats, right: Floats, out: Floats) -> None:
    if left.shape[2] == 1:
        # A product of a column and a row is what BLAS is slowest at.
        torch.mul(torch.from_numpy(left), torch.from_numpy(right), out=torch.from_numpy(out))
    else:
        np.matmul(left, right, out=out)


def _relu_backward(grad: Floats, activation: Floats) -> None:
    """Clear the gradient where the activation is zero: one pass in torch, two in numpy."""
    tensor = torch.from_numpy(grad)
    torch.ops.aten.threshold_backward.grad_input(tensor, torch.from_numpy(activation), 0, grad_input=tensor)
