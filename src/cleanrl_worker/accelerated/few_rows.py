"""A few rows through a normalised stack, many times between two updates: what acting needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from cleanrl_worker.accelerated.layers import Floats


class Normed(Protocol):
    """Linear, `LayerNorm` and relu."""

    weight: Floats
    bias: Floats
    gain: Floats
    shift: Floats
    eps: float


class FewRows:
    """The outputs of a stack for a fixed number of rows, with the weights as they were when it was made.

    For so few numbers the count of numpy's calls is what takes time, and all that can be done to the
    weights beforehand saves some. A column of ones goes with the rows, so that products add the biases.
    """

    def __init__(self, hidden: Sequence[Normed], weight: Floats, bias: Floats, rows: int) -> None:
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

    def __init__(self, layer: Normed, rows: int) -> None:
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
