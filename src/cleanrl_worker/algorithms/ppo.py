"""Proximal policy optimisation for discrete actions, one or several at once, and vectors or grid worlds."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cleanrl_worker.agents.minigrid import KnownViews, MinigridAgent
from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.kernels import ppo as ppo_kernel
from cleanrl_worker.probe import describe_space
from cleanrl_worker.schemas.spaces import is_grid
from cleanrl_worker.training.advantages import Floats
from cleanrl_worker.training.common import Bounds, NonNegative
from cleanrl_worker.training.discrete_actions import DiscreteActions, choice_slices
from cleanrl_worker.training.on_policy import Experience, OnPolicyArgs, learn, minibatches
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.policies import CategoricalPolicy, Policy, Spaces
from cleanrl_worker.training.run import open_run
from cleanrl_worker.training.script import run_script
from cleanrl_worker.training.state import State
from cleanrl_worker.training.stopping import StopSignals
from cleanrl_worker.training.weights import load_weights, unflatten

ACTION_SPACES = ("discrete", "multi_discrete", "multi_binary")
OBSERVATION_SPACES = ("vector", "grid")

Agent = MLPAgent | MinigridAgent


@dataclass
class Args(OnPolicyArgs):
    """Proximal policy optimisation for discrete actions, with vector or grid observations."""

    exp_name: str = "ppo"
    """the name of this experiment, part of the results folder's name"""
    norm_adv: bool = True
    """normalise the advantages of each minibatch"""
    clip_coef: NonNegative = 0.2
    """how far the policy's probability ratio may move before its gradient is cut"""
    clip_vloss: bool = True
    """clip the value loss in the same way"""
    ent_coef: NonNegative = 0.01
    """the weight of the entropy bonus"""
    vf_coef: NonNegative = 0.5
    """the weight of the value loss"""
    max_grad_norm: NonNegative = 0.5
    """the greatest norm of the gradient"""
    target_kl: Annotated[float | None, Bounds(minimum=0.0)] = None
    """end an update early when the mean KL divergence of an epoch exceeds this; none: never"""
    shared_trunk: bool = False
    """let policy and value share their hidden layers; for grid observations they always do"""


LOGGED = ("value_loss", "policy_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac")


@dataclass(frozen=True)
class Batch:
    """A rollout's steps in one row; `actions` has a column for each choice."""

    obs: Floats
    actions: NDArray[np.int64]
    log_probs: Floats
    advantages: Floats
    returns: Floats
    values: Floats


class Learner(Protocol):
    """Acts, values and learns: in torch here, or by a kernel that computes the same."""

    def logits(self, obs: Floats) -> Floats: ...
    def values(self, obs: Floats) -> Floats: ...
    def learn(self, batch: Any, rows: NDArray[np.int64], learning_rate: float) -> Floats: ...


class TorchLearner:
    """The update rule."""

    def __init__(self, agent: Agent, optimizer: Adam, args: Args) -> None:
        self._agent = agent
        self._optimizer = optimizer
        self._args = args
        self._device = next(agent.parameters()).device
        self._known = KnownViews(self._outputs) if isinstance(agent, MinigridAgent) else None

    def logits(self, obs: Floats) -> Floats:
        return self._known(obs)[:, :-1] if self._known else self._compute(self._agent.logits, obs)

    def values(self, obs: Floats) -> Floats:
        return self._known(obs)[:, -1] if self._known else self._compute(self._agent.value, obs)

    def _outputs(self, obs: Floats) -> Floats:
        """Logits and value, one after the other."""
        return self._compute(lambda rows: torch.column_stack(self._agent(rows)), obs)

    @torch.no_grad()
    def _compute(self, function: Callable[[Tensor], Tensor], obs: Floats) -> Floats:
        return np.asarray(function(torch.from_numpy(obs).to(self._device)).cpu())

    def learn(self, batch: Batch, rows: NDArray[np.int64], learning_rate: float) -> Floats:
        """One minibatch; gives what is logged, in the order of `LOGGED`."""
        taken = [torch.from_numpy(array[rows]).to(self._device) for array in vars(batch).values()]
        loss, logged = compute_loss(self._agent, self._args, *taken)
        self._optimizer.update(loss, learning_rate, self._args.max_grad_norm)
        if self._known:
            self._known.forget()
        return np.asarray(logged.cpu())


