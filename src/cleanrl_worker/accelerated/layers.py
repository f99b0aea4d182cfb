"""Forward and backward passes of a stack of linear layers with one activation between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Floats = NDArray[np.float32]


def _tanh(x: Floats, bias: Tensor, bias_array: Floats) -> None:
    x += bias_array
    np.tanh(x, out=x)


def _tanh_backward(grad: Floats, activation: Floats) -> Floats:
    slope = activation * activation
    np.subtract(1.0, slope, out=slope)
    grad *= slope
    return grad


def _relu(x: Floats, bias: Tensor, bias_array: Floats) -> None:
    if len(x) == 1:
        x += bias_array
        np.maximum(x, 0.0, out=x)
    else:
        # Both in one pass; numpy takes two, which is faster for a single row only.
        torch._add_relu_(torch.from_numpy(x), bias)


def _relu_backward(grad: Floats, activation: Floats) -> Floats:
    grad *= activation > 0.0
    return grad


Activate = Callable[[Floats, Tensor, Floats], None]
_ACTIVATIONS: dict[type[nn.Module], tuple[Activate, Callable[[Floats, Floats], Floats]]] = {
    nn.Tanh: (_tanh, _tanh_backward),
    nn.ReLU: (_relu, _relu_backward),
}


def on_cpu(*modules: nn.Module) -> bool:
    """Whether numpy can reach the modules' memory."""
    return all(parameter.device.type == "cpu" for module in modules for parameter in module.parameters())


def is_plain_stack(module: nn.Module) -> bool:
    """Whether a module is linear layers with one known activation between them, and nothing else."""
    if not isinstance(module, nn.Sequential) or len(module) % 2 == 0:
        return False
    linear, activations = list(module)[::2], {type(layer) for layer in list(module)[1::2]}
    return all(isinstance(layer, nn.Linear) for layer in linear) and (
        len(activations) <= 1 and activations <= _ACTIVATIONS.keys()
    )


class Stack:
    """A `Sequential` of linear layers, computed in numpy on the module's own memory."""

    def __init__(self, module: nn.Sequential) -> None:
        layers: list[Any] = list(module)
        self._weights = [layer.weight.detach().numpy() for layer in layers[::2]]
        self._biases = [(layer.bias.detach(), layer.bias.detach().numpy()) for layer in layers[::2]]
        # A target network is never learned and has none.
        learned = [layer for layer in layers[::2] if layer.weight.grad is not None]
        self._weight_grads = [layer.weight.grad.numpy() for layer in learned]
        self._bias_grads = [layer.bias.grad.numpy() for layer in learned]
        kind = type(layers[1]) if len(layers) > 1 else nn.Tanh
        self._activate, self._activate_backward = _ACTIVATIONS[kind]
        self._inputs: list[Floats] = []
        self._ones = np.ones(0, np.float32)

    def forward(self, x: Floats) -> Floats:
        """The outputs; what `backward` needs is kept."""
        self._inputs = [x]
        last = len(self._weights) - 1
        for index, (weight, bias) in enumerate(zip(self._weights, self._biases, strict=True)):
            x = x @ weight.T
            if index < last:
                self._activate(x, *bias)
                self._inputs.append(x)
            else:
                x += bias[1]
        return x

    def backward(self, grad: Floats) -> None:
        """Write the gradients of all layers, given that of the outputs of the last `forward`."""
        if len(self._ones) != len(grad):
            self._ones = np.ones(len(grad), np.float32)
        for index in range(len(self._weights) - 1, -1, -1):
            np.matmul(grad.T, self._inputs[index], out=self._weight_grads[index])
            # A product with ones sums faster than `sum`.
            np.matmul(self._ones, grad, out=self._bias_grads[index])
            if index > 0:
                grad = self._activate_backward(grad @ self._weights[index], self._inputs[index])
        self._first_grad = grad

    def pass_on(self) -> Floats:
        """The gradient of the inputs, after `backward`."""
        grad: Floats = self._first_grad @ self._weights[0]
        return grad
