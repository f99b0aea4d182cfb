"""How fast an update of `ppo_atari` is on one core, against the same network in torch's default layout.

nice -n 10 python benchmarks/atari_update.py [--rounds 10]

One minibatch of 256 observations, from bytes to the step of Adam: by the code of `ppo_atari`, and with the
same layers and loss in torch's default memory layout. Then the networks of the other image algorithms,
forwards and backwards, in both layouts. Processor time, the best of all rounds, in which all take turns.
"""

from __future__ import annotations

import argparse
import copy
import functools
import sys
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch
from tables import Row, Table, write_tables
from torch import Tensor, nn

from cleanrl_worker.agents.impala import ImpalaAgent, ImpalaCNN
from cleanrl_worker.agents.nature import NatureAgent, NatureCNN, NormedNatureQNetwork
from cleanrl_worker.agents.noisy import RainbowNetwork
from cleanrl_worker.agents.q_networks import DistributionalQNetwork, NatureQNetwork
from cleanrl_worker.algorithms.ppo_atari import Args, Batch, ppo_loss
from cleanrl_worker.algorithms.sac_atari import QNetwork as SacQNetwork
from cleanrl_worker.kit.accelerate import Gradient, take
from cleanrl_worker.kit.torch_backend import Adam, keep_freed_memory

SHAPE, ACTIONS = (84, 84, 4), 4
ROLLOUT, MINIBATCH = 1024, 256
PRODUCT = 1024
LEAST_SPEEDUP, LEAST_SHARE = 1.5, 0.6


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, int, int], int]] = {
    "dqn_atari": (lambda: NatureQNetwork(SHAPE, ACTIONS), SHAPE, 32),
    "c51_atari": (lambda: DistributionalQNetwork(SHAPE, ACTIONS, 51, -10.0, 10.0), SHAPE, 32),
    "rainbow_atari": (lambda: RainbowNetwork(SHAPE, ACTIONS, 51, -10.0, 10.0), SHAPE, 32),
    "sac_atari": (lambda: SacQNetwork(SHAPE, ACTIONS), SHAPE, 64),
    "pqn_atari_envpool": (lambda: NormedNatureQNetwork(SHAPE, ACTIONS), SHAPE, 256),
    "ppo_procgen, ppg_procgen": (lambda: ImpalaAgent((64, 64, 3), 15), (64, 64, 3), 256),
    "qdagger_dqn_atari_impalacnn": (lambda: ImpalaAgent(SHAPE, ACTIONS), SHAPE, 32),
}
"""Networks of algorithms: how one is made, the pictures that it sees, and how many at a time."""


def in_default_layout(network: nn.Module) -> nn.Module:
    """The network with channels first in memory, as torch has it when nobody says otherwise."""
    found = copy.deepcopy(network).to(memory_format=torch.contiguous_format)
    for part in found.modules():
        if isinstance(part, NatureCNN | ImpalaCNN):
            part.forward = functools.partial(as_torch_has_it, part)  # type: ignore[method-assign]
    return found


def as_torch_has_it(network: nn.Sequential, pictures: Tensor) -> Tensor:
    """What the layers give for pictures with the channels first, one after the other."""
    found: Any = pictures.float() / 255.0
    for layer in network:
        found = nn.functional.relu(found) if isinstance(layer, nn.ReLU) else layer(found)
    return found


def flops() -> float:
    """Multiplications and additions of an update, forwards and backwards; none for the gradient of pixels."""
    (height, width, channels), forward, first = SHAPE, 0.0, 0.0
    for features, kernel, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
        height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
        layer = 2.0 * height * width * features * kernel * kernel * channels
        first = first or layer
        forward += layer
        channels = features
    forward += 2.0 * height * width * channels * 512 + 2.0 * 512 * (ACTIONS + 1)
    return MINIBATCH * (3.0 * forward - first)


def make_batch(channels_first: bool) -> Batch:
    """A rollout of random numbers, the same in both layouts."""
    random = np.random.default_rng(0)
    obs = random.integers(0, 256, (ROLLOUT, *SHAPE), np.uint8)
    floats = random.standard_normal((4, ROLLOUT)).astype(np.float32)
    actions = random.integers(0, ACTIONS, (ROLLOUT, 1))
    pictures = np.ascontiguousarray(obs.transpose(0, 3, 1, 2)) if channels_first else obs
    return Batch(pictures, actions, -np.abs(floats[0]), *floats[1:])


