"""Proximal policy optimisation for discrete actions and vector observations."""

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

from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.kernels import ppo as ppo_kernel
from cleanrl_worker.training.advantages import Floats, estimate_advantages, explained_variance
from cleanrl_worker.training.common import Bounds, CommonArgs, Fraction, NonNegative, PositiveInt
from cleanrl_worker.training.envs import VectorEnv
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.run import Run, open_run
from cleanrl_worker.training.script import run_script
from cleanrl_worker.training.state import Held
from cleanrl_worker.training.stopping import StopSignals
from cleanrl_worker.training.timing import Stopwatch
from cleanrl_worker.training.writer import RunWriter
from mosaic.contract.errors import UserError

ACTION_SPACES = ("discrete",)
OBSERVATION_SPACES = ("box",)


@dataclass
class Args(CommonArgs):
    """Proximal policy optimisation for discrete actions and vector observations."""

    exp_name: str = "ppo"
    """the name of this experiment, part of the results folder's name"""
    learning_rate: NonNegative = 2.5e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 4
    """how many environments are stepped together"""
    num_steps: PositiveInt = 128
    """how many steps each environment takes between two updates"""
    anneal_lr: bool = True
    """let the learning rate fall to zero over the run"""
    gamma: Fraction = 0.99
    """the discount factor"""
    gae_lambda: Fraction = 0.95
    """lambda of generalised advantage estimation"""
    num_minibatches: PositiveInt = 4
    """into how many minibatches a rollout is cut"""
    update_epochs: PositiveInt = 4
    """how often each rollout is learned from"""
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
    """let policy and value share their hidden layers"""


@dataclass(frozen=True)
class Rollout:
    """What the environments gave; arrays are (step, environment), `obs` has one step more."""

    obs: Floats
    actions: NDArray[np.int64]
    logits: Floats
    rewards: Floats
    dones: Floats
    final_obs: list[tuple[int, int, Any]]
    """Step, environment and last observation of each episode that was cut off, not ended."""


def collect(
    learner: Learner,
    envs: VectorEnv,
    first_obs: Floats,
    steps: int,
    global_step: int,
    writer: RunWriter,
    watch: Stopwatch,
) -> Rollout:
    """Act for `steps` steps of each environment."""
    num_envs, num_actions = envs.num_envs, int(envs.action_space.n)
    first_action = int(envs.action_space.start)
    obs = np.zeros((steps + 1, *first_obs.shape), dtype=np.float32)
    obs[0] = first_obs
    flat_obs = obs.reshape(steps + 1, num_envs, -1)
    actions = np.zeros((steps, num_envs), dtype=np.int64)
    logits = np.zeros((steps, num_envs, num_actions), dtype=np.float32)
    rewards = np.zeros((steps, num_envs), dtype=np.float32)
    dones = np.zeros((steps, num_envs), dtype=np.float32)
    # The greatest of logits plus Gumbel noise is a sample of their distribution.
    gumbel = -torch.empty(steps, num_envs, num_actions).exponential_().log_().numpy()
    final_obs: list[tuple[int, int, Any]] = []
    for t in range(steps):
        writer.flush_when_due()
        watch.enter("act")
        logits[t] = learner.logits(flat_obs[t])
        actions[t] = (logits[t] + gumbel[t]).argmax(axis=1)
        watch.enter("env")
        step = envs.step((actions[t] + first_action).tolist(), out=obs[t + 1])
        rewards[t] = step.rewards
        for index, last_obs in step.final_obs.items():
            dones[t, index] = 1.0
            if not step.terminated[index]:
                final_obs.append((t, index, last_obs))
        if step.episodes:
            writer.add_episodes(step.episodes, global_step + (t + 1) * num_envs)
    return Rollout(obs, actions, logits, rewards, dones, final_obs)


def evaluate(learner: Learner, rollout: Rollout, args: Args) -> tuple[Floats, Floats]:
    """Values and advantages of a rollout's steps."""
    steps, num_envs = rollout.rewards.shape
    values = learner.values(rollout.obs.reshape((steps + 1) * num_envs, -1)).reshape(steps + 1, num_envs)
    next_values = values[1:] * (1.0 - rollout.dones)
    if rollout.final_obs:
        at, indices, observations = zip(*rollout.final_obs, strict=True)
        last = np.stack(observations).astype(np.float32)
        next_values[list(at), list(indices)] = learner.values(last.reshape(len(last), -1))
    values = values[:-1]
    return values, estimate_advantages(
        rollout.rewards, rollout.dones, values, next_values, args.gamma, args.gae_lambda
    )


@dataclass(frozen=True)
class Batch:
    """A rollout's steps in one row."""

    obs: Floats
    actions: NDArray[np.int64]
    log_probs: Floats
    advantages: Floats
    returns: Floats
    values: Floats


def make_batch(rollout: Rollout, values: Floats, advantages: Floats) -> Batch:
    """What an update reads."""
    actions = rollout.actions.reshape(-1)
    logits = rollout.logits.reshape(len(actions), -1)
    logits = logits - logits.max(axis=1, keepdims=True)
    chosen = np.take_along_axis(logits, actions[:, None], axis=1)[:, 0]
    return Batch(
        obs=rollout.obs[:-1].reshape(len(actions), -1),
        actions=actions,
        log_probs=chosen - np.log(np.exp(logits).sum(axis=1)),
        advantages=advantages.reshape(-1),
        returns=(advantages + values).reshape(-1),
        values=values.reshape(-1),
    )


