"""PPO for discrete actions: acting, valuing and learning without autograd."""

from __future__ import annotations

import math
from typing import Any, Protocol, TypeGuard, final

import numpy as np
from numpy.typing import NDArray
from torch import nn

from cleanrl_worker.accelerated.grids import GridNet
from cleanrl_worker.accelerated.layers import Floats, Stack, is_plain_stack, on_cpu
from cleanrl_worker.agents.continuous import GaussianAgent
from cleanrl_worker.agents.minigrid import MinigridAgent
from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.kit.discrete_actions import choice_slices


class PPOSettings(Protocol):
    """The arguments that the update reads."""

    norm_adv: bool
    clip_coef: float
    clip_vloss: bool
    ent_coef: float
    vf_coef: float
    kernels: bool


def fits(agent: Any) -> TypeGuard[MLPAgent | MinigridAgent]:
    """Whether the kernel can compute this agent: separate plain stacks or a grid's network, on the CPU."""
    if isinstance(agent, MinigridAgent):
        return on_cpu(agent)
    return (
        isinstance(agent, MLPAgent)
        and len(agent.trunk) == 0
        and is_plain_stack(agent.actor)
        and is_plain_stack(agent.critic)
        and on_cpu(agent)
    )


def clip_policy(ratio: Floats, advantages: Floats, settings: PPOSettings) -> tuple[Any, Floats, Any]:
    """The clipped objective: its loss, its slope in the log probabilities, and how much was clipped."""
    size = len(ratio)
    if settings.norm_adv and size > 1:
        advantages = advantages - mean(advantages)
        deviation = math.sqrt(float(np.dot(advantages, advantages)) / (size - 1))
        advantages *= np.float32(1.0 / (deviation + 1e-8))
    clipped_ratio = clip(ratio, 1.0 - settings.clip_coef, 1.0 + settings.clip_coef)
    gains, clipped_gains = advantages * ratio, advantages * clipped_ratio
    inside = ratio == clipped_ratio
    loss = -mean(np.minimum(gains, clipped_gains))
    # The clipped branch has no slope where clipping bites.
    slope: Floats = gains * ((inside | (gains < clipped_gains)) * np.float32(-1.0 / size))
    return loss, slope, 1.0 - np.count_nonzero(inside) / size


def clip_values(
    values: Floats, returns: Floats, old_values: Floats, settings: PPOSettings
) -> tuple[Any, Floats]:
    """The loss of the values, clipped if wanted, and its slope in them with its weight in the whole loss."""
    error = values - returns
    squares, grad = error * error, error
    if settings.clip_vloss:
        moved = values - old_values
        cut = clip(moved, -settings.clip_coef, settings.clip_coef)
        clipped_error = old_values + cut - returns
        clipped_squares = clipped_error * clipped_error
        grad = np.where(clipped_squares > squares, clipped_error * (cut == moved), error)
        squares = np.maximum(squares, clipped_squares)
    return 0.5 * mean(squares), grad * np.float32(settings.vf_coef / len(values))


def mean(values: Floats) -> Any:
    """The mean of a row, without the overhead of `mean`."""
    return np.add.reduce(values) / np.float32(len(values))


def clip(values: Floats, low: float, high: float) -> Floats:
    """What `np.clip` does, at a fraction of its time for a few numbers."""
    clipped: Floats = np.maximum(values, np.float32(low))
    return np.minimum(clipped, np.float32(high), out=clipped)


class Choice:
    """One choice of each row: probabilities, that of what was chosen, entropy."""

    def __init__(self, logits: Floats, chosen: NDArray[np.int64]) -> None:
        self._at = np.arange(len(chosen)), chosen
        logits = logits - logits.max(axis=1, keepdims=True)
        self._probs = np.exp(logits)
        totals = self._probs.sum(axis=1, keepdims=True)
        self._probs /= totals
        logits -= np.log(totals)
        self._weighted = self._probs * logits
        self.entropies = -self._weighted.sum(axis=1, keepdims=True)
        self.log_probs: Floats = logits[self._at]

    def gradient(self, slope: Floats, entropy_slope: float) -> Floats:
        """The loss's gradient in the logits, given its slopes in the log probabilities and in the entropy."""
        grad = -self._probs * slope[:, None]
        grad[self._at] += slope
        self._weighted += self._probs * self.entropies
        self._weighted *= entropy_slope
        grad += self._weighted
        return grad


class StackNet:
    """The network of vectors: a stack for the policy and one for the value."""

    def __init__(self, agent: MLPAgent) -> None:
        self._actor = Stack(agent.actor)
        self._critic = Stack(agent.critic)

    def logits(self, obs: Floats) -> Floats:
        return self._actor.forward(obs)

    def values(self, obs: Floats) -> Floats:
        return self._critic.forward(obs)[:, 0]

    def prepare(self, obs: Floats) -> None:
        """Nothing is to be found in a rollout."""

    def forward(self, batch: Any) -> tuple[Floats, Floats]:
        """Logits and values of a minibatch; what `backward` needs is kept."""
        return self._actor.forward(batch.obs), self._critic.forward(batch.obs)[:, 0]

    def backward(self, logits_grad: Floats, values_grad: Floats) -> None:
        """Write all gradients, given those of what `forward` gave."""
        self._actor.backward(logits_grad)
        self._critic.backward(values_grad[:, None])

    def weights_changed(self) -> None:
        """Nothing is kept that depends on them."""


@final
class PPOKernel:
    """The gradient of `ppo_loss` for an agent of plain stacks or of a grid world, and its outputs."""

    def __init__(self, agent: MLPAgent | MinigridAgent, settings: PPOSettings) -> None:
        self._net = GridNet(agent) if isinstance(agent, MinigridAgent) else StackNet(agent)
        self.logits, self.values, self.prepare = self._net.logits, self._net.values, self._net.prepare
        self._slices = choice_slices(agent.nvec)
        self._settings = settings

    @classmethod
    def for_agent(cls, agent: nn.Module, settings: PPOSettings) -> PPOKernel | None:
        """The kernel, if it is wanted and fits the agent."""
        return cls(agent, settings) if settings.kernels and fits(agent) else None

    def gradient(self, batch: Any) -> Floats:
        """Leave the gradient for a minibatch in memory; gives what the loss logs."""
        s = self._settings
        outputs, values = self._net.forward(batch)
        choices = [
            Choice(outputs[:, part], batch.actions[:, column]) for column, part in enumerate(self._slices)
        ]
        log_ratio = -batch.log_probs
        for choice in choices:
            log_ratio += choice.log_probs
        ratio = np.exp(log_ratio)
        policy_loss, slope, clipfrac = clip_policy(ratio, batch.advantages, s)
        for choice, part in zip(choices, self._slices, strict=True):
            outputs[:, part] = choice.gradient(slope, s.ent_coef / len(ratio))
        value_loss, values_grad = clip_values(values, batch.returns, batch.values, s)
        self._net.backward(outputs, values_grad)
        # A step along the gradient comes next.
        self._net.weights_changed()
        old_approx_kl = -mean(log_ratio)
        approx_kl = mean(ratio - np.float32(1.0)) + old_approx_kl
        entropy = sum(choice.entropies.mean() for choice in choices)
        logged = [value_loss, policy_loss, entropy, old_approx_kl, approx_kl, clipfrac]
        return np.array(logged, dtype=np.float32)


HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@final
class GaussianPPOKernel:
    """The gradient of `ppo_loss` and `rpo_loss` for an agent of plain stacks, and its outputs."""

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
        if "shift" in batch._fields:
            # Robust policy optimisation moves each mean.
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