def updater(agent: NatureAgent, channels_first: bool) -> Callable[[], None]:
    """One update with a minibatch of a rollout."""
    optimizer, args, batch = Adam(agent, eps=1e-5), Args(), make_batch(channels_first)
    gradient = Gradient(functools.partial(ppo_loss, agent, args), agent, optimizer)
    rows = np.random.default_rng(1).permutation(ROLLOUT)[:MINIBATCH]

    def update() -> None:
        gradient(take(batch, rows))
        optimizer.step(args.learning_rate, args.max_grad_norm)

    return update


def passes(network: nn.Module, pictures: Tensor) -> Callable[[], None]:
    """Forwards, and backwards to all weights."""
    weights = list(network.parameters())

    def act() -> None:
        found = network(pictures)
        outputs = found if isinstance(found, tuple) else (found,)
        loss = torch.stack([output.square().mean() for output in outputs]).sum()
        torch.autograd.grad(loss, weights, allow_unused=True)

    return act


def compare_networks(rounds: int) -> list[list[str]]:
    """A row for each of the other networks."""
    lines = []
    for name, (make, shape, rows) in NETWORKS.items():
        ours = make()
        pictures = torch.randint(0, 256, (rows, *shape), dtype=torch.uint8)
        first = pictures.permute(0, 3, 1, 2).contiguous()
        seconds = best_times([passes(ours, pictures), passes(in_default_layout(ours), first)], rounds)
        took, default = (f"{one * 1e3:.1f} ms" for one in seconds)
        lines.append([name, str(rows), default, took, f"{seconds[1] / seconds[0]:.2f}"])
    return lines


def best_times(actions: list[Callable[[], Any]], rounds: int) -> list[float]:
    """Seconds of processor time of each, the best of all rounds, in which they take turns."""
    best = [float("inf")] * len(actions)
    for _ in range(rounds + 1):
        for index, action in enumerate(actions):
            start = time.process_time()
            action()
            best[index] = min(best[index], time.process_time() - start)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    torch.manual_seed(0)
    keep_freed_memory()
    left, right = torch.randn(2, PRODUCT, PRODUCT)
    ours = NatureAgent(SHAPE, ACTIONS)
    default = cast(NatureAgent, in_default_layout(ours))
    obs = torch.from_numpy(make_batch(False).obs[:MINIBATCH])
    with torch.no_grad():
        differs = float((ours.value(obs) - default(obs.permute(0, 3, 1, 2))[1]).abs().max())
    seconds = best_times([updater(ours, False), updater(default, True), lambda: left @ right], rounds)
    rate = flops() / seconds[0] / 1e9
    peak = 2.0 * PRODUCT**3 / seconds[2] / 1e9
    speedup, share = seconds[1] / seconds[0], rate / peak
    rows = [
        Row("update in the default layout", f"{seconds[1] * 1e3:.0f} ms", "–", True),
        Row("update of `ppo_atari`", f"{seconds[0] * 1e3:.0f} ms", "–", True),
        Row("times as fast", f"{speedup:.2f}", f"at least {LEAST_SPEEDUP}", speedup >= LEAST_SPEEDUP),
        Row(f"product of {PRODUCT} × {PRODUCT} numbers", f"{peak:.1f} GFLOP/s", "–", True),
        Row("update of `ppo_atari`, counted in the same way", f"{rate:.1f} GFLOP/s", "–", True),
        Row("share", f"{share:.0%}", f"at least {LEAST_SHARE:.0%}", share >= LEAST_SHARE),
        Row("greatest difference of a value", f"{differs:.1e}", "1e-5", differs < 1e-5),
    ]
    write_tables(
        "atari_update",
        "An update of Atari's PPO",
        f"One minibatch of {MINIBATCH} observations of 84 × 84 × 4 bytes on one core, from bytes to the step "
        f"of Adam: {flops() / 1e9:.1f} GFLOP forwards and backwards in the layers, all else is uncounted. "
        "Both layouts keep the memory that they free. Processor time, the best of all rounds, in which both "
        "layouts and the product take turns.",
        [
            Table(["what", "measured", "limit", "held"], [row.cells() for row in rows]),
            Table(
                ["network of", "pictures", "default layout", "ours", "times as fast"],
                compare_networks(rounds),
                "The networks of the other image algorithms, forwards and backwards",
            ),
        ],
    )
    return 0 if all(row.held for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
