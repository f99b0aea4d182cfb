"""PPO for continuous actions: acting, valuing and its gradient without torch."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from torch import nn

from cleanrl_worker.accelerated.layers import Floats, Stack, is_plain_stack
from cleanrl_worker.accelerated.ppo import PPOSettings, clip_policy, clip_values, mean
from cleanrl_worker.agents.gaussian import GaussianAgent

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@final
class GaussianPPOKernel:
    """The gradient of `ppo_loss` for an agent of plain stacks, and its outputs."""

    def __init__(self, agent: GaussianAgent, settings: PPOSettings) -> None:
        self._actor = Stack(agent.actor_mean)
        self._critic = Stack(agent.critic)
        self._logstd: Floats = agent.actor_logstd.detach().numpy()[0]
        grad = agent.actor_logstd.grad
        assert grad is not None
        self._logstd_grad = grad.numpy()[0]
        self._settings = settings

    @classmethod
    def for_agent(cls, agent: nn.Module, settings: PPOSettings) -> GaussianPPOKernel | None:
        """The kernel, if it is wanted and fits the agent: plain stacks on the CPU."""
        if not settings.kernels or not isinstance(agent, GaussianAgent):
            return None
        plain = is_plain_stack(agent.actor_mean) and is_plain_stack(agent.critic)
        return cls(agent, settings) if plain and agent.actor_logstd.device.type == "cpu" else None

    def means(self, obs: Floats) -> Floats:
        return self._actor.forward(obs)

    def values(self, obs: Floats) -> Floats:
        return self._critic.forward(obs)[:, 0]

    def gradient(self, batch: Any) -> Floats:
        """Leave the gradient for a minibatch in memory; gives what the loss logs."""
        s = self._settings
        inverse_std = np.exp(-self._logstd)
        means = self._actor.forward(batch.obs)
        means += batch.shift
        distance = (batch.actions - means) * inverse_std
        squares = distance * distance
        constant = np.float32(-float(np.add.reduce(self._logstd)) - HALF_LOG_2PI * len(self._logstd))
        log_probs = squares @ np.full(len(self._logstd), -0.5, np.float32) + constant
        log_ratio = log_probs - batch.log_probs
        ratio = np.exp(log_ratio)
        policy_loss, slope, clipfrac = clip_policy(ratio, batch.advantages, s)
        self._actor.backward(distance * inverse_std * slope[:, None])
        np.matmul(slope, squares - np.float32(1.0), out=self._logstd_grad)
        self._logstd_grad -= s.ent_coef
        values = self._critic.forward(batch.obs)[:, 0]
        value_loss, values_grad = clip_values(values, batch.returns, batch.values, s)
        self._critic.backward(values_grad[:, None])
        entropy = (self._logstd + 0.5 + HALF_LOG_2PI).sum()
        old_approx_kl = -mean(log_ratio)
        approx_kl = mean(ratio - np.float32(1.0)) + old_approx_kl
        logged = [value_loss, policy_loss, entropy, old_approx_kl, approx_kl, clipfrac]
        return np.array(logged, dtype=np.float32)
