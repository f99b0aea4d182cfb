"""PPO for discrete actions: acting, valuing and learning without torch."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.kernels.adam import NumpyAdam
from cleanrl_worker.kernels.layers import Floats, Stack, is_plain_stack
from cleanrl_worker.training.optimizer import Adam


class PPOSettings(Protocol):
    """The arguments that the update reads."""

    norm_adv: bool
    clip_coef: float
    clip_vloss: bool
    ent_coef: float
    vf_coef: float
    max_grad_norm: float


def fits(agent: Any) -> bool:
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
        advantages = (advantages - advantages.mean()) / (advantages.std(ddof=1) + 1e-8)
    clipped_ratio = np.clip(ratio, 1.0 - settings.clip_coef, 1.0 + settings.clip_coef)
    gains, clipped_gains = advantages * ratio, advantages * clipped_ratio
    loss = -np.minimum(gains, clipped_gains).mean()
    # The clipped branch has no slope where clipping bites.
    slope: Floats = np.where(
        (ratio == clipped_ratio) | (gains < clipped_gains), -gains / size, np.float32(0.0)
    )
    return loss, slope, (ratio != clipped_ratio).mean()


def learn_values(critic: Stack, batch: Any, rows: NDArray[np.int64], settings: PPOSettings) -> Any:
    """Write the critic's gradients for a minibatch; gives the value loss."""
    values = critic.forward(batch.obs[rows])[:, 0]
    returns, old_values = batch.returns[rows], batch.values[rows]
    error = values - returns
    squares, grad = error * error, error
    if settings.clip_vloss:
        moved = values - old_values
        clipped_error = old_values + np.clip(moved, -settings.clip_coef, settings.clip_coef) - returns
        clipped_squares = clipped_error * clipped_error
        inside = np.abs(moved) <= settings.clip_coef
        grad = np.where(clipped_squares > squares, np.where(inside, clipped_error, 0.0), error)
        squares = np.maximum(squares, clipped_squares)
    critic.backward((grad * (settings.vf_coef / len(rows)))[:, None].astype(np.float32))
    return 0.5 * squares.mean()


class PPOKernel:
    """Does for an agent what `TorchLearner` of the algorithm's file does."""

    def __init__(self, agent: MLPAgent, optimizer: Adam, settings: PPOSettings) -> None:
        self._actor = Stack(agent.actor)
        self._critic = Stack(agent.critic)
        self._adam = NumpyAdam(optimizer)
        self._settings = settings

    def logits(self, obs: Floats) -> Floats:
        return self._actor.forward(obs)

    def values(self, obs: Floats) -> Floats:
        return self._critic.forward(obs)[:, 0]

    def learn(self, batch: Any, rows: NDArray[np.int64], learning_rate: float) -> Floats:
        """One minibatch; gives what is logged, in the order of the algorithm's `LOGGED`."""
        s = self._settings
        obs, actions, advantages = batch.obs[rows], batch.actions[rows], batch.advantages[rows]
        size = len(rows)
        each = np.arange(size)

        log_probs = self._actor.forward(obs)
        log_probs -= log_probs.max(axis=1, keepdims=True)
        probs = np.exp(log_probs)
        totals = probs.sum(axis=1, keepdims=True)
        probs /= totals
        log_probs -= np.log(totals)
        weighted = probs * log_probs
        entropies = -weighted.sum(axis=1, keepdims=True)
        log_ratio = log_probs[each, actions] - batch.log_probs[rows]
        ratio = np.exp(log_ratio)
        policy_loss, slope, clipfrac = clip_policy(ratio, advantages, s)
        grad = -probs * slope[:, None]
        grad[each, actions] += slope
        weighted += probs * entropies
        weighted *= s.ent_coef / size
        grad += weighted
        self._actor.backward(grad)

        value_loss = learn_values(self._critic, batch, rows, s)
        self._adam.apply(learning_rate, s.max_grad_norm)
        old_approx_kl = -log_ratio.mean()
        approx_kl = (ratio - 1.0).mean() + old_approx_kl
        logged = [value_loss, policy_loss, entropies.mean(), old_approx_kl, approx_kl, clipfrac]
        return np.array(logged, dtype=np.float32)
