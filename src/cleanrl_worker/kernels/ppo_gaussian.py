"""PPO for continuous actions: acting, valuing and learning without torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.agents.gaussian import GaussianAgent
from cleanrl_worker.kernels.adam import NumpyAdam
from cleanrl_worker.kernels.layers import Floats, Stack, is_plain_stack
from cleanrl_worker.kernels.ppo import PPOSettings, clip_policy, learn_values, mean
from cleanrl_worker.training.optimizer import Adam

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def fits(agent: Any) -> bool:
    """Whether the kernel can compute this agent: plain stacks on the CPU."""
    return (
        isinstance(agent, GaussianAgent)
        and is_plain_stack(agent.actor_mean)
        and is_plain_stack(agent.critic)
        and agent.actor_logstd.device.type == "cpu"
    )


class GaussianPPOKernel:
    """Does for an agent what `TorchLearner` of the algorithm's file does."""

    def __init__(self, agent: GaussianAgent, optimizer: Adam, settings: PPOSettings) -> None:
        self._actor = Stack(agent.actor_mean)
        self._critic = Stack(agent.critic)
        self._logstd: Floats = agent.actor_logstd.detach().numpy()[0]
        grad = agent.actor_logstd.grad
        assert grad is not None
        self._logstd_grad = grad.numpy()[0]
        self._adam = NumpyAdam(optimizer)
        self._settings = settings

    def means(self, obs: Floats) -> Floats:
        return self._actor.forward(obs)

    def logstd(self) -> Floats:
        return self._logstd

    def values(self, obs: Floats) -> Floats:
        return self._critic.forward(obs)[:, 0]

    def learn(self, batch: Any, rows: NDArray[np.int64], shift: Floats, learning_rate: float) -> Floats:
        """One minibatch; gives what is logged, in the order of the algorithm's `LOGGED`."""
        s = self._settings
        inverse_std = np.exp(-self._logstd)
        means = self._actor.forward(batch.obs[rows])
        means += shift
        distance = (batch.actions[rows] - means) * inverse_std
        squares = distance * distance
        constant = np.float32(-float(np.add.reduce(self._logstd)) - HALF_LOG_2PI * len(self._logstd))
        log_probs = squares @ np.full(len(self._logstd), -0.5, np.float32) + constant
        log_ratio = log_probs - batch.log_probs[rows]
        ratio = np.exp(log_ratio)
        policy_loss, slope, clipfrac = clip_policy(ratio, batch.advantages[rows], s)
        self._actor.backward(distance * inverse_std * slope[:, None])
        np.matmul(slope, squares - np.float32(1.0), out=self._logstd_grad)
        self._logstd_grad -= s.ent_coef
        value_loss = learn_values(self._critic, batch, rows, s)

        entropy = (self._logstd + 0.5 + HALF_LOG_2PI).sum()
        self._adam.apply(learning_rate, s.max_grad_norm)
        old_approx_kl = -mean(log_ratio)
        approx_kl = mean(ratio - np.float32(1.0)) + old_approx_kl
        logged = [value_loss, policy_loss, entropy, old_approx_kl, approx_kl, clipfrac]
        return np.array(logged, dtype=np.float32)