def compute_loss(
    agent: Agent,
    args: Args,
    obs: Tensor,
    actions: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    returns: Tensor,
    old_values: Tensor,
) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    logits, values = agent(obs)
    # Choices made at once are independent: their log probabilities and entropies add up.
    each = [part.log_softmax(dim=1) for part in logits.split(agent.nvec, dim=1)]
    entropy = torch.stack([-(part.exp() * part).sum(1).mean() for part in each]).sum()
    chosen = [part.gather(1, actions[:, column, None]) for column, part in enumerate(each)]
    log_ratio = torch.cat(chosen, dim=1).sum(1) - old_log_probs
    ratio = log_ratio.exp()

    if args.norm_adv and len(advantages) > 1:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    clipped_ratio = ratio.clamp(1.0 - args.clip_coef, 1.0 + args.clip_coef)
    policy_loss = -torch.minimum(advantages * ratio, advantages * clipped_ratio).mean()

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


def make_learner(agent: Agent, optimizer: Adam, args: Args) -> Learner:
    """A kernel where one fits the agent and is wanted, else torch."""
    if args.kernels and ppo_kernel.fits(agent):
        return ppo_kernel.PPOKernel(agent, optimizer, args)
    return TorchLearner(agent, optimizer, args)


class DiscreteSampler:
    """Draws one rollout's actions from the policy's probabilities."""

    def __init__(self, learner: Learner, steps: int, num_envs: int, space: DiscreteActions) -> None:
        self._learner = learner
        self._space = space
        self._slices = choice_slices(space.nvec)
        self.actions = np.zeros((steps, num_envs, len(space.nvec)), dtype=np.int64)
        self._logits = np.zeros((steps, num_envs, sum(space.nvec)), dtype=np.float32)
        # The greatest of logits plus Gumbel noise is a sample of their distribution.
        self._gumbel = -torch.empty(self._logits.shape).exponential_().log_().numpy()

    def act(self, t: int, obs: Floats) -> list[Any]:
        logits = self._learner.logits(obs)
        self._logits[t] = logits
        noisy, actions = logits + self._gumbel[t], self.actions[t]
        for column, part in enumerate(self._slices):
            actions[:, column] = noisy[:, part].argmax(axis=1)
        return self._space.for_envs(actions)

    def log_probs(self) -> Floats:
        """Of all actions drawn, in one row."""
        total: Any = 0.0
        for column, part in enumerate(self._slices):
            logits = self._logits[:, :, part].reshape(-1, part.stop - part.start)
            logits = logits - logits.max(axis=1, keepdims=True)
            chosen = np.take_along_axis(logits, self.actions[:, :, column].reshape(-1, 1), axis=1)[:, 0]
            total = total + (chosen - np.log(np.exp(logits).sum(axis=1)))
        return np.asarray(total)


class PPO:
    """Proximal policy optimisation, as the on-policy loop sees it."""

    def __init__(self, args: Args, learner: Learner, action_space: DiscreteActions) -> None:
        self._args = args
        self._learner = learner
        self._space = action_space

    def sampler(self, steps: int) -> DiscreteSampler:
        return DiscreteSampler(self._learner, steps, self._args.num_envs, self._space)

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
            logged = np.mean([self._learner.learn(batch, rows, learning_rate) for rows in parts], axis=0)
            means = dict(zip(LOGGED, logged.tolist(), strict=True))
            if args.target_kl is not None and means["approx_kl"] > args.target_kl:
                break
        return means


def train(args: Args, stop: StopSignals) -> None:
    """Train from the first step to the last, and leave curves and weights in the results folder."""
    with open_run("ppo", args, args.num_envs, stop) as run:
        space = DiscreteActions(run.envs.action_space)
        run.model = agent = make_agent(run.envs.observation_space, space.nvec, args).to(run.device)
        optimizer = Adam(agent, eps=1e-5)
        learn(args, run, PPO(args, make_learner(agent, optimizer, args), space), optimizer=optimizer)


def make_agent(observations: Any, nvec: tuple[int, ...], args: Args) -> Agent:
    """The network that fits what is observed."""
    if is_grid(describe_space(observations)):
        return MinigridAgent(nvec, observations.shape)
    return MLPAgent(math.prod(observations.shape), nvec, args.shared_trunk)


def checkpoint_weights(parts: State, spaces: Spaces, args: Args) -> Any:
    """The weights in a full checkpoint, in the form of a model file."""
    nvec = DiscreteActions(spaces.action_space).nvec
    return unflatten(make_agent(spaces.observation_space, nvec, args), parts["optimizer"])


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    actions = DiscreteActions(spaces.action_space)
    args = dataclasses.replace(args, shared_trunk="trunk.0.weight" in weights)
    agent = load_weights(make_agent(spaces.observation_space, actions.nvec, args), weights)
    return CategoricalPolicy(agent.logits, agent.value, spaces.action_space)


def main(argv: Sequence[str] | None = None) -> int:
    """Train as the command line says; returns the exit code."""
    return run_script(Args, train, argv)


if __name__ == "__main__":
    sys.exit(main())
