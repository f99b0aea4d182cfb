"""SAC: acting and its gradients without torch's autograd."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from torch import nn

from cleanrl_worker.accelerated.nets import Critics, Floats, Memory, Net, Scratch, Settings, view_layers
from cleanrl_worker.agents.continuous import HIDDEN, LOG_STD_MAX, LOG_STD_MIN, GaussianActor
from cleanrl_worker.kit.torch_backend import Adam, Target

HEADS = ("fc_mean", "fc_logstd")
HALF_RANGE = 0.5 * (LOG_STD_MAX - LOG_STD_MIN)


@dataclass(frozen=True)
class Draw:
    """Actions with the logarithm of their density, and what their gradient needs."""

    actions: Floats
    log_probs: Floats
    squashed: Floats
    spread: Floats
    position: Floats


@final
class SACKernel:
    """The gradients of a Gaussian policy and its two Q networks, and the policy's actions."""

    def __init__(
        self,
        actor: GaussianActor,
        critics: nn.ModuleList,
        temperature: Any,
        target_critics: Target[nn.ModuleList],
        optimizers: tuple[Adam, Adam],
        settings: Settings,
    ) -> None:
        batch, (optimizer, critic_optimizer) = settings.batch_size, optimizers
        (layers,) = view_layers(actor, optimizer.weights, optimizer.gradient)
        scratch = Scratch(batch, HIDDEN, len(HEADS) * len(actor.action_scale))
        self._actor = Net(layers, HEADS, Memory(batch, HIDDEN), scratch)
        self._acting = Net(layers, HEADS, Memory(settings.num_envs, HIDDEN))
        self._critics = Critics(critics, critic_optimizer, target_critics, 2, batch)
        self._log_alpha = temperature.log_alpha.detach().numpy()
        self._scale = actor.action_scale.numpy()
        self._bias = actor.action_bias.numpy()
        self._log_volume = float(np.log(self._scale * math.sqrt(2.0 * math.pi)).sum())
        self._gamma = settings.gamma

    def act(self, obs: Floats, noise: Floats) -> Floats:
        return self._draw(self._acting, obs, noise).actions

    def critic_gradient(self, batch: Any) -> Floats:
        """Leave the gradient of both Q networks in memory; gives what their loss logs."""
        drawn = self._draw(self._actor, batch.next_obs, batch.noise)
        soft_values = self._critics.target_values(batch.next_obs, drawn.actions)
        soft_values -= self._alpha() * drawn.log_probs
        targets = batch.rewards + (1.0 - batch.dones) * self._gamma * soft_values
        return self._critics.gradient(batch.obs, batch.actions, targets)

    def actor_gradient(self, batch: Any) -> Floats:
        """Leave the policy's gradient in memory; gives what its loss logs."""
        obs, size, alpha = batch.obs, len(batch.obs), self._alpha()
        drawn = self._draw(self._actor, obs, batch.noise)
        first, second = self._critics.judge(obs, drawn.actions)
        loss = float((alpha * drawn.log_probs - np.minimum(first, second)).mean())
        share = (second < first) * np.float32(-1.0 / size)
        grad = self._critics.slopes(len(self._scale), [np.float32(-1.0 / size) - share, share])
        self._actor.backward(self._head_gradients(drawn, grad, alpha / size), obs)
        return np.array([loss, float(drawn.log_probs.mean())])

    def _draw(self, net: Net, obs: Floats, noise: Floats) -> Draw:
        mean, raw = net.forward(obs)
        position = np.tanh(raw)
        log_std = LOG_STD_MIN + HALF_RANGE * (position + 1.0)
        spread = np.exp(log_std) * noise
        drawn = mean + spread
        squashed = np.tanh(drawn)
        log_slope = 2.0 * (math.log(2.0) - drawn - np.logaddexp(0.0, -2.0 * drawn))
        log_probs = (-0.5 * noise * noise - log_std - log_slope).sum(axis=1) - self._log_volume
        return Draw(squashed * self._scale + self._bias, log_probs, squashed, spread, position)

    def _head_gradients(self, drawn: Draw, grad: Floats, weight: float) -> list[Floats]:
        """The gradients of both heads, given that of the actions; `weight` is that of the densities."""
        squashed, position = drawn.squashed, drawn.position
        grad *= self._scale * (1.0 - squashed * squashed)
        grad += (2.0 * weight) * squashed
        log_std_grad = grad * drawn.spread - weight
        raw_grad = log_std_grad * (HALF_RANGE * (1.0 - position * position))
        return [grad, raw_grad]

    def _alpha(self) -> float:
        return math.exp(float(self._log_alpha[0]))
