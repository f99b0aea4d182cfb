"""TD3 and DDPG: acting and learning without torch's autograd."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from torch import nn

from cleanrl_worker.agents.continuous import Actor
from cleanrl_worker.kernels.critics import Critics
from cleanrl_worker.kernels.nets import Floats, Nets, view_layers
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.targets import Target


class DeterministicSettings(Protocol):
    """The arguments that the updates read."""

    learning_rate: float
    gamma: float
    batch_size: int
    num_envs: int


class DeterministicKernel:
    """Does for a deterministic policy and its Q networks what `TorchLearner` of DDPG and of TD3 does."""

    def __init__(
        self,
        actor: Actor,
        critics: nn.ModuleList,
        actor_optimizer: Adam,
        critic_optimizer: Adam,
        actor_target: Target[Actor],
        critic_target: Target[nn.ModuleList],
        settings: DeterministicSettings,
    ) -> None:
        batch = settings.batch_size
        layers = view_layers(actor, actor_optimizer.weights, actor_optimizer.gradient)
        self._actor = Nets(layers, ["fc_mu"], batch)
        self._acting = Nets(layers, ["fc_mu"], settings.num_envs)
        self._target = Nets(view_layers(actor, actor_target.weights), ["fc_mu"], batch)
        self._critics = Critics(critics, critic_optimizer, critic_target, judges=1, batch=batch)
        self._optimizer = actor_optimizer
        self._scale = actor.action_scale.numpy()
        self._bias = actor.action_bias.numpy()
        self._settings = settings

    def act(self, obs: Floats) -> Floats:
        return self._scaled(self._acting, obs)[1]

    def learn_critics(self, sample: Any, noise: Floats | None = None) -> list[float]:
        """One step of the Q networks; `noise` blurs the target policy's actions."""
        actions = self._scaled(self._target, sample.next_obs)[1]
        if noise is not None:
            actions += noise * self._scale
            np.clip(actions, self._bias - self._scale, self._bias + self._scale, out=actions)
        future = self._critics.foresee(sample, actions).min(axis=0)
        goals = sample.rewards + (1.0 - sample.dones) * self._settings.gamma * future
        return self._critics.learn(sample, goals, self._settings.learning_rate)

    def learn_actor(self, obs: Floats) -> float:
        """One step of the policy up the first Q network; gives the loss."""
        squashed, actions = self._scaled(self._actor, obs)
        values = self._critics.judge(obs, actions)
        loss = -float(values.mean())
        grad = self._critics.slopes(actions.shape[1])
        grad *= self._scale * (1.0 - squashed * squashed) / -len(obs)
        self._actor.backward([grad[None]], obs)
        self._optimizer.descend(self._settings.learning_rate)
        return loss

    def _scaled(self, nets: Nets, obs: Floats) -> tuple[Floats, Floats]:
        """Actions between -1 and 1, and between their bounds."""
        squashed = np.tanh(nets.forward(obs)[0][0])
        return squashed, squashed * self._scale + self._bias
