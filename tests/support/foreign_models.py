"""What other people's scripts store in model files, with the names and shapes that they use."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


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


class Net(nn.Module):
    """Parts under their names, as an agent of somebody's script has them."""

    def __init__(self, **parts: nn.Module | Tensor) -> None:
        super().__init__()
        for name, part in parts.items():
            if isinstance(part, nn.Module):
                self.add_module(name, part)
            elif name == "actor_logstd":
                self.register_parameter(name, nn.Parameter(part))
            else:
                self.register_buffer(name, part)


def deep(before: int, *after: int, between: type[nn.Module] = nn.Tanh, norm: bool = False) -> nn.Sequential:
    """Linear layers of these sizes with a function, and perhaps a normalisation, between each two."""
    found: list[nn.Module] = []
    for size in after:
        if found:
            found += [nn.LayerNorm(before), between()] if norm else [between()]
        found.append(nn.Linear(before, size))
        before = size
    return nn.Sequential(*found)


def bounded(bound: tuple[int, ...], *heads: str) -> Net:
    hidden = {"fc1": nn.Linear(3, 256), "fc2": nn.Linear(256, 256)}
    scale = torch.full(bound, 2.0)
    outputs = {head: nn.Linear(256, 1) for head in heads}
    return Net(**hidden, **outputs, action_scale=scale, action_bias=torch.zeros_like(scale))


def judge() -> Net:
    return Net(fc1=nn.Linear(4, 256), fc2=nn.Linear(256, 256), fc3=nn.Linear(256, 1))


def squashed(net: Any, head: str, obs: Tensor) -> Tensor:
    features = torch.relu(net.fc2(torch.relu(net.fc1(obs))))
    return torch.tanh(getattr(net, head)(features)) * net.action_scale + net.action_bias


def greedy_by_atoms(net: Any, obs: Tensor) -> Tensor:
    return (net.network(obs).view(len(obs), 2, -1).softmax(2) @ net.atoms).argmax(1)


def gaussian_net() -> list[Net]:
    return [Net(critic=deep(3, 64, 64, 1), actor_mean=deep(3, 64, 64, 1), actor_logstd=torch.zeros(1, 1))]


def clipped_mean(net: Any, obs: Tensor) -> Tensor:
    return net.actor_mean(obs).clamp(-2.0, 2.0)


def atom_net() -> list[Net]:
    return [
        Net(network=deep(4, 120, 84, 2 * 21, between=nn.ReLU), atoms=torch.linspace(-100.0, 100.0, 21)),
    ]


THEIRS: dict[str, tuple[Callable[[], list[Net]], Callable[[Any, Tensor], Tensor]]] = {
    "ppo": (
        lambda: [Net(critic=deep(4, 64, 64, 1), actor=deep(4, 64, 64, 2))],
        lambda net, obs: net.actor(obs).argmax(1),
    ),
    "ppo_continuous_action": (gaussian_net, clipped_mean),
    "rpo_continuous_action": (gaussian_net, clipped_mean),
    "dqn": (
        lambda: [Net(network=deep(4, 120, 84, 2, between=nn.ReLU))],
        lambda net, obs: net.network(obs).argmax(1),
    ),
    "c51": (atom_net, greedy_by_atoms),
    "pqn": (
        lambda: [Net(network=deep(4, 120, 84, 2, between=nn.ReLU, norm=True))],
        lambda net, obs: net.network(obs).argmax(1),
    ),
    "ddpg_continuous_action": (
        lambda: [bounded((1, 1), "fc_mu"), judge()],
        lambda net, obs: squashed(net, "fc_mu", obs),
    ),
    "td3_continuous_action": (
        lambda: [bounded((1,), "fc_mu"), judge(), judge()],
        lambda net, obs: squashed(net, "fc_mu", obs),
    ),
    "sac_continuous_action": (
        lambda: [bounded((1,), "fc_mean", "fc_logstd")],
        lambda net, obs: squashed(net, "fc_mean", obs),
    ),
}
"""By algorithm: networks with the names and shapes of CleanRL's script of that name, for CartPole or
Pendulum, the policy first; and the best action that the policy knows."""


def their_parts(content: Any) -> list[OrderedDict[str, Tensor]]:
    """The weights in a model file, a part for each network, as those scripts look for them."""
    if isinstance(content, dict) and "model_weights" in content:
        return [content["model_weights"]]
    return list(content) if isinstance(content, tuple) else [content]
