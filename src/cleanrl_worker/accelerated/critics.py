"""Q networks for continuous actions, one or two: learning, and judging a policy's actions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import nn

from cleanrl_worker.accelerated.nets import Floats, Memory, Net, Scratch, view_layers
from cleanrl_worker.agents.continuous import HIDDEN, QNetwork
from cleanrl_worker.kit.torch_backend import Adam, Target


class Critics:
    """The Q networks of an algorithm and their targets, on the memory of their optimizer."""

    def __init__(
        self, nets: nn.ModuleList, optimizer: Adam, target: Target[nn.ModuleList], judges: int, batch: int
    ) -> None:
        """The first `judges` networks are those that a policy learns from."""
        (like, *_) = nets
        assert isinstance(like, QNetwork)
        # What two judges think of an action is needed at the same time; all else takes its turn.
        memories, scratch = [Memory(batch, HIDDEN) for _ in range(judges)], Scratch(batch, HIDDEN, outputs=1)
        layers = view_layers(like, optimizer.weights, optimizer.gradient)
        self._nets = [Net(parts, ["fc3"], memories[0], scratch) for parts in layers]
        self._judges = [
            Net(parts, ["fc3"], memory, scratch) for parts, memory in zip(layers, memories, strict=False)
        ]
        self._targets = [Net(parts, ["fc3"], memories[0]) for parts in view_layers(like, target.weights)]
        self._inputs = np.empty((batch, like.fc1.in_features), np.float32)

    def target_values(self, next_obs: Floats, next_actions: Floats) -> Floats:
        """The least of the target networks' values of what comes next."""
        inputs = self._join(next_obs, next_actions)
        least: Floats = np.minimum.reduce([target.forward(inputs)[0][:, 0] for target in self._targets])
        return least

    def gradient(self, obs: Floats, actions: Floats, targets: Floats) -> Floats:
        """Leave the gradients of all networks in memory; gives the mean values, then the losses."""
        inputs, size = self._join(obs, actions), len(targets)
        means, losses = [], []
        for net in self._nets:
            values = net.forward(inputs)[0][:, 0]
            error = values - targets
            means.append(float(np.add.reduce(values)) / size)
            losses.append(float(np.dot(error, error)) / size)
            error *= np.float32(2.0 / size)
            net.backward([error[:, None]], inputs)
        return np.array(means + losses)

    def judge(self, obs: Floats, actions: Floats) -> list[Floats]:
        """The values that each judge gives."""
        inputs = self._join(obs, actions)
        return [judge.forward(inputs)[0][:, 0] for judge in self._judges]

    def slopes(self, action_size: int, shares: Sequence[Floats]) -> Floats:
        """How the values change with the actions just judged; each judge has its share in each row."""
        first = self._inputs.shape[1] - action_size
        slopes = [judge.slope(share, first) for judge, share in zip(self._judges, shares, strict=True)]
        total: Floats = np.add.reduce(slopes)
        return total

    def _join(self, obs: Floats, actions: Floats) -> Floats:
        return np.concatenate([obs, actions], axis=1, out=self._inputs)
