"""Forward and backward passes of a stack of linear layers, normalised before each activation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from cleanrl_worker.accelerated.layers import Floats


class FewRows:
    """The outputs of a stack for a fixed number of rows, with the weights as they were when it was made.

    For so few numbers the count of numpy's calls is what takes time, and all that can be done to the
    weights beforehand saves some. A column of ones goes with the rows, so that products add the biases.
    """

    def __init__(self, hidden: Sequence[NormedLayer], weight: Floats, bias: Floats, rows: int) -> None:
        self._inputs = np.ones((rows, hidden[0].weight.shape[1] + 1), np.float32)
        self._hidden = [_Ready(layer, rows) for layer in hidden]
        self._last = np.concatenate([weight.T, bias[None]])
        self._zeros = [np.zeros_like(layer.gain) for layer in self._hidden]
        self._outputs = [np.empty_like(layer.gain) for layer in self._hidden]
        self._norms = np.empty((rows, 1), np.float32)

    def forward(self, x: Floats) -> Floats:
        """The outputs, within rounding of those of the stack."""
        self._inputs[:, :-1] = x
        x, norms = self._inputs, self._norms
        for layer, output, zeros in zip(self._hidden, self._outputs, self._zeros, strict=True):
            np.dot(x, layer.weight, out=output)
            np.vecdot(output, output, out=norms[:, 0])
            np.sqrt(norms, out=norms)
            np.divide(output, norms, out=output)
            np.multiply(output, layer.gain, out=output)
            np.add(output, layer.shift, out=output)
            x = np.maximum(output, zeros, out=output)
        outputs: Floats = np.dot(x, self._last)
        return outputs


class _Ready:
    """A layer's numbers, so that its norm is to divide each row by its length.

    The mean of the linear outputs is that of the weights over the outputs, so it can be taken out of them.
    The weights are cut by the root of the width, and one more output is always the root of eps: the length
    of a row is then its standard deviation. After gain and shift that output is 1, for biases to come.
    """

    def __init__(self, layer: NormedLayer, rows: int) -> None:
        width, size = layer.weight.shape
        root = math.sqrt(width)
        self.weight = np.zeros((size + 1, width + 1), np.float32)
        self.weight[:-1, :-1] = ((layer.weight - layer.weight.mean(axis=0)) / root).T
        self.weight[-1, :-1] = (layer.bias - layer.bias.mean()) / root
        self.weight[-1, -1] = math.sqrt(layer.eps)
        # For each row: arrays of one shape multiply in half the time that a row and many take.
        self.gain = np.zeros((rows, width + 1), np.float32)
        self.gain[:, :-1] = layer.gain * root
        self.shift = np.ones((rows, width + 1), np.float32)
        self.shift[:, :-1] = layer.shift


_norm_backward: Any = torch.ops.aten.native_layer_norm_backward.default
_relu_backward: Any = torch.ops.aten.threshold_backward.grad_input
_FEW = 32
"""Up to so many rows are looked at by `FewRows`."""


class NormedLayer:
    """Linear, `LayerNorm` and relu, computed on the modules' own memory.

    The norm itself is torch's, without its recording: a dozen passes of numpy take twice as long.
    """

    def __init__(self, linear: Any, norm: Any) -> None:
        self.weight, self.bias = linear.weight.detach().numpy(), linear.bias.detach().numpy()
        self.weight_grad, self.bias_grad = linear.weight.grad.numpy(), linear.bias.grad.numpy()
        self._shape, self.eps = norm.normalized_shape, norm.eps
        self._gain, self._shift = norm.weight.detach(), norm.bias.detach()
        self.gain, self.shift = self._gain.numpy(), self._shift.numpy()
        self._gain_grad, self._shift_grad = norm.weight.grad, norm.bias.grad
        self._kept: tuple[Any, ...] = ()

    def forward(self, x: Floats) -> Floats:
        """The outputs; what `backward` needs is kept."""
        linear: Floats = x @ self.weight.T
        linear += self.bias
        tensor = torch.from_numpy(linear)
        output, mean, scale = torch.native_layer_norm(tensor, self._shape, self._gain, self._shift, self.eps)
        output.relu_()
        self._kept = (x, tensor, mean, scale, output)
        return np.asarray(output)

    def backward(self, grad: Floats, ones: Floats) -> Floats:
        """Write the gradients of the layer, given that of its outputs; gives that of the linear outputs."""
        x, tensor, mean, scale, output = self._kept
        outer = torch.from_numpy(grad)
        _relu_backward(outer, output, 0, grad_input=outer)
        inner, gain_grad, shift_grad = _norm_backward(
            outer, tensor, self._shape, mean, scale, self._gain, self._shift, (True,) * 3
        )
        self._gain_grad.copy_(gain_grad)
        self._shift_grad.copy_(shift_grad)
        inner_grad: Floats = inner.numpy()
        np.matmul(inner_grad.T, x, out=self.weight_grad)
        np.matmul(ones, inner_grad, out=self.bias_grad)
        return inner_grad


class NormedStack:
    """A `Sequential` of normalised layers and a last linear one, as `layers.Stack` is for plain ones."""

    def __init__(self, module: nn.Sequential) -> None:
        layers: list[Any] = list(module)
        self._hidden = [NormedLayer(*layers[at : at + 2]) for at in range(0, len(layers) - 1, 3)]
        last = layers[-1]
        self._weight, self._bias = last.weight.detach().numpy(), last.bias.detach().numpy()
        self._weight_grad, self._bias_grad = last.weight.grad.numpy(), last.bias.grad.numpy()
        self._features = np.empty((0, 0), np.float32)
        self._ones = np.ones(0, np.float32)
        self._few: FewRows | None = None
        self._few_count = 0

    def weights_changed(self) -> None:
        """To be called after each update."""
        self._few = None

    def look(self, x: Floats) -> Floats:
        """The outputs; sooner than by `forward` for a few rows while the weights stay."""
        if len(x) > _FEW:
            return self.forward(x)
        if self._few is None or len(x) != self._few_count:
            self._few = FewRows(self._hidden, self._weight, self._bias, len(x))
            self._few_count = len(x)
        return self._few.forward(x)

    def forward(self, x: Floats) -> Floats:
        """The outputs; what `backward` needs is kept."""
        for layer in self._hidden:
            x = layer.forward(x)
        self._features = x
        outputs: Floats = x @ self._weight.T
        outputs += self._bias
        return outputs

    def backward(self, grad: Floats) -> None:
        """Write the gradients of all layers, given that of the outputs of the last `forward`."""
        if len(self._ones) != len(grad):
            self._ones = np.ones(len(grad), np.float32)
        ones = self._ones
        np.matmul(grad.T, self._features, out=self._weight_grad)
        np.matmul(ones, grad, out=self._bias_grad)
        weight = self._weight
        for layer in reversed(self._hidden):
            grad = layer.backward(grad @ weight, ones)
            weight = layer.weight


def is_normed_stack(module: nn.Module) -> bool:
    """Whether a module is linear, `LayerNorm` and relu in turn, and a last linear layer."""
    if not isinstance(module, nn.Sequential) or len(module) % 3 != 1:
        return False
    kinds = [type(layer) for layer in module]
    return kinds == [nn.Linear, nn.LayerNorm, nn.ReLU] * (len(kinds) // 3) + [nn.Linear]
