"""Proximal policy optimisation for continuous actions and vector observations."""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cleanrl_worker.accelerated.ppo import HALF_LOG_2PI, GaussianPPOKernel
from cleanrl_worker.agents.continuous import GaussianAgent
from cleanrl_worker.evaluation.policies import BoxPolicy
from cleanrl_worker.kit.accelerate import Forward, Gradient, take
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, PositiveInt
from cleanrl_worker.kit.normalise import Normaliser
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.rollout import Rollout, explained_variance, flat, gae
from cleanrl_worker.kit.run import Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.torch_backend import Adam, load_weights

LOGGED = ("value_loss", "policy_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac")


@dataclass
class Args(CommonArgs):
    """Proximal policy optimisation for continuous actions and vector observations."""

    exp_name: str = "ppo_continuous_action"
    """the name of the experiment, part of the name of the results folder"""
    env_id: str = "HalfCheetah-v5"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 1_000_000
    """the budget: environment steps over all environments together"""
    learning_rate: NonNegative = 3e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 1
    """the number of environments that are stepped together"""
    num_steps: PositiveInt = 2048
    """the number of steps per environment in a rollout"""
    anneal_lr: bool = True
    """anneal the learning rate linearly to zero over the run"""
    gamma: Fraction = 0.99
    """the discount factor"""
    gae_lambda: Fraction = 0.95
    """lambda of generalised advantage estimation"""
    num_minibatches: PositiveInt = 32
    """the number of minibatches per pass over a rollout"""
    update_epochs: PositiveInt = 10
    """the number of passes over each rollout"""
    norm_adv: bool = True
    """normalise the advantages of each minibatch"""
    clip_coef: NonNegative = 0.2
    """the clip range: how far the probability ratio may move from 1"""
    clip_vloss: bool = True
    """clip the value loss in the same way"""
    ent_coef: NonNegative = 0.0
    """the weight of the entropy bonus"""
    vf_coef: NonNegative = 0.5
    """the weight of the value loss"""
    max_grad_norm: NonNegative = 0.5
    """the maximum norm of the gradient"""
    target_kl: Annotated[float | None, Bounds(minimum=0.0)] = None
    """end an update early if the mean KL divergence of an epoch exceeds this; none: never"""


class Batch(NamedTuple):
    """Steps in rows: arrays, or tensors in the loss."""

    obs: Any
    actions: Any
    log_probs: Any
    advantages: Any
    returns: Any
    values: Any


def ppo_loss(agent: GaussianAgent, args: Args, batch: Batch) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    logstd = agent.actor_logstd
    distance = (batch.actions - agent.means(batch.obs)) * (-logstd).exp()
    log_probs = (-0.5 * distance.square() - logstd - HALF_LOG_2PI).sum(1)
    entropy = (logstd + 0.5 + HALF_LOG_2PI).sum()
    log_ratio = log_probs - batch.log_probs
    ratio = log_ratio.exp()

    advantages = batch.advantages
    if args.norm_adv and len(advantages) > 1:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    clipped_ratio = ratio.clamp(1.0 - args.clip_coef, 1.0 + args.clip_coef)
    policy_loss = -torch.minimum(advantages * ratio, advantages * clipped_ratio).mean()

    values = agent.value(batch.obs)
    error = (values - batch.returns).square()
    if args.clip_vloss:
        clipped_values = batch.values + (values - batch.values).clamp(-args.clip_coef, args.clip_coef)
        error = torch.maximum(error, (clipped_values - batch.returns).square())
    value_loss = 0.5 * error.mean()

    with torch.no_grad():
        old_approx_kl = -log_ratio.mean()
        approx_kl = (ratio - 1.0).mean() + old_approx_kl
        clipfrac = (ratio != clipped_ratio).float().mean()
        logged = torch.stack([value_loss, policy_loss, entropy, old_approx_kl, approx_kl, clipfrac])
    return policy_loss - args.ent_coef * entropy + args.vf_coef * value_loss, logged


def train(run: Run[Args]) -> None:
    """Rollout and update in turn until the step budget is used; the last rollout may be shorter."""
    args, space = run.args, run.envs.action_space
    obs_size, action_size = math.prod(run.envs.observation_space.shape), math.prod(space.shape)
    agent = run.keep("agent", GaussianAgent(obs_size, action_size).to(run.device))
    optimizer = run.keep("optimizer", Adam(agent, eps=1e-5))
    normaliser = run.keep("normaliser", Normaliser(obs_size, args.num_envs, args.gamma))
    rollout = run.keep("rollout", Rollout(run, args.num_steps, normaliser))

    kernel = GaussianPPOKernel.for_agent(agent, args)
    means_of = Forward(agent.means, run.device, kernel and kernel.means)
    values_of = Forward(agent.value, run.device, kernel and kernel.values)
    loss = functools.partial(ppo_loss, agent, args)
    moved = ("log_probs", "advantages", "returns", "values")
    gradient = run.keep("loss", Gradient(loss, agent, optimizer, kernel and kernel.gradient, moved))

    for update in run.updates(every=args.num_envs * args.num_steps):
        learning_rate = args.learning_rate * (1.0 - update.progress if args.anneal_lr else 1.0)
        noise = torch.randn(update.steps, args.num_envs, action_size).numpy()
        logstd = agent.actor_logstd.detach().cpu().numpy()[0].copy()
        drift = np.exp(logstd) * noise
        for t, obs in enumerate(rollout.collect(update)):
            actions = means_of(obs) + drift[t]
            # The environment gets what it can take; the policy answers for what it drew.
            shaped = actions.reshape(-1, *space.shape).astype(space.dtype)
            rollout.step(list(np.minimum(np.maximum(shaped, space.low), space.high)), actions=actions)

        values, advantages = gae(rollout, values_of, args.gamma, args.gae_lambda)
        drawn = flat(noise)
        batch = Batch(
            obs=flat(rollout.obs),
            actions=flat(rollout["actions"]),
            log_probs=(-0.5 * drawn * drawn - logstd - HALF_LOG_2PI).sum(axis=1, dtype=np.float32),
            advantages=advantages.reshape(-1),
            returns=(advantages + values).reshape(-1),
            values=values.reshape(-1),
        )
        for _ in range(args.update_epochs):
            logged = []
            for rows in run.minibatches(len(batch.obs), args.num_minibatches):
                logged.append(gradient(take(batch, rows)))
                optimizer.step(learning_rate, args.max_grad_norm)
            losses = dict(zip(LOGGED, np.mean(logged, axis=0).tolist(), strict=True))
            if args.target_kl is not None and losses["approx_kl"] > args.target_kl:
                break
        explained = explained_variance(batch.values, batch.returns)
        if explained is not None:
            losses["explained_variance"] = explained
        run.log(update.last_step, losses, learning_rate=learning_rate)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file; what it observes must be normalised as in training."""
    space = spaces.action_space
    agent = GaussianAgent(math.prod(spaces.observation_space.shape), math.prod(space.shape))
    load_weights(agent, weights)
    return BoxPolicy(
        lambda obs, noise: agent.means(obs) + agent.actor_logstd.exp() * noise, space, agent.value
    )


SPEC = AlgorithmSpec(
    name="ppo_continuous_action",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("box", "unbounded_box", "fixed_box", "integer_box"),
    observation_spaces=("vector", "grid"),
    normalises=True,
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
