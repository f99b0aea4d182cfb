"""The Nature network in float64 without torch, and slopes of a loss by differences: a second source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from torch import nn

Weights = Mapping[str, NDArray[np.float64]]
STRIDES = {0: 4, 2: 2, 4: 1}
"""Of the convolutions, by their place in the network."""


def weights_of(module: nn.Module) -> dict[str, NDArray[np.float64]]:
    return {name: value.detach().numpy().astype(np.float64) for name, value in module.named_parameters()}


def convolved(weights: Weights, pictures: NDArray[np.uint8]) -> NDArray[np.float64]:
    """What the three convolutions find in pictures (row, height, width, frames), flat, by channels."""
    seen = pictures.transpose(0, 3, 1, 2) / 255.0
    for place, stride in STRIDES.items():
        filters = weights[f"network.{place}.weight"]
        windows = sliding_window_view(seen, filters.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
        found = np.einsum("nchwij,fcij->nfhw", windows, filters, optimize=True)
        seen = np.maximum(found + weights[f"network.{place}.bias"][:, None, None], 0.0)
    return seen.reshape(len(seen), -1)


def features(weights: Weights, pictures: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The outputs of the layer behind them."""
    return np.maximum(linear(weights, "network.7", convolved(weights, pictures)), 0.0)


def linear(weights: Weights, name: str, seen: NDArray[np.float64]) -> NDArray[np.float64]:
    out: NDArray[np.float64] = seen @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return out


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    out: NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return out


def spread(
    chances: NDArray[np.float64], rewards: Any, discounts: Any, atoms: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Distributions over the atoms of reward and discounted return, atom by atom as in the paper."""
    found, gap = np.zeros_like(chances), atoms[1] - atoms[0]
    for row in range(len(chances)):
        for chance, atom in zip(chances[row], atoms, strict=True):
            moved = min(max(float(rewards[row]) + float(discounts[row]) * atom, atoms[0]), atoms[-1])
            # Each atom gets a share as near as it is to where the return moved.
            found[row] += chance * np.clip(1.0 - np.abs(moved - atoms) / gap, 0.0, 1.0)
    return found


def assert_slopes(
    module: nn.Module, loss: Callable[[Weights], float], each: int = 6, step: float = 1e-6
) -> None:
    """The gradient that torch left in a module is how a loss in float64 changes with single weights."""
    weights, dice = weights_of(module), np.random.default_rng(0)
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None
        gradient: Any = parameter.grad.numpy()
        flat = np.abs(gradient).reshape(-1)
        assert flat.max() > 0.0, f"{name} is not learned"
        # The steepest and some others.
        places = [int(flat.argmax()), *dice.integers(0, flat.size, each - 1).tolist()]
        for place in places:
            at = np.unravel_index(place, gradient.shape)
            around = []
            for sign in (1.0, -1.0):
                moved = {**weights, name: weights[name].copy()}
                moved[name][at] += sign * step
                around.append(loss(moved))
            slope = (around[0] - around[1]) / (2.0 * step)
            allowed = 2e-3 * abs(slope) + 2e-5 * float(flat.max())
            assert abs(gradient[at] - slope) <= allowed, (name, at, gradient[at], slope)


def gradient_of(module: nn.Module, found: tuple[torch.Tensor, torch.Tensor]) -> NDArray[Any]:
    """Leave the gradient of a loss in its module; gives what it logs."""
    module.zero_grad()
    torch.autograd.backward(found[0])
    return np.asarray(found[1].detach())
