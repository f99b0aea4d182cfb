"""Proximal policy optimisation for continuous actions."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cleanrl_worker.agents.gaussian import GaussianAgent
from cleanrl_worker.kernels import ppo_gaussian
from cleanrl_worker.training.advantages import Floats
from cleanrl_worker.training.common import Bounds, NonNegative, PositiveInt
from cleanrl_worker.training.normalise import Normaliser
from cleanrl_worker.training.on_policy import Experience, OnPolicyArgs, learn, minibatches
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.policies import BoxPolicy, Policy, Spaces
from cleanrl_worker.training.run import open_run
from cleanrl_worker.training.script import run_script
from cleanrl_worker.training.state import State
from cleanrl_worker.training.stopping import StopSignals
from cleanrl_worker.training.weights import load_weights, unflatten

ACTION_SPACES = ("box", "unbounded_box", "integer_box")
OBSERVATION_SPACES = ("vector", "grid")
NORMALISES_OBSERVATIONS = True

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass
class Args(OnPolicyArgs):
    """Proximal policy optimisation for continuous actions."""

    exp_name: str = "ppo_continuous_action"
    """the name of this experiment, part of the results folder's name"""
    env_id: str = "HalfCheetah-v5"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 1_000_000
    """how many environment steps to train for, over all environments together"""
    learning_rate: NonNegative = 3e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 1
    """how many environments are stepped together"""
    num_steps: PositiveInt = 2048
    """how many steps each environment takes between two updates"""
    num_minibatches: PositiveInt = 32
    """into how many minibatches a rollout is cut"""
    update_epochs: PositiveInt = 10
    """how often each rollout is learned from"""
    norm_adv: bool = True
    """normalise the advantages of each minibatch"""
    clip_coef: NonNegative = 0.2
    """how far the policy's probability ratio may move before its gradient is cut"""
    clip_vloss: bool = True
    """clip the value loss in the same way"""
    ent_coef: NonNegative = 0.0
    """the weight of the entropy bonus"""
    vf_coef: NonNegative = 0.5
    """the weight of the value loss"""
    max_grad_norm: NonNegative = 0.5
    """the greatest norm of the gradient"""
    target_kl: Annotated[float | None, Bounds(minimum=0.0)] = None
    """end an update early when the mean KL divergence of an epoch exceeds this; none: never"""


LOGGED = ("value_loss", "policy_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac")


@dataclass(frozen=True)
class Batch:
    """A rollout's steps in one row."""

    obs: Floats
    actions: Floats
    log_probs: Floats
    advantages: Floats
    returns: Floats
    values: Floats


class Learner(Protocol):
    """Acts, values and learns: in torch here, or by a kernel that computes the same."""

    def means(self, obs: Floats) -> Floats: ...
    def logstd(self) -> Floats: ...
    def values(self, obs: Floats) -> Floats: ...
    def learn(self, batch: Any, rows: NDArray[np.int64], shift: Floats, learning_rate: float) -> Floats: ...


class TorchLearner:
    """The update rule."""

    def __init__(self, agent: GaussianAgent, optimizer: Adam, args: Args) -> None:
        self._agent = agent
        self._optimizer = optimizer
        self._args = args
        self._device = next(agent.parameters()).device

    @torch.no_grad()
    def means(self, obs: Floats) -> Floats:
        return np.asarray(self._agent.means(torch.from_numpy(obs).to(self._device)).cpu())

    @torch.no_grad()
    def logstd(self) -> Floats:
        return np.asarray(self._agent.actor_logstd[0].cpu())

    @torch.no_grad()
    def values(self, obs: Floats) -> Floats:
        return np.asarray(self._agent.value(torch.from_numpy(obs).to(self._device)).cpu())

    def learn(self, batch: Batch, rows: NDArray[np.int64], shift: Floats, learning_rate: float) -> Floats:
        """One minibatch; gives what is logged, in the order of `LOGGED`."""
        taken = [torch.from_numpy(array[rows]).to(self._device) for array in vars(batch).values()]
        moved = torch.from_numpy(shift).to(self._device)
        loss, logged = compute_loss(self._agent, self._args, moved, *taken)
        self._optimizer.update(loss, learning_rate, self._args.max_grad_norm)
        return np.asarray(logged.cpu())


def compute_loss(
    agent: GaussianAgent,
    args: Args,
    shift: Tensor,
    obs: Tensor,
    actions: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    returns: Tensor,
    old_values: Tensor,
) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    logstd = agent.actor_logstd
    # Robust policy optimisation moves each mean at random; plain PPO has a shift of zero.
    distance = (actions - (agent.means(obs) + shift)) * (-logstd).exp()
    log_probs = (-0.5 * distance.square() - logstd - HALF_LOG_2PI).sum(1)
    entropy = (logstd + 0.5 + HALF_LOG_2PI).sum()
    log_ratio = log_probs - old_log_probs
    ratio = log_ratio.exp()

    if args.norm_adv and len(advantages) > 1:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    clipped_ratio = ratio.clamp(1.0 - args.clip_coef, 1.0 + args.clip_coef)
    policy_loss = -torch.minimum(advantages * ratio, advantages * clipped_ratio).mean()

    values = agent.value(obs)
    error = (values - returns).square()
    if args.clip_vloss:
        clipped_values = old_values + (values - old_values).clamp(-args.clip_coef, args.clip_coef)
        error = torch.maximum(error, (clipped_values - returns).square())
    value_loss = 0.5 * error.mean()

    with torch.no_grad():
        old_approx_kl = -log_ratio.mean()
        approx_kl = (ratio - 1.0).mean() + old_approx_kl
        clipfrac = (ratio != clipped_ratio).float().mean()
        logged = torch.stack([value_loss, policy_loss, entropy, old_approx_kl, approx_kl, clipfrac])
    return policy_loss - args.ent_coef * entropy + args.vf_coef * value_loss, logged


