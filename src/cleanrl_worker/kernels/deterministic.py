"""TD3 and DDPG: acting and learning without torch's autograd."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from torch import nn

from cleanrl_worker.agents.continuous import HIDDEN, Actor
from cleanrl_worker.kernels.critics import Critics
from cleanrl_worker.kernels.nets import Floats, Memory, Net, Scratch, view_layers
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.targets import Target


class DeterministicSettings(Protocol):
    """The arguments that the updates read."""

    learning_rate: float
    gamma: float
    batch_size: int
    num_envs: int


class DeterministicNetworks(Protocol):
    """The policy, its Q networks, their optimizers and their targets."""

    actor: Actor
    critics: nn.ModuleList
    actor_optimizer: Adam
    critic_optimizer: Adam
    actor_target: Target[Actor]
    critic_target: Target[nn.ModuleList]


class DeterministicKernel:
    """Does for a deterministic policy and its Q networks what `TorchLearner` of DDPG and of TD3 does."""

    def __init__(self, nets: DeterministicNetworks, settings: DeterministicSettings) -> None:
        batch, actor, optimizer = settings.batch_size, nets.actor, nets.actor_optimizer
        (layers,) = view_layers(actor, optimizer.weights, optimizer.gradient)
        (target_layers,) = view_layers(actor, nets.actor_target.weights)
        memory = Memory(batch, HIDDEN)
        self._actor = Net(layers, ["fc_mu"], memory, Scratch(batch, HIDDEN, actor.action_scale.numel()))
        self._target = Net(target_layers, ["fc_mu"], memory)
        self._acting = Net(layers, ["fc_mu"], Memory(settings.num_envs, HIDDEN))
        self._critics = Critics(nets.critics, nets.critic_optimizer, nets.critic_target, 1, batch)
        self._optimizer = optimizer
        self._scale = actor.action_scale.numpy()
        self._bias = actor.action_bias.numpy()
        self._whole = np.ones(batch, np.float32)
        self._settings = settings

    def act(self, obs: Floats) -> Floats:
        return self._scaled(self._acting, obs)[1]

    def learn_critics(self, sample: Any, noise: Floats | None = None) -> list[float]:
        """One step of the Q networks; `noise` blurs the target policy's actions."""
        actions = self._scaled(self._target, sample.next_obs)[1]
        if noise is not None:
            actions += noise * self._scale
            np.maximum(actions, self._bias - self._scale, out=actions)
            np.minimum(actions, self._bias + self._scale, out=actions)
        future = self._critics.foresee(sample, actions)
        goals = sample.rewards + (1.0 - sample.dones) * self._settings.gamma * future
        return self._critics.learn(sample, goals, self._settings.learning_rate)

    def learn_actor(self, obs: Floats) -> float:
        """One step of the policy up the first Q network; gives the loss."""
        squashed, actions = self._scaled(self._actor, obs)
        (values,) = self._critics.judge(obs, actions)
        loss = -float(values.mean())
        grad = self._critics.slopes(actions.shape[1], [self._whole])
        grad *= self._scale * (1.0 - squashed * squashed) / -len(obs)
        self._actor.backward([grad], obs)
        self._optimizer.descend(self._settings.learning_rate)
        return loss

    def _scaled(self, net: Net, obs: Floats) -> tuple[Floats, Floats]:
        """Actions between -1 and 1, and between their bounds."""
        squashed = np.tanh(net.forward(obs)[0])
        return squashed, squashed * self._scale + self._bias
