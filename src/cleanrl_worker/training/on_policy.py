"""The loop of algorithms that learn from fresh rollouts: act, value, hand over, again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cleanrl_worker.training.advantages import Floats, estimate_advantages, explained_variance
from cleanrl_worker.training.common import CommonArgs, Fraction, NonNegative, PositiveInt
from cleanrl_worker.training.normalise import Normaliser
from cleanrl_worker.training.run import Run
from cleanrl_worker.training.state import Held, Stateful


@dataclass
class OnPolicyArgs(CommonArgs):
    """Arguments of every on-policy algorithm."""

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


class Sampler(Protocol):
    """Draws the actions of one rollout and keeps what the update needs of them."""

    def act(self, t: int, obs: Floats) -> list[Any]:
        """The actions of step `t`, one for each environment."""


class OnPolicyLearner(Protocol):
    """What an algorithm is to this loop."""

    def sampler(self, steps: int) -> Any: ...
    def values(self, obs: Floats) -> Floats: ...
    def update(self, experience: Experience, learning_rate: float) -> dict[str, float]: ...


@dataclass(frozen=True)
class Experience:
    """A rollout's steps in one row, valued."""

    obs: Floats
    sampler: Any
    advantages: Floats
    returns: Floats
    values: Floats


@dataclass(frozen=True)
class Rollout:
    """What the environments gave; arrays are (step, environment), `obs` has one step more."""

    obs: Floats
    rewards: Floats
    dones: Floats
    final_obs: list[tuple[int, int, Floats]]
    """Step, environment and last observation of each episode that was cut off, not ended."""


def collect(
    run: Run, sampler: Sampler, first_obs: Floats, steps: int, global_step: int, normaliser: Normaliser | None
) -> Rollout:
    """Act for `steps` steps of each environment."""
    envs, writer, watch = run.envs, run.writer, run.watch
    num_envs, obs_size = first_obs.shape
    obs = np.zeros((steps + 1, num_envs, obs_size), dtype=np.float32)
    obs[0] = first_obs
    rewards = np.zeros((steps, num_envs), dtype=np.float32)
    dones = np.zeros((steps, num_envs), dtype=np.float32)
    final_obs: list[tuple[int, int, Floats]] = []
    shape = (num_envs, *envs.observation_space.shape)
    raw = np.zeros(shape, dtype=np.float32)
    for t in range(steps):
        writer.flush_when_due()
        watch.enter("act")
        actions = sampler.act(t, obs[t])
        watch.enter("env")
        step = envs.step(actions, out=raw if normaliser else obs[t + 1].reshape(shape))
        rewards[t] = step.rewards
        for index, last_obs in step.final_obs.items():
            dones[t, index] = 1.0
            if not step.terminated[index]:
                last = last_obs.astype(np.float32).reshape(-1)
                final_obs.append((t, index, normaliser.peek(last) if normaliser else last))
        if normaliser is not None:
            normaliser.observe(raw.reshape(num_envs, obs_size), out=obs[t + 1])
        if step.episodes:
            writer.add_episodes(step.episodes, global_step + (t + 1) * num_envs)
    if normaliser is not None:
        rewards = normaliser.scale(rewards, dones)
    return Rollout(obs, rewards, dones, final_obs)


def estimate(
    values_of: Callable[[Floats], Floats], rollout: Rollout, gamma: float, trace: float
) -> tuple[Floats, Floats]:
    """Values and advantages of each step; an episode that was cut off is worth what was still to come.

    `trace` is lambda: 0 looks one step ahead, 1 to the end of the rollout.
    """
    steps, num_envs = rollout.rewards.shape
    values = values_of(rollout.obs.reshape((steps + 1) * num_envs, -1)).reshape(steps + 1, num_envs)
    next_values = values[1:] * (1.0 - rollout.dones)
    if rollout.final_obs:
        at, indices, observations = zip(*rollout.final_obs, strict=True)
        next_values[list(at), list(indices)] = values_of(np.stack(observations))
    values = values[:-1]
    return values, estimate_advantages(rollout.rewards, rollout.dones, values, next_values, gamma, trace)


def value(learner: OnPolicyLearner, rollout: Rollout, sampler: Any, args: OnPolicyArgs) -> Experience:
    """A rollout's steps in one row, with values and advantages."""
    values, advantages = estimate(learner.values, rollout, args.gamma, args.gae_lambda)
    return Experience(
        obs=rollout.obs[:-1].reshape(values.size, -1),
        sampler=sampler,
        advantages=advantages.reshape(-1),
        returns=(advantages + values).reshape(-1),
        values=values.reshape(-1),
    )


def learn(
    args: OnPolicyArgs,
    run: Run,
    learner: OnPolicyLearner,
    normaliser: Normaliser | None = None,
    **parts: Stateful,
) -> None:
    """Rollout and update in turn until the step budget is used; the last rollout may be shorter."""
    loop = Held(global_step=0, iteration=0, obs=first_observations(args, run, normaliser))
    if normaliser is not None:
        parts["normaliser"] = normaliser
    run.resume(loop, **parts)
    global_step, iteration, obs = (loop.values[name] for name in ("global_step", "iteration", "obs"))
    total_steps = args.total_timesteps // args.num_envs
    num_iterations = math.ceil(total_steps / args.num_steps)

    while global_step // args.num_envs < total_steps:
        progress = iteration / num_iterations if args.anneal_lr else 0.0
        learning_rate = args.learning_rate * (1.0 - progress)
        steps = min(args.num_steps, total_steps - global_step // args.num_envs)
        sampler = learner.sampler(steps)
        rollout = collect(run, sampler, obs, steps, global_step, normaliser)
        obs = rollout.obs[-1]
        global_step += steps * args.num_envs
        iteration += 1

        run.watch.enter("update")
        experience = value(learner, rollout, sampler, args)
        losses = learner.update(experience, learning_rate)

        run.watch.enter("log")
        run.writer.add_scalar("charts/learning_rate", learning_rate, global_step)
        explained = explained_variance(experience.values, experience.returns)
        if explained is not None:
            losses["explained_variance"] = explained
        run.add_losses(losses, global_step)
        run.between_updates(global_step, loop, global_step=global_step, iteration=iteration, obs=obs)


def first_observations(args: CommonArgs, run: Run, normaliser: Normaliser | None = None) -> Floats:
    """The environments' first observations, flat and normalised."""
    raw = np.zeros((run.envs.num_envs, *run.envs.observation_space.shape), dtype=np.float32)
    run.envs.reset(args.seed, out=raw)
    flat: Floats = raw.reshape(len(raw), -1)
    if normaliser is not None:
        normaliser.observe(flat, out=flat)
    return flat


def minibatches(size: int, parts: int) -> list[NDArray[np.int64]]:
    """All rows in a new random order, cut into `parts`."""
    order: NDArray[np.int64] = torch.randperm(size).numpy()
    return np.array_split(order, min(parts, size))
