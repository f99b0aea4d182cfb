"""What other people's scripts store in model files, with the names and shapes that they use."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def layers(net: str, *sizes: int) -> dict[str, Tensor]:
    """Linear layers of these sizes under the names that a Sequential gives them."""
    found: dict[str, Tensor] = {}
    for number, (before, after) in enumerate(itertools.pairwise(sizes)):
        found |= linear(f"{net}.{number * 2}", before, after)
    return found


def linear(name: str, before: int, after: int) -> dict[str, Tensor]:
    return {f"{name}.weight": 0.3 * torch.randn(after, before), f"{name}.bias": 0.3 * torch.randn(after)}


def actor(*heads: str, row: bool = False) -> dict[str, Tensor]:
    """A policy for Pendulum; `row`: its bounds are stored as one row of a table."""
    scale = torch.full((1, 1) if row else (1,), 2.0)
    outputs = [item for head in heads for item in linear(head, 256, 1).items()]
    hidden = linear("fc1", 3, 256) | linear("fc2", 256, 256)
    return hidden | dict(outputs) | {"action_scale": scale, "action_bias": torch.zeros_like(scale)}


def critic() -> dict[str, Tensor]:
    return linear("fc1", 4, 256) | linear("fc2", 256, 256) | linear("fc3", 256, 1)


def c51_file(*, atoms: bool) -> dict[str, Any]:
    weights = layers("network", 4, 120, 84, 2 * 11)
    if atoms:
        weights["atoms"] = torch.linspace(-5.0, 5.0, 11)
    args = {"n_atoms": 11, "v_min": -5, "v_max": 5, "exp_name": "c51", "cuda": True, "end_e": 0.01}
    return {"model_weights": weights, "args": args}


def pqn_file() -> dict[str, Tensor]:
    norms = {f"network.{at}.{kind}": torch.ones(size) for at, size in ((1, 120), (4, 84)) for kind in NORM}
    return linear("network.0", 4, 120) | linear("network.3", 120, 84) | linear("network.6", 84, 2) | norms


NORM = ("weight", "bias")
GAUSSIAN = {"actor_logstd": torch.zeros(1, 1)}

FOREIGN: dict[str, tuple[str, Callable[[], Any]]] = {
    "ppo": ("ppo", lambda: layers("critic", 4, 64, 64, 1) | layers("actor", 4, 64, 64, 2)),
    "ppo shared": (
        "ppo",
        lambda: layers("trunk", 4, 64, 64) | layers("critic", 64, 1) | layers("actor", 64, 2),
    ),
    "gaussian": (
        "ppo_continuous_action",
        lambda: layers("critic", 3, 64, 64, 1) | layers("actor_mean", 3, 64, 64, 1) | GAUSSIAN,
    ),
    "dqn": ("dqn", lambda: layers("network", 4, 120, 84, 2)),
    "c51": ("c51", lambda: c51_file(atoms=True)),
    "c51 without atoms": ("c51", lambda: c51_file(atoms=False)),
    "pqn": ("pqn", pqn_file),
    "ddpg": ("ddpg_continuous_action", lambda: (actor("fc_mu"), critic())),
    "td3": ("td3_continuous_action", lambda: (actor("fc_mu", row=True), critic(), critic())),
    "sac": ("sac_continuous_action", lambda: actor("fc_mean", "fc_logstd")),
    "sac with critics": (
        "sac_continuous_action",
        lambda: (actor("fc_mean", "fc_logstd", row=True), critic(), critic()),
    ),
}
