"""The equations of the transformer that `ppo_trxl` trains, in float64 numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from support.formulas import Floats, Weights


def step_of(
    weights: Weights, obs: Floats, remembered: Sequence[Floats], layers: int, heads: int
) -> tuple[Floats, float, Floats]:
    """Logits, value and what is to be remembered of one observation, given that of the steps before it."""

    def linear(name: str, x: Any) -> Any:
        return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0.0)

    newest = np.maximum(linear("encoder.0", obs), 0.0)
    items, dim = [], len(newest)
    for number in range(layers):
        items.append(newest)
        layer = f"layers.{number}"
        seen = np.stack([*(item[number] for item in remembered), newest])
        ages = np.arange(len(seen))[::-1, None] / 10_000 ** (np.arange(0, dim, 2) / dim)
        aged = seen + np.concatenate((np.sin(ages), np.cos(ages)), axis=1)
        query = linear(f"{layer}.queries", _layer_norm(newest, weights, f"{layer}.norm_query"))
        keyed = _layer_norm(aged, weights, f"{layer}.norm_keys")
        keys, values = linear(f"{layer}.keys", keyed), linear(f"{layer}.values", keyed)
        found = []
        for part in np.split(np.arange(dim), heads):
            scores = np.exp(keys[:, part] @ query[part] / np.sqrt(dim / heads))
            found.append(scores / scores.sum() @ values[:, part])
        newest = newest + linear(f"{layer}.outputs", np.concatenate(found))
        hidden = linear(f"{layer}.hidden", _layer_norm(newest, weights, f"{layer}.norm_hidden"))
        newest = newest + np.maximum(hidden, 0.0)
    features = _layer_norm(newest, weights, "norm")
    return linear("actor", features), float(linear("critic", features)[0]), np.stack(items)


def _layer_norm(x: Floats, weights: Weights, name: str) -> Floats:
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    found: Floats = scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return found