def make_learner(agent: GaussianAgent, optimizer: Adam, args: Args) -> Learner:
    """A kernel where one fits the agent and is wanted, else torch."""
    if args.kernels and ppo_gaussian.fits(agent):
        return ppo_gaussian.GaussianPPOKernel(agent, optimizer, args)
    return TorchLearner(agent, optimizer, args)


class GaussianSampler:
    """Draws one rollout's actions around the policy's means."""

    def __init__(self, learner: Learner, steps: int, num_envs: int, space: Any) -> None:
        self._learner = learner
        self._space = space
        self._logstd = learner.logstd().copy()
        size = math.prod(space.shape)
        self._noise = torch.randn(steps, num_envs, size).numpy()
        self._drift = np.exp(self._logstd) * self._noise
        self.actions = np.zeros((steps, num_envs, size), dtype=np.float32)

    def act(self, t: int, obs: Floats) -> list[Any]:
        drawn = np.add(self._learner.means(obs), self._drift[t], out=self.actions[t])
        # The environment gets what it can take; the policy answers for what it drew.
        shaped = drawn.reshape(-1, *self._space.shape).astype(self._space.dtype)
        return list(np.minimum(np.maximum(shaped, self._space.low), self._space.high))

    def log_probs(self) -> Floats:
        """Of all actions drawn, in one row."""
        noise = self._noise.reshape(-1, self._noise.shape[-1])
        total = (-0.5 * noise * noise - self._logstd - HALF_LOG_2PI).sum(axis=1)
        return np.asarray(total, dtype=np.float32)


class ContinuousPPO:
    """Proximal policy optimisation, as the on-policy loop sees it."""

    def __init__(self, args: Args, learner: Learner, action_space: Any, alpha: float) -> None:
        self._args = args
        self._learner = learner
        self._space = action_space
        self._alpha = alpha

    def sampler(self, steps: int) -> GaussianSampler:
        return GaussianSampler(self._learner, steps, self._args.num_envs, self._space)

    def values(self, obs: Floats) -> Floats:
        return self._learner.values(obs)

    def update(self, experience: Experience, learning_rate: float) -> dict[str, float]:
        """Learn from a rollout, several times over; gives the means of the last epoch."""
        args, sampler = self._args, experience.sampler
        batch = Batch(
            obs=experience.obs,
            actions=sampler.actions.reshape(len(experience.obs), -1),
            log_probs=sampler.log_probs(),
            advantages=experience.advantages,
            returns=experience.returns,
            values=experience.values,
        )
        means: dict[str, float] = {}
        for _ in range(args.update_epochs):
            parts = minibatches(len(batch.obs), args.num_minibatches)
            logged = [
                self._learner.learn(batch, rows, self._shift(batch, rows), learning_rate) for rows in parts
            ]
            means = dict(zip(LOGGED, np.mean(logged, axis=0).tolist(), strict=True))
            if args.target_kl is not None and means["approx_kl"] > args.target_kl:
                break
        return means

    def _shift(self, batch: Batch, rows: NDArray[np.int64]) -> Floats:
        """How far each mean is moved at random in this minibatch; not at all in plain PPO."""
        size = (len(rows), batch.actions.shape[1])
        if self._alpha == 0.0:
            return np.zeros(size, dtype=np.float32)
        return np.asarray(torch.empty(size).uniform_(-self._alpha, self._alpha))


def train(args: Args, stop: StopSignals, algo: str = "ppo_continuous_action", alpha: float = 0.0) -> None:
    """Train from the first step to the last, and leave curves and weights in the results folder."""
    with open_run(algo, args, args.num_envs, stop) as run:
        space = run.envs.action_space
        obs_size = math.prod(run.envs.observation_space.shape)
        run.model = agent = GaussianAgent(obs_size, math.prod(space.shape)).to(run.device)
        optimizer = Adam(agent, eps=1e-5)
        normaliser = Normaliser(obs_size, args.num_envs, args.gamma)
        ppo = ContinuousPPO(args, make_learner(agent, optimizer, args), space, alpha)
        learn(args, run, ppo, normaliser, optimizer=optimizer)


def checkpoint_weights(parts: State, spaces: Spaces, args: Args) -> Any:
    """The weights in a full checkpoint, in the form of a model file."""
    sizes = [math.prod(space.shape) for space in (spaces.observation_space, spaces.action_space)]
    return unflatten(GaussianAgent(*sizes), parts["optimizer"])


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file; what it observes must be normalised as in training."""
    space = spaces.action_space
    agent = GaussianAgent(math.prod(spaces.observation_space.shape), math.prod(space.shape))
    load_weights(agent, weights)
    return BoxPolicy(
        lambda obs, noise: agent.means(obs) + agent.actor_logstd.exp() * noise, space, agent.value
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Train as the command line says; returns the exit code."""
    return run_script(Args, train, argv)


if __name__ == "__main__":
    sys.exit(main())
