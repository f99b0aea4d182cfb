"""TD3 and DDPG: acting and their gradients without torch's autograd."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from torch import nn

from cleanrl_worker.accelerated.nets import Critics, Floats, Memory, Net, Scratch, Settings, view_layers
from cleanrl_worker.agents.continuous import HIDDEN, Actor
from cleanrl_worker.kit.torch_backend import Adam, Target


@final
class DeterministicKernel:
    """The gradients of a deterministic policy and its Q networks, and the policy's actions."""

    def __init__(
        self,
        actor: Actor,
        critics: nn.ModuleList,
        target_actor: Target[Actor],
        target_critics: Target[nn.ModuleList],
        optimizers: tuple[Adam, Adam],
        settings: Settings,
    ) -> None:
        batch, (optimizer, critic_optimizer) = settings.batch_size, optimizers
        (layers,) = view_layers(actor, optimizer.weights, optimizer.gradient)
        (target_layers,) = view_layers(actor, target_actor.weights)
        memory = Memory(batch, HIDDEN)
        self._actor = Net(layers, ["fc_mu"], memory, Scratch(batch, HIDDEN, actor.action_scale.numel()))
        self._target = Net(target_layers, ["fc_mu"], memory)
        self._acting = Net(layers, ["fc_mu"], Memory(settings.num_envs, HIDDEN))
        self._critics = Critics(critics, critic_optimizer, target_critics, 1, batch)
        self._scale = actor.action_scale.numpy()
        self._bias = actor.action_bias.numpy()
        self._whole = np.ones(batch, np.float32)
        self._gamma = settings.gamma

    def act(self, obs: Floats) -> Floats:
        return self._scaled(self._acting, obs)[1]

    def critic_gradient(self, batch: Any) -> Floats:
        """Leave the Q networks' gradient in memory; gives what their loss logs."""
        actions = self._scaled(self._target, batch.next_obs)[1]
        noise = getattr(batch, "noise", None)
        if noise is not None:
            actions += noise * self._scale
            np.maximum(actions, self._bias - self._scale, out=actions)
            np.minimum(actions, self._bias + self._scale, out=actions)
        next_values = self._critics.target_values(batch.next_obs, actions)
        targets = batch.rewards + (1.0 - batch.dones) * self._gamma * next_values
        return self._critics.gradient(batch.obs, batch.actions, targets)

    def actor_gradient(self, batch: Any) -> Floats:
        """Leave the policy's gradient up the first Q network in memory; gives the loss."""
        obs = batch.obs
        squashed, actions = self._scaled(self._actor, obs)
        (values,) = self._critics.judge(obs, actions)
        loss = -float(values.mean())
        grad = self._critics.slopes(actions.shape[1], [self._whole])
        grad *= self._scale * (1.0 - squashed * squashed) / -len(obs)
        self._actor.backward([grad], obs)
        return np.array([loss])

    def _scaled(self, net: Net, obs: Floats) -> tuple[Floats, Floats]:
        """Actions between -1 and 1, and between their bounds."""
        squashed = np.tanh(net.forward(obs)[0])
        return squashed, squashed * self._scale + self._bias