class Learner(Protocol):
    """Acts, values and learns: in torch here, or by a kernel that computes the same."""

    def logits(self, obs: Floats) -> Floats: ...
    def values(self, obs: Floats) -> Floats: ...
    def learn(self, batch: Any, rows: NDArray[np.int64], learning_rate: float) -> Floats: ...


class TorchLearner:
    """The update rule."""

    def __init__(self, agent: MLPAgent, optimizer: Adam, args: Args) -> None:
        self._agent = agent
        self._optimizer = optimizer
        self._args = args
        self._device = next(agent.parameters()).device

    @torch.no_grad()
    def logits(self, obs: Floats) -> Floats:
        return np.asarray(self._agent.logits(torch.from_numpy(obs).to(self._device)).cpu())

    @torch.no_grad()
    def values(self, obs: Floats) -> Floats:
        return np.asarray(self._agent.value(torch.from_numpy(obs).to(self._device)).cpu())

    def learn(self, batch: Batch, rows: NDArray[np.int64], learning_rate: float) -> Floats:
        """One minibatch; gives what is logged, in the order of `LOGGED`."""
        taken = [torch.from_numpy(array[rows]).to(self._device) for array in vars(batch).values()]
        loss, logged = compute_loss(self._agent, self._args, *taken)
        self._optimizer.update(loss, learning_rate, self._args.max_grad_norm)
        return np.asarray(logged.cpu())


def make_learner(agent: MLPAgent, optimizer: Adam, args: Args) -> Learner:
    """A kernel where one fits the agent and is wanted, else torch."""
    if args.kernels and ppo_kernel.fits(agent):
        return ppo_kernel.PPOKernel(agent, optimizer, args)
    return TorchLearner(agent, optimizer, args)


def compute_loss(
    agent: MLPAgent,
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
    log_probs = logits.log_softmax(dim=1)
    entropy = -(log_probs.exp() * log_probs).sum(1).mean()
    log_ratio = log_probs.gather(1, actions.unsqueeze(1)).squeeze(1) - old_log_probs
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


LOGGED = ("value_loss", "policy_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac")


def update(learner: Learner, batch: Batch, learning_rate: float, args: Args) -> dict[str, float]:
    """Learn from a rollout; returns the means of the last epoch."""
    size = len(batch.obs)
    means: dict[str, float] = {}
    for _ in range(args.update_epochs):
        order = torch.randperm(size).numpy()
        parts = np.array_split(order, min(args.num_minibatches, size))
        logged = np.mean([learner.learn(batch, rows, learning_rate) for rows in parts], axis=0)
        means = dict(zip(LOGGED, logged.tolist(), strict=True))
        if args.target_kl is not None and means["approx_kl"] > args.target_kl:
            break
    return means


def train(args: Args, stop: StopSignals) -> None:
    """Train from the first step to the last, and leave curves and weights in the results folder."""
    if args.total_timesteps < args.num_envs:
        raise UserError(
            f"total_timesteps is {args.total_timesteps}, which is less than one step of {args.num_envs} "
            "environments; raise it or lower num_envs."
        )
    with open_run("ppo", args, args.num_envs, stop) as run:
        obs_size = math.prod(run.envs.observation_space.shape)
        agent = MLPAgent(obs_size, int(run.envs.action_space.n), args.shared_trunk).to(run.device)
        run.model = agent
        learn(args, agent, run)


def learn(args: Args, agent: MLPAgent, run: Run) -> None:
    """Rollout and update in turn until the step budget is used; the last rollout may be shorter."""
    envs, writer = run.envs, run.writer
    optimizer = Adam(agent, eps=1e-5)
    learner = make_learner(agent, optimizer, args)
    obs = np.zeros((args.num_envs, *envs.observation_space.shape), dtype=np.float32)
    envs.reset(args.seed, out=obs)
    loop = Held(global_step=0, iteration=0, obs=obs)
    run.resume(loop, optimizer=optimizer)
    global_step, iteration, obs = (loop.values[name] for name in ("global_step", "iteration", "obs"))
    total_steps = args.total_timesteps // args.num_envs
    num_iterations = math.ceil(total_steps / args.num_steps)

    while iteration < num_iterations:
        progress = iteration / num_iterations if args.anneal_lr else 0.0
        learning_rate = args.learning_rate * (1.0 - progress)
        steps = min(args.num_steps, total_steps - global_step // args.num_envs)
        rollout = collect(learner, envs, obs, steps, global_step, writer, run.watch)
        obs = rollout.obs[-1]
        global_step += steps * args.num_envs
        iteration += 1

        run.watch.enter("update")
        values, advantages = evaluate(learner, rollout, args)
        losses = update(learner, make_batch(rollout, values, advantages), learning_rate, args)

        run.watch.enter("log")
        writer.add_scalar("charts/learning_rate", learning_rate, global_step)
        explained = explained_variance(values, advantages + values)
        if explained is not None:
            losses["explained_variance"] = explained
        run.add_losses(losses, global_step)
        run.between_updates(global_step, loop, global_step=global_step, iteration=iteration, obs=obs)


def main(argv: Sequence[str] | None = None) -> int:
    """Train as the command line says; returns the exit code."""
    return run_script(Args, train, argv)


if __name__ == "__main__":
    sys.exit(main())
