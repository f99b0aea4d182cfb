"""SAC: acting and learning without torch's autograd."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from torch import nn

from cleanrl_worker.agents.continuous import HIDDEN, LOG_STD_MAX, LOG_STD_MIN, GaussianActor
from cleanrl_worker.kernels.critics import Critics
from cleanrl_worker.kernels.nets import Floats, Memory, Net, Scratch, view_layers
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.targets import Target

HEADS = ("fc_mean", "fc_logstd")
HALF_RANGE = 0.5 * (LOG_STD_MAX - LOG_STD_MIN)


class SACSettings(Protocol):
    """The arguments that the updates read."""

    policy_lr: float
    q_lr: float
    gamma: float
    batch_size: int
    num_envs: int
    autotune: bool


class SACNetworks(Protocol):
    """The policy, its two Q networks with their targets, alpha, and their optimizers."""

    actor: GaussianActor
    critics: nn.ModuleList
    actor_optimizer: Adam
    critic_optimizer: Adam
    alpha_optimizer: Adam
    critic_target: Target[nn.ModuleList]


@dataclass(frozen=True)
class Draw:
    """Actions with the logarithm of their density, and what their gradient needs."""

    actions: Floats
    log_probs: Floats
    squashed: Floats
    spread: Floats
    position: Floats


class SACKernel:
    """Does for a Gaussian policy and its two Q networks what `TorchLearner` of the algorithm's file does."""

    def __init__(self, nets: SACNetworks, settings: SACSettings) -> None:
        batch, actor, optimizer = settings.batch_size, nets.actor, nets.actor_optimizer
        (layers,) = view_layers(actor, optimizer.weights, optimizer.gradient)
        scratch = Scratch(batch, HIDDEN, len(HEADS) * len(actor.action_scale))
        self._actor = Net(layers, HEADS, Memory(batch, HIDDEN), scratch)
        self._acting = Net(layers, HEADS, Memory(settings.num_envs, HIDDEN))
        self._critics = Critics(nets.critics, nets.critic_optimizer, nets.critic_target, 2, batch)
        self._optimizer = optimizer
        self._alpha_optimizer = nets.alpha_optimizer
        self._scale = actor.action_scale.numpy()
        self._bias = actor.action_bias.numpy()
        self._log_volume = float(np.log(self._scale * math.sqrt(2.0 * math.pi)).sum())
        self._settings = settings

    def act(self, obs: Floats, noise: Floats) -> Floats:
        return self._draw(self._acting, obs, noise).actions

    def learn_critics(self, sample: Any, noise: Floats) -> list[float]:
        """One step of both Q networks."""
        drawn = self._draw(self._actor, sample.next_obs, noise)
        future = self._critics.foresee(sample, drawn.actions)
        future -= self._alpha() * drawn.log_probs
        goals = sample.rewards + (1.0 - sample.dones) * self._settings.gamma * future
        return self._critics.learn(sample, goals, self._settings.q_lr)

    def learn_actor(self, obs: Floats, noise: Floats) -> list[float]:
        """One step of the policy and of alpha; gives the policy's loss, alpha and alpha's loss."""
        size, alpha = len(obs), self._alpha()
        drawn = self._draw(self._actor, obs, noise)
        first, second = self._critics.judge(obs, drawn.actions)
        loss = float((alpha * drawn.log_probs - np.minimum(first, second)).mean())
        share = (second < first) * np.float32(-1.0 / size)
        grad = self._critics.slopes(len(self._scale), [np.float32(-1.0 / size) - share, share])
        self._actor.backward(self._head_gradients(drawn, grad, alpha / size), obs)
        self._optimizer.descend(self._settings.policy_lr)
        return [loss, alpha, self._learn_alpha(drawn.log_probs, alpha)]

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

    def _learn_alpha(self, log_probs: Floats, alpha: float) -> float:
        loss = -alpha * (float(log_probs.mean()) - len(self._scale))
        if self._settings.autotune:
            # The loss is alpha times a constant, so it is its own slope along the logarithm of alpha.
            self._alpha_optimizer.gradient.fill_(loss)
            self._alpha_optimizer.descend(self._settings.q_lr)
        return loss

    def _alpha(self) -> float:
        return math.exp(float(self._alpha_optimizer.weights))
