"""Networks in float64 numpy, and gradients from finite differences: a second source for losses in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Floats = NDArray[np.float64]
Weights = Mapping[str, Floats]
T = TypeVar("T", bound=tuple[Any, ...])

STEP = 1e-6
"""How far a weight is moved to each side."""
LARGEST, ANY = 4, 6
"""How many numbers of each parameter are moved: those with the largest gradients, and any."""


def relu(x: Floats) -> Floats:
    return np.maximum(x, 0.0)


def linear(weights: Weights, name: str, x: Floats) -> Floats:
    found: Floats = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return found


def layers(weights: Weights, names: Sequence[str], x: Floats, act: Callable[[Floats], Floats]) -> Floats:
    """Linear layers with `act` between them."""
    for name in names[:-1]:
        x = act(linear(weights, name, x))
    return linear(weights, names[-1], x)


def log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    found: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return found


def log_probs_and_entropies(logits: Floats, actions: Any, nvec: Sequence[int]) -> tuple[Floats, Floats]:
    """Those of choices made at once, of which each row of logits holds one after the other."""
    log_prob, entropy, start = np.zeros(len(logits)), np.zeros(len(logits)), 0
    for column, size in enumerate(nvec):
        part = log_softmax(logits[:, start : start + size])
        log_prob += part[np.arange(len(part)), actions[:, column]]
        entropy -= (np.exp(part) * part).sum(axis=1)
        start += size
    return log_prob, entropy


def clipped_ppo(logits: Floats, values: Floats, batch: Any, args: Any, nvec: Sequence[int]) -> float:
    """PPO's loss of steps in rows, from what a network gives for them."""
    log_probs, entropies = log_probs_and_entropies(logits, batch.actions, nvec)
    return clipped_loss(log_probs, entropies, values, batch, args)


def clipped_loss(log_probs: Floats, entropies: Floats, values: Floats, batch: Any, args: Any) -> float:
    """The clipped surrogate of PPO's paper with an entropy bonus, and the loss of clipped values."""
    before, gains, returns, old = (
        np.asarray(part).reshape(-1)
        for part in (batch.log_probs, batch.advantages, batch.returns, batch.values)
    )
    clip = args.clip_coef
    if args.norm_adv:
        spread = np.sqrt(((gains - gains.mean()) ** 2).sum() / (len(gains) - 1))
        gains = (gains - gains.mean()) / (spread + 1e-8)
    ratio = np.exp(log_probs - before)
    surrogate = [min(r * a, min(max(r, 1 - clip), 1 + clip) * a) for r, a in zip(ratio, gains, strict=True)]
    errors = (values - returns) ** 2
    if args.clip_vloss:
        near = old + np.minimum(np.maximum(values - old, -clip), clip)
        errors = np.where((near - returns) ** 2 > errors, (near - returns) ** 2, errors)
    loss = -np.mean(surrogate) - args.ent_coef * entropies.mean() + args.vf_coef * errors.mean() / 2
    return float(loss)


def quantile_huber(error: float, fraction: float, kappa: float) -> float:
    """What one quantile at a fraction loses by how far a sample of its target is above it."""
    huber = error**2 / 2 if abs(error) <= kappa else kappa * (abs(error) - kappa / 2)
    return abs(fraction - float(error < 0)) * huber / kappa


def weights_of(module: nn.Module) -> dict[str, Floats]:
    return {name: value.detach().double().numpy().copy() for name, value in module.named_parameters()}


def scattered(module: nn.Module, seed: int = 0) -> nn.Module:
    """The module in float64, with weights of its seed alone: biases too are not zero."""
    own = torch.Generator().manual_seed(seed)
    module.double()
    for parameter in module.parameters():
        scale = parameter.shape[-1] ** -0.5 if parameter.dim() > 1 else 0.3
        parameter.data = scale * torch.randn(parameter.shape, generator=own, dtype=torch.float64)
    return module


def tensors(batch: T) -> T:
    """A batch of arrays as tensors."""
    return type(batch)(*(torch.from_numpy(np.asarray(part)) for part in batch))


def assert_same(
    module: nn.Module, compute: Callable[[], tuple[Tensor, Tensor]], formula: Callable[[Weights], float]
) -> None:
    """A loss in torch and its gradients are those of a formula of the module's weights."""
    module.zero_grad()
    loss, _ = compute()
    loss.backward()  # type: ignore[no-untyped-call]
    weights = weights_of(module)
    assert loss.item() == pytest.approx(formula(weights), rel=1e-9, abs=1e-12)
    grads = {}
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        grads[name] = parameter.grad.numpy()
    assert_slopes(weights, grads, formula)


def assert_slopes(weights: Weights, grads: Weights, formula: Callable[[Weights], float]) -> None:
    """Gradients are those of a formula of the weights, each parameter's own.

    Of every parameter some numbers are moved one by one, then all together in a random direction.
    """
    own, value = np.random.default_rng(5), formula(weights)
    # What differences of a float64 lose to rounding.
    rounding = 1e-8 * max(1.0, abs(value))

    def slope(moved: Floats, direction: Floats) -> float:
        was, both = moved.copy(), []
        for side in (STEP, -STEP):
            moved[...] = was + side * direction
            both.append(formula(weights))
        moved[...] = was
        return (both[0] - both[1]) / (2 * STEP)

    assert grads.keys() == weights.keys()
    for name, grad in grads.items():
        assert np.abs(grad).max() > 0.0, f"nothing moves {name}"
        flat = grad.reshape(-1)
        picked = {*np.argsort(-np.abs(flat))[:LARGEST], *own.integers(0, flat.size, ANY)}
        for at in sorted(picked):
            one = np.zeros(flat.size)
            one[at] = 1.0
            expected = slope(weights[name], one.reshape(grad.shape))
            assert flat[at] == pytest.approx(expected, rel=1e-5, abs=rounding), (name, int(at))
        direction = own.standard_normal(grad.shape)
        expected = slope(weights[name], direction)
        assert float((grad * direction).sum()) == pytest.approx(expected, rel=1e-5, abs=rounding), name
