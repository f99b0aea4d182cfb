"""PPO for discrete actions: acting, valuing and learning without torch."""

from __future__ import annotations

import math
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.kernels.adam import NumpyAdam
from cleanrl_worker.kernels.layers import Floats, Stack, is_plain_stack
from cleanrl_worker.training.discrete_actions import choice_slices
from cleanrl_worker.training.optimizer import Adam


class PPOSettings(Protocol):
    """The arguments that the update reads."""

    norm_adv: bool
    clip_coef: float
    clip_vloss: bool
    ent_coef: float
    vf_coef: float
    max_grad_norm: float


def fits(agent: Any) -> TypeGuard[MLPAgent]:
    """Whether the kernel can compute this agent: separate plain stacks on the CPU."""
    return (
        isinstance(agent, MLPAgent)
        and len(agent.trunk) == 0
        and is_plain_stack(agent.actor)
        and is_plain_stack(agent.critic)
        and all(parameter.device.type == "cpu" for parameter in agent.parameters())
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


def learn_values(critic: Stack, batch: Any, rows: NDArray[np.int64], settings: PPOSettings) -> Any:
    """Write the critic's gradients for a minibatch; gives the value loss."""
    values = critic.forward(batch.obs[rows])[:, 0]
    returns, old_values = batch.returns[rows], batch.values[rows]
    error = values - returns
    squares, grad = error * error, error
    if settings.clip_vloss:
        moved = values - old_values
        cut = clip(moved, -settings.clip_coef, settings.clip_coef)
        clipped_error = old_values + cut - returns
        clipped_squares = clipped_error * clipped_error
        grad = np.where(clipped_squares > squares, clipped_error * (cut == moved), error)
        squares = np.maximum(squares, clipped_squares)
    critic.backward((grad * np.float32(settings.vf_coef / len(rows)))[:, None])
    return 0.5 * mean(squares)


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


class PPOKernel:
    """Does for an agent what `TorchLearner` of the algorithm's file does."""

    def __init__(self, agent: MLPAgent, optimizer: Adam, settings: PPOSettings) -> None:
        self._actor = Stack(agent.actor)
        self._critic = Stack(agent.critic)
        self._slices = choice_slices(agent.nvec)
        self._adam = NumpyAdam(optimizer)
        self._settings = settings

    def logits(self, obs: Floats) -> Floats:
        return self._actor.forward(obs)

    def values(self, obs: Floats) -> Floats:
        return self._critic.forward(obs)[:, 0]

    def learn(self, batch: Any, rows: NDArray[np.int64], learning_rate: float) -> Floats:
        """One minibatch; gives what is logged, in the order of the algorithm's `LOGGED`."""
        s = self._settings
        actions = batch.actions[rows]
        outputs = self._actor.forward(batch.obs[rows])
        choices = [Choice(outputs[:, part], actions[:, column]) for column, part in enumerate(self._slices)]
        log_ratio = -batch.log_probs[rows]
        for choice in choices:
            log_ratio += choice.log_probs
        ratio = np.exp(log_ratio)
        policy_loss, slope, clipfrac = clip_policy(ratio, batch.advantages[rows], s)
        for choice, part in zip(choices, self._slices, strict=True):
            outputs[:, part] = choice.gradient(slope, s.ent_coef / len(rows))
        self._actor.backward(outputs)

        value_loss = learn_values(self._critic, batch, rows, s)
        self._adam.apply(learning_rate, s.max_grad_norm)
        old_approx_kl = -mean(log_ratio)
        approx_kl = mean(ratio - np.float32(1.0)) + old_approx_kl
        entropy = sum(choice.entropies.mean() for choice in choices)
        logged = [value_loss, policy_loss, entropy, old_approx_kl, approx_kl, clipfrac]
        return np.array(logged, dtype=np.float32)
